import pytest

from precedents import errors

TREE = {
    errors.PrecedentsError: Exception,
    errors.InputError: ValueError,
    errors.UnknownNameError: errors.InputError,
    errors.KeywordError: TypeError,
    errors.UserCodeError: errors.InputError,
    errors.BudgetError: errors.InputError,
    errors.DataFileError: errors.InputError,
    errors.NotApplicable: errors.PrecedentsError,
    errors.MissingExtraError: ImportError,
    errors.NumericalError: ArithmeticError,
    errors.IndefiniteKernelError: errors.NumericalError,
    errors.StoreError: errors.PrecedentsError,
    errors.StaleError: errors.StoreError,
    errors.FormatError: errors.StoreError,
}


@pytest.mark.parametrize(("error", "parent"), TREE.items())
def test_every_error_has_its_place_in_the_tree(error, parent) -> None:
    assert issubclass(error, parent)
    assert issubclass(error, errors.PrecedentsError)


def test_every_error_is_in_the_docstrings_tree() -> None:
    defined = [
        name for name, value in vars(errors).items() if getattr(value, "__module__", "") == errors.__name__
    ]
    assert [name for name in defined if name not in errors.__doc__] == []


def test_a_missing_extra_says_what_to_type() -> None:
    assert "pip install 'precedents[sklearn]'" in str(errors.MissingExtraError("scikit-learn", "sklearn"))
