import re
from base64 import b64decode

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents import InputError
from precedents.seen import visible
from precedents.views.instance import as_png, lines, png, scores, shown, shrunk


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (4, 5, 1), (1, 1, 4, 5), (2, 4, 5), (4, 5, 4)])
def test_two_axes_of_an_image_are_a_grey_picture(shape) -> None:
    assert shown(torch.rand(*shape, generator=torch.Generator().manual_seed(0))).shape == (4, 5)


@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 5, 3)])
def test_three_channels_are_colours(shape) -> None:
    assert shown(torch.rand(*shape, generator=torch.Generator().manual_seed(0))).shape == (4, 5, 3)


def test_channels_first_become_channels_last() -> None:
    image = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(shown(image), image.permute(1, 2, 0).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "image",
    [torch.arange(20.0).reshape(4, 5) - 7, torch.full((4, 5), 3.0), torch.eye(4), torch.eye(4).bool()],
    ids=["normalized", "constant", "unit", "bool"],
)
def test_a_picture_is_within_zero_and_one(image) -> None:
    picture = shown(image)
    assert 0 <= picture.min() <= picture.max() <= 1


def test_a_picture_of_bytes_keeps_its_brightness() -> None:
    assert shown(torch.full((2, 2), 51, dtype=torch.uint8)).tolist() == [[0.2, 0.2], [0.2, 0.2]]


def test_a_picture_within_zero_and_one_stays_as_it_is() -> None:
    assert shown(torch.full((2, 2), 0.25)).tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_numbers_in_a_row_are_a_table_row() -> None:
    assert shown(torch.tensor([1.5, 2.0])) == {"x0": 1.5, "x1": 2.0}


def test_whole_numbers_in_a_row_are_tokens() -> None:
    assert shown(torch.tensor([3, 1, 2])) == "3 1 2"


def test_a_nest_is_shown_by_its_first_part() -> None:
    assert shown({"a": torch.tensor([3]), "b": torch.tensor([1.0])}) == "3"


@pytest.mark.parametrize("value", ["text", {"a": 1}])
def test_render_decides(value) -> None:
    assert shown(torch.zeros(2), lambda x: value) == value


def test_render_may_return_an_image_array() -> None:
    assert shown(torch.zeros(2), lambda x: np.eye(3)).shape == (3, 3)


@pytest.mark.parametrize("value", [None, object()])
def test_render_must_return_something_to_show(value) -> None:
    with pytest.raises(InputError, match=r"render returned a .* Return an image array, a text or a mapping"):
        shown(torch.zeros(2), lambda x: value)


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([0.98, 0.9784, -0.86], ["+0.980", "+0.978", "-0.860"]),
        ([1.0, 0.93184], ["+1.000", "+0.932"]),
        ([0.0176, -0.00163], ["+0.0176", "-0.0016"]),
        ([-376.04, -41.3], ["-376.0", "-41.3"]),
        ([12345.0, 2.0], ["+1.23e+04", "+2.00e+00"]),
        ([1e-7, 0.0], ["+1.00e-07", "+0.00e+00"]),
        ([0.0, 0.0], ["+0.000", "+0.000"]),
        ([0.5, float("nan"), -float("inf")], ["+0.500", "+nan", "-inf"]),
        ([], []),
    ],
)
def test_scores_that_stand_together_have_the_same_digits(values, written) -> None:
    assert scores(values) == written


def test_a_png_is_a_data_address() -> None:
    address = as_png(np.eye(4))
    assert address.startswith("data:image/png;base64,")
    assert b64decode(address.partition(",")[2]).startswith(b"\x89PNG")


def test_a_table_row_is_lines_of_names_and_values() -> None:
    assert lines({"a": 1.23456, "long": "text", 3: 4}) == ["a    1.23", "long text", "3    4"]


def test_a_long_table_row_says_how_many_more_there_are() -> None:
    assert lines({f"x{i}": i for i in range(9)}, most=2) == ["x0 0", "x1 1", "... 7 more"]


def test_no_values_are_no_lines() -> None:
    assert lines({}) == []


@pytest.mark.parametrize("shape", [(224, 224, 3), (1, 5000), (73, 10), (72, 72)])
def test_a_shrunk_picture_keeps_its_shape_and_brightness(shape) -> None:
    small = shrunk(np.full(shape, 0.25), 72)
    assert max(small.shape[:2]) <= 72
    assert small.ndim == len(shape)
    np.testing.assert_allclose(small, 0.25)


@given(st.text())
def test_visible_text_can_be_written_to_a_file_and_has_no_control_characters(text) -> None:
    shown = visible(text)
    shown.encode()
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (6, 4, 3)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_picture_has_the_pixels_that_matplotlib_gives_it(shape, kind) -> None:
    from io import BytesIO

    from matplotlib.image import imsave
    from PIL import Image

    picture = np.random.default_rng(0).random(shape).astype(kind)
    picture.flat[:2] = [0, 1][: picture.size]
    file = BytesIO()
    imsave(file, picture, cmap="gray_r", vmin=0, vmax=1, format="png")
    truth, found = (
        np.asarray(Image.open(BytesIO(each)).convert("RGB")) for each in (file.getvalue(), png(picture))
    )
    assert np.abs(truth.astype(int) - found).max() <= 1


@pytest.mark.parametrize(
    "picture", [np.full((2, 2), np.nan), np.eye(3, dtype=int), np.full((2, 2), 1.5), np.ones((2, 2, 4))]
)
def test_other_pictures_are_pictures_too(picture) -> None:
    assert png(picture).startswith(b"\x89PNG")
