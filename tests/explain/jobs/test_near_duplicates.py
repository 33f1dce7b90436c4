import pytest
import torch

import precedents as pr


@pytest.fixture(scope="module")
def pictures():
    """Blots of 28 x 28 pixels, and the same again: as they are, with noise, and moved."""
    draw = torch.Generator().manual_seed(0)
    coarse = torch.rand(60, 1, 7, 7, generator=draw)
    x = torch.nn.functional.interpolate(coarse, scale_factor=4, mode="bilinear")
    x[..., :4, :] = x[..., -4:, :] = 0
    x[..., :, :4] = x[..., :, -4:] = 0
    noise = x[10:20] + 0.02 * torch.randn(10, 1, 28, 28, generator=draw)
    moved = torch.zeros_like(x[20:30])
    moved[..., 2:, 1:] = x[20:30, :, :-2, :-1]
    every = torch.cat([x, x[:10], noise, moved])
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 2))
    return pr.Explainer(model, (every, torch.arange(90) % 2)), x


def pairs(found: pr.NearDuplicates, where: str, exact: bool) -> set[tuple[int, int]]:
    return {(p.index, p.other) for p in found.pairs if p.where == where and p.exact == exact}


def test_copies_noise_and_shifts_are_found_and_nothing_else(pictures) -> None:
    explainer, _ = pictures
    found = explainer.near_duplicates()
    assert pairs(found, "train", True) == {(i, 60 + i) for i in range(10)}
    assert pairs(found, "train", False) == {(i, 60 + i) for i in range(10, 30)}
    assert "10 exact and 20 near duplicates within the training set" in str(found)


def test_they_are_found_between_the_sets(pictures) -> None:
    explainer, x = pictures
    found = explainer.near_duplicates((torch.cat([x[40:42], x[45:46] + 0.01]), torch.tensor([0, 0, 1])))
    assert pairs(found, "test", True) == {(40, 0), (41, 1)}
    assert pairs(found, "test", False) == {(45, 2)}
    frame = found.to_frame()
    own = frame[frame["where"] == "test"]
    assert own["conflict"].tolist() == [bool(i % 2 != label) for i, label in ((40, 0), (41, 0), (45, 1))]


def test_texts_are_the_same_whatever_their_case_and_blanks() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [
        "Where is the river?",
        "who wrote  this book",
        "where is the RIVER",
        "When was she born in the city of Bonn?",
    ]
    texts += ["When was she born in the city of Born?", "what is it", "Who wrote this book"]
    labels = [0, 1, 0, 1, 1, 0, 1]
    model = make_pipeline(CountVectorizer(lowercase=False), LogisticRegression()).fit(texts, labels)
    found = pr.Explainer(model, (texts, labels)).near_duplicates(least=0.9)
    every = pairs(found, "train", True) | pairs(found, "train", False)
    assert every == {(0, 2), (1, 6), (3, 4)}


def test_rows_of_a_table_are_near_in_standard_deviations() -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(50, 6, generator=draw) * torch.tensor([1, 10, 100, 1, 1, 0.1])
    every = torch.cat([x, x[:3], x[3:6] * 1.002])
    found = pr.Explainer(torch.nn.Linear(6, 2), (every, torch.arange(56) % 2)).near_duplicates()
    assert pairs(found, "train", True) == {(i, 50 + i) for i in range(3)}
    assert pairs(found, "train", False) == {(i, 50 + i) for i in range(3, 6)}


def test_one_training_instance_has_no_duplicates() -> None:
    explainer = pr.Explainer(torch.nn.Linear(2, 2), (torch.eye(2)[:1], torch.tensor([0])))
    assert len(explainer.near_duplicates()) == 0


@pytest.mark.parametrize("least", [-0.1, 1.5, "0.9", True])
def test_a_likeness_that_cannot_be_is_refused(least, pictures) -> None:
    with pytest.raises(pr.InputError, match="Pass a number from 0 to 1"):
        pictures[0].near_duplicates(least=least)


def test_each_test_case_is_exactly_the_first_of_equal_instances_and_near_to_none_of_them(pictures) -> None:
    explainer, x = pictures
    found = explainer.near_duplicates((x[:3], torch.zeros(3, dtype=torch.long)))
    assert pairs(found, "test", True) == {(i, i) for i in range(3)}
    assert not pairs(found, "test", False) & {(60 + i, i) for i in range(3)}


@pytest.mark.parametrize("wrong", [torch.full((2, 1, 28, 28), torch.nan), torch.rand(2, 1, 9, 9)])
def test_a_test_set_that_the_model_cannot_take_is_refused(wrong, pictures) -> None:
    with pytest.raises(pr.PrecedentsError):
        pictures[0].near_duplicates((wrong, torch.zeros(2, dtype=torch.long)))
