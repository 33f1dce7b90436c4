import pytest

from precedents.runtime.wording import a_type


@pytest.mark.parametrize(
    ("value", "said"), [(7, "an int"), ([], "a list"), (object(), "an object"), (None, "a NoneType")]
)
def test_the_name_of_a_type_has_its_article(value, said) -> None:
    assert a_type(value) == said
