"""Labels of torch data may be names of classes: of classes=, or of those that a dataset has."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import precedents as pr
from precedents import Examples, Explainer, InputError

CLASSES = ["cat", "dog", "Sneaker"]
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3
NAMES = [CLASSES[i] for i in Y.tolist()]
PAIRS = list(zip(X, NAMES, strict=True))


class Pets(Dataset):
    """Items with names, and the names of the classes as torchvision has them."""

    classes = CLASSES
    class_to_idx = {name: i for i, name in enumerate(CLASSES)}  # noqa: RUF012
    named = True

    def __len__(self) -> int:
        return len(PAIRS)

    def __getitem__(self, i: int):
        return X[i], NAMES[i] if self.named else int(Y[i])


class Numbered(Pets):
    """Items with numbers, and names for them."""

    named = False


GIVEN = {
    "list": (X, NAMES),
    "tuple": (X, tuple(NAMES)),
    "array": (X, np.array(NAMES)),
    "objects": (X, np.array(NAMES, dtype=object)),
    "series": (X, pd.Series(NAMES)),
    "categories": (X, pd.Series(NAMES, dtype="category")),
    "items": PAIRS,
    "dicts": [{"input": x, "label": name} for x, name in PAIRS],
    "loader": DataLoader(PAIRS, batch_size=5),
    "frame": pd.DataFrame(X.numpy(), columns=list("abcd")).assign(label=NAMES),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_labels_by_name_are_those_of_the_classes_in_their_order(kind) -> None:
    model = torch.nn.Linear(4, 3)
    explainer = Explainer(model, GIVEN[kind], classes=CLASSES)
    assert explainer.subject.train.labels.tolist() == Y.tolist()
    case = {"input": X[0]} if kind == "dicts" else X[0]
    expected = Explainer(model, (X, Y)).scores(X[0], labels=2)
    assert torch.allclose(explainer.scores(case, labels="Sneaker"), expected, rtol=0, atol=1e-12)
    audit = pr.audit(
        model, GIVEN[kind], GIVEN[kind], classes=CLASSES, metrics=["cos_x"], criteria=["identical_class"], k=1
    )
    assert audit.scope.names == CLASSES


def test_a_dataset_knows_the_names_of_its_classes() -> None:
    for data in (Pets(), Subset(Pets(), range(9)), DataLoader(Pets(), batch_size=4), Numbered()):
        explainer = Explainer(torch.nn.Linear(4, 3), data)
        assert explainer.classes == CLASSES
        assert explainer.explain(X[0], k=1, labels="Sneaker").predictions.tolist() == [2]
        assert explainer.subject.train.labels.tolist() == Y[: len(explainer.subject.train)].tolist()


def test_names_that_do_not_fit_the_model_are_not_taken_for_its_classes() -> None:
    assert Explainer(torch.nn.Linear(4, 5), Numbered()).classes is None
    assert Explainer(torch.nn.Linear(4, 3), TensorDataset(X, Y)).classes is None


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    for data in ((X, [*NAMES[:4], "dgo", *NAMES[5:]]), [*PAIRS[:4], (X[4], "dgo"), *PAIRS[5:]]):
        with pytest.raises(
            InputError, match=r"(instance|item) 4.* named 'dgo'\. Did you mean 'dog'\? Known: cat, dog"
        ):
            Explainer(torch.nn.Linear(4, 3), data, classes=CLASSES)
    with pytest.raises(InputError, match=r"Did you mean 'Sneaker'\?"):
        Explainer(torch.nn.Linear(4, 3), (X, Y), classes=CLASSES).explain(X[0], labels="sneakers")


def test_the_name_of_several_classes_is_refused_wherever_labels_are() -> None:
    twice, right = ["cat", "cat", "dog"], ["dog"] * 12
    model, found = torch.nn.Linear(4, 3), r"'cat', which is the name of several classes\. Pass class numbers"
    assert Explainer(model, (X, right), classes=twice).subject.train.labels.tolist() == [2] * 12
    given = [(X, ["cat"] * 12), [(x, "cat") for x in X], pd.DataFrame(X.numpy()).assign(label="cat")]
    for data in given:
        with pytest.raises(InputError, match=found):
            Explainer(model, data, classes=twice)
    with pytest.raises(InputError, match=found):
        Examples.of((X, NAMES), classes={0: "cat", 1: "cat", 2: "dog", 3: "Sneaker"})
    for classes in (twice, iter(twice)):
        with pytest.raises(InputError, match=found):
            pr.audit(model, (X, right), (X, ["cat"] * 12), classes=classes, metrics=["cos_x"])


def test_names_without_classes_ask_for_them() -> None:
    for data in ((X, NAMES), PAIRS):
        with pytest.raises(InputError, match=r"'cat', and names are no numbers.*classes=\[\.\.\.\]"):
            Explainer(torch.nn.Linear(4, 3), data)


def test_examples_take_names_and_subclasses_may_be_names() -> None:
    assert Examples.of((X, NAMES), classes=CLASSES).labels.tolist() == Y.tolist()
    model, merged = torch.nn.Linear(4, 2), (Y == 2).long()
    sets, finer = ((X, merged), (X, merged)), (Y, NAMES, np.array(NAMES))
    trials = [pr.Trial.of(model, *sets, subclasses=(each, each)) for each in finer]
    results = [pr.CRITERIA.get("identical_subclass")(trial, pr.metric("cos_x")).values for trial in trials]
    assert all(torch.equal(results[0], each) for each in results)
