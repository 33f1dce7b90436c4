import numpy as np
import pytest
import torch

import precedents as pr
from precedents.views.instance import shown

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.fixture
def image() -> torch.Tensor:
    """Colours [3, 4, 5] within 0..1, not all the way."""
    return 0.2 + 0.5 * torch.rand(3, 4, 5)


def normalised(image, mean, std) -> torch.Tensor:
    return (image - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def test_a_normalised_image_is_shown_as_it_was(image) -> None:
    picture = shown(normalised(image, MEAN, STD), pr.images(MEAN, STD))
    np.testing.assert_allclose(picture, image.permute(1, 2, 0), atol=1e-6)


def test_an_image_that_was_bytes_is_shown_as_it_was(image) -> None:
    picture = shown((255 * image - 127.5) / 127.5, pr.images(127.5, 127.5))
    np.testing.assert_allclose(picture, image.permute(1, 2, 0), atol=1e-6)


@pytest.mark.parametrize(("channels", "order"), [("first", (0, 1, 2)), ("last", (1, 2, 0)), (None, (1, 2, 0))])
def test_channels_are_where_they_are_said_to_be(channels, order, image) -> None:
    render = pr.images(0.5, 0.5, channels)
    picture = shown(((image - 0.5) / 0.5).permute(order), render)
    np.testing.assert_allclose(picture, image.permute(1, 2, 0), atol=1e-6)


def test_what_is_said_of_the_channels_counts_more_than_the_shape() -> None:
    image = torch.rand(3, 4, 3)
    np.testing.assert_allclose(shown(image, pr.images(channels="first")), image.permute(1, 2, 0), atol=1e-6)
    np.testing.assert_allclose(shown(image, pr.images(channels="last")), image, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (4, 5, 1), (1, 1, 4, 5)])
def test_white_is_white_in_grey_images(shape) -> None:
    picture = shown(torch.full(shape, 2.0), pr.images(mean=0.5, std=0.25))
    assert picture.shape == (4, 5, 3)
    assert (picture == 1).all()


def test_without_mean_and_std_the_smallest_is_black_and_the_largest_white() -> None:
    picture = shown(torch.tensor([[-3.0, 1.0], [0.0, -1.0]]), pr.images())
    assert picture[..., 0].tolist() == [[0, 1], [0.75, 0.5]]


def test_bytes_with_a_channel_keep_their_brightness() -> None:
    image = torch.full((1, 2, 2), 51, dtype=torch.uint8)
    assert shown(image).tolist() == [[0.2, 0.2], [0.2, 0.2]]
    assert shown(image, pr.images()).tolist() == [[[0.2] * 3] * 2] * 2


def test_what_is_no_number_is_drawn_as_nothing() -> None:
    assert shown(torch.tensor([[float("nan"), 1.0]])).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pr.images(channels="middle"), r"channels is 'middle'. Use one of: first, last"),
        (lambda: pr.images(mean="grey"), r"mean is 'grey'. Pass a number, or one for each"),
        (
            lambda: shown(torch.rand(1, 4, 5), pr.images(MEAN, STD)),
            r"mean has 3 numbers, but there are 1",
        ),
        (lambda: shown(torch.rand(4), pr.tables("abc")), r"A row has 4 values, but 3 columns are named"),
        (
            lambda: shown(torch.rand(3), pr.tables("abc", std=[1, 2])),
            r"std has 2 numbers, but there are 3",
        ),
        (lambda: shown(torch.tensor([0, 9]), pr.texts(["a", "b"])), r"Token 9 has no word; there are 2"),
        (lambda: shown(torch.tensor([-1]), pr.texts(["a", "b"])), r"Token -1 has no word"),
        (lambda: shown(torch.tensor([5]), pr.texts({4: "a"})), r"Token 5 has no word"),
    ],
)
def test_what_does_not_fit_is_refused(make, message) -> None:
    with pytest.raises(pr.InputError, match=message):
        make()


class Tokenizer:
    def decode(self, numbers: list[int]) -> str:
        return "-".join(map(str, numbers))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["", "one", "two", "three"], "two one three"),
        ({0: "", 1: "one", 2: "two", 3: "three"}, "two one three"),
        ({"three": 3, "": 0, "one": 1, "two": 2, "zwei": 2}, "two one three"),
        (Tokenizer(), "2-1-3-0-0"),
        (Tokenizer().decode, "2-1-3-0-0"),
    ],
    ids=["sequence", "mapping", "mapping from words", "tokenizer", "function"],
)
def test_tokens_are_words(words, text) -> None:
    assert shown(torch.tensor([2, 1, 3, 0, 0]), pr.texts(words)) == text


def test_the_first_part_of_a_nest_is_rendered() -> None:
    nest = {"input_ids": torch.tensor([1, 0]), "attention_mask": torch.tensor([1, 0])}
    assert shown(nest, pr.texts(["", "word"])) == "word"


def test_rows_have_named_columns_and_their_own_units() -> None:
    row = torch.tensor([1.0, -1.0], dtype=torch.double)
    assert shown(row, pr.tables(["age", "height"])) == {"age": 1.0, "height": -1.0}
    assert shown(row, pr.tables(["age", "height"], mean=[40, 170], std=[10, 8])) == {
        "age": 50.0,
        "height": 162.0,
    }
    assert shown(torch.tensor([3, 4]), pr.tables("ab")) == {"a": 3, "b": 4}


class Tokenizer:
    pad_token_id = 7

    def decode(self, numbers: list[int]) -> str:
        return "-".join(map(str, numbers))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["<pad>", "one", "two"], "one <pad> two"),
        ({0: "[PAD]", 1: "one", 2: "two"}, "one [PAD] two"),
        (Tokenizer(), "1-0-2-0-0"),
    ],
)
def test_padding_at_the_end_is_not_shown_where_it_is_known(words, text) -> None:
    assert shown(torch.tensor([1, 0, 2, 0, 0]), pr.texts(words)) == text
    assert shown(torch.tensor([7, 7]), pr.texts(Tokenizer())) == ""


def test_padding_counts_in_no_likeness() -> None:
    words = ["<pad>", *(f"{i**9 % 999_999_937:x}" for i in range(60, 110))]
    x = torch.randint(1, 51, (30, 12), generator=torch.Generator().manual_seed(0))
    x[:, 6:] = 0
    x[0, :], x[1, :] = torch.arange(1, 13), torch.tensor([*range(1, 12), 40])
    model = torch.nn.Sequential(torch.nn.Embedding(51, 4), torch.nn.Flatten(), torch.nn.Linear(48, 2))
    found = pr.Explainer(model, (x, torch.arange(30) % 2), render=pr.texts(words)).near_duplicates(least=0.8)
    assert {(pair.index, pair.other) for pair in found.pairs} == {(0, 1)}
