"""Splits: what a repeat draws, by its seed alone."""

import pytest
import torch

from precedents import Examples, Explainer, InputError, Trial
from precedents.zoo.dataset import Dataset, Split
from precedents.zoo.datasets import DATASETS
from precedents.zoo.datasets._sklearn import shipped
from precedents.zoo.text import encoded, vocabulary

BUNDLED = {"digits": (1797, 10), "wine": (178, 3), "breast_cancer": (569, 2)}


def numbered(start: int, n: int, classes: int = 4) -> Examples:
    """Rows that say who they are."""
    rows = torch.arange(start, start + n, dtype=torch.float32)[:, None].expand(n, 2)
    return Examples.of((rows, torch.arange(n) % classes))


def fixed(**changes) -> Dataset:
    parts = {"test": numbered(100, 12), "held": 6, "keep": 10, "columns": ("a", "b")}
    fine = torch.arange(40), 100 + torch.arange(12)
    made = {**parts, "subclasses": fine, **changes}
    return Dataset("toy", "table", tuple("wxyz"), numbered(0, 40), **made)


def free() -> Dataset:
    return Dataset("toy", "table", tuple("wxyz"), numbered(0, 40), keep=10, held=6, columns=("a", "b"))


def who(examples: Examples) -> list[int]:
    return examples.take(range(len(examples))).inputs[:, 0].int().tolist()


def parts(split: Split) -> list[list[int]]:
    return [who(part) for part in (split.train, split.dev, split.test)]


@pytest.mark.parametrize("make", [fixed, free])
def test_no_instance_is_in_two_parts(make) -> None:
    split = make().split(seed=3)
    everyone = [i for part in parts(split) for i in part]
    assert len(everyone) == len(set(everyone))
    assert set(who(split.train)) <= set(who(split.pool))
    assert not set(who(split.pool)) & {*who(split.dev), *who(split.test)}


def test_sizes() -> None:
    split = fixed().split(seed=0)
    assert [len(p) for p in (split.train, split.pool, split.dev, split.test)] == [10, 34, 6, 12]
    split = free().split(seed=0)
    assert [len(p) for p in (split.train, split.pool, split.dev, split.test)] == [10, 10, 6, 24]


def test_a_fixed_development_set_stays() -> None:
    split = fixed(dev=numbered(50, 5), held=0).split(seed=0)
    assert who(split.dev) == [50, 51, 52, 53, 54]
    assert len(split.pool) == 40


@pytest.mark.parametrize("make", [fixed, free])
def test_the_seed_decides_and_nothing_else_does(make) -> None:
    before = torch.get_rng_state()
    one = make().split(seed=5)
    torch.rand(7)
    torch.set_rng_state(before)
    assert parts(one) == parts(make().split(seed=5))
    assert parts(one) != parts(make().split(seed=6))
    assert torch.equal(before, torch.get_rng_state())


def test_labels_and_subclasses_go_with_their_instances() -> None:
    split = fixed().split(seed=2)
    for part in (split.train, split.pool, split.dev):
        assert part.labels.tolist() == [i % 4 for i in who(part)]
    assert split.test.labels.tolist() == [(i - 100) % 4 for i in who(split.test)]
    assert [who(split.train), who(split.test)] == [part.tolist() for part in split.subclasses]


@pytest.mark.parametrize("keep", [0, -1, 35])
def test_what_cannot_be_drawn_is_an_error(keep) -> None:
    with pytest.raises(InputError, match="keep=1 to keep=34"):
        fixed().split(seed=0, keep=keep)
    assert len(fixed().split(seed=0, keep=34).train) == 34


def test_something_is_left_to_test_on() -> None:
    with pytest.raises(InputError, match="keep=1 to keep=33"):
        free().split(seed=0, keep=34)


def test_merged_classes_keep_the_old_ones_as_subclasses() -> None:
    split = fixed().split(seed=0)
    merged = split.merged(classes=4, seed=1)
    assert torch.equal(merged.subclasses[0], split.train.labels)
    assert torch.equal(merged.subclasses[1], split.test.labels)
    groups = dict(zip(split.pool.labels.tolist(), merged.pool.labels.tolist(), strict=True))
    assert sorted(groups.values()) == [0, 0, 1, 1]
    for old, new in ((split.train, merged.train), (split.dev, merged.dev), (split.test, merged.test)):
        assert [groups[label] for label in old.labels.tolist()] == new.labels.tolist()
    assert who(merged.test) == who(split.test)


def test_columns_are_standardized_by_the_training_rows_alone() -> None:
    rows = torch.randn(30, 3) * torch.tensor([1.0, 50.0, 0.0]) + torch.tensor([5.0, -2.0, 9.0])
    data = Dataset("toy", "table", ("x", "y"), Examples.of((rows, torch.arange(30) % 2)), keep=12, held=4)
    split = data.split(seed=0)
    scaled = split.standardized()
    ours, train = (part.take(range(12)).inputs for part in (scaled.train, split.train))
    expected = (train[:, :2] - train[:, :2].mean(0)) / train[:, :2].std(0, correction=0)
    torch.testing.assert_close(ours[:, :2], expected, rtol=1e-4, atol=1e-5)
    test, raw = (part.take(range(len(split.test))).inputs for part in (scaled.test, split.test))
    torch.testing.assert_close(test[:, 0], (raw[:, 0] - train[:, 0].mean()) / train[:, 0].std(correction=0))
    assert not ours[:, 2].any()


def test_images_are_not_standardized() -> None:
    with pytest.raises(InputError, match="Only tables"):
        DATASETS.get("digits")().split(seed=0).standardized()


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_data_sets_need_no_files(name) -> None:
    data = DATASETS.get(name)()
    assert (len(data.train), len(data.classes)) == BUNDLED[name]
    split = data.split(seed=0)
    assert len(split.train) == data.keep
    assert len(split.dev) == data.held
    shown = data.render(split.test.take([0]).inputs[0])
    assert tuple(shown) == data.columns if data.kind == "table" else shown.shape == data.shape


def test_every_data_set_is_found_by_its_name() -> None:
    names = "agnews breast_cancer cifar10 digits fashion_mnist mnist segment trec vehicle wine"
    for name in names.split():
        assert DATASETS.get(name).__name__ == name


def test_a_data_set_fits_the_explainer_and_the_trial() -> None:
    from precedents.zoo.architectures.bi_lstm import bi_lstm

    texts = [list("abab"), list("cd"), list("abc"), list("dcd"), list("zab")] * 4
    words = vocabulary(texts)
    every = Examples.of((encoded(texts, words), torch.tensor([0, 1, 0, 1, 0] * 4)))
    data = Dataset("toy", "text", ("ab", "cd"), every, keep=10, held=2, words=words)
    split = data.split(seed=0)
    model = bi_lstm(data.shape, 2)
    explainer = Explainer(
        model, split.train, "cos_x", vectorise=data.vectorise, classes=data.classes, render=data.render
    )
    case = split.test.take([0]).inputs[0]
    explanation = explainer.explain(case, k=1)
    assert explanation.top.scores[0, 0] == pytest.approx(1.0)  # the same text is among the training ones
    assert data.render(case) in explanation.to_html()
    trial = Trial.of(model, split.train, split.test, vectorise=data.vectorise, subclasses=split.subclasses)
    assert len(trial.cases) == 8


def test_digits_are_those_of_scikit_learn_by_its_file_and_by_itself(monkeypatch) -> None:
    from sklearn.datasets import load_digits

    assert shipped("digits.csv.gz") is not None
    images, labels = load_digits(return_X_y=True)
    for way in (None, lambda _: None):  # by the file, and by scikit-learn where there is no file
        if way is not None:
            monkeypatch.setattr("precedents.zoo.datasets.digits.shipped", way)
        found = DATASETS.get("digits")().train
        batch = found.take(range(len(found)))
        assert torch.equal(batch.inputs.flatten(1).double(), torch.tensor(images) / 16)
        assert batch.labels.tolist() == labels.tolist()
