"""Labels of cases may be names of classes, for every kind of model whose names are known."""

import hugging
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from precedents import Explainer, InputError

NAMES = ["Boot", "Shirt", "Sneaker"]
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)
Y = torch.arange(12) % 3


def pytorch(**options) -> Explainer:
    torch.manual_seed(0)
    return Explainer(torch.nn.Linear(4, 3).double(), (X, Y), **options)


def scikit_learn(y, **options) -> Explainer:
    return Explainer(LogisticRegression().fit(X.numpy(), y), (X.numpy(), y), **options)


EXPLAINERS = {
    "pytorch": lambda: pytorch(classes=NAMES),
    "a mapping": lambda: pytorch(classes=dict(enumerate(NAMES))),
    "scikit-learn": lambda: scikit_learn(np.array(NAMES)[Y]),
    "scikit-learn, named": lambda: scikit_learn(Y.numpy() + 5, classes=NAMES),
}


@pytest.mark.parametrize("kind", EXPLAINERS)
def test_a_name_is_the_class_that_has_it(kind) -> None:
    explainer = EXPLAINERS[kind]()
    for one in ("Sneaker", ["Sneaker"], np.array("Sneaker"), np.str_("Sneaker"), np.array(["Sneaker"])):
        for x in (X[0], X[:1]):
            assert explainer.explain(x, k=1, labels=one).predictions.tolist() == [2]
    given = ["Sneaker", "Boot"]
    for several in (given, tuple(given), np.array(given), pd.Series(given), pl.Series(given)):
        assert explainer.explain(X[:2], k=1, labels=several).predictions.tolist() == [2, 0]
    both = explainer.scores(X[:2], labels=given)
    assert torch.allclose(both[0], explainer.scores(X[0], labels="Sneaker")[0], rtol=0, atol=1e-12)
    assert str(explainer.explain(X[0], k=1, labels="Sneaker")).startswith("taken for Sneaker")


@pytest.mark.parametrize(
    "one", [1, [1], np.int64(1), np.array(1), np.array([1]), torch.tensor(1), torch.tensor([1])]
)
def test_one_case_takes_a_number_alone_or_in_a_list(one) -> None:
    for explainer in (pytorch(), scikit_learn(Y.numpy())):
        for x in (X[0], X[:1]):
            assert explainer.explain(x, k=1, labels=one).predictions.tolist() == [1]


def test_names_and_numbers_may_stand_side_by_side() -> None:
    assert pytorch(classes=NAMES).explain(X[:2], k=1, labels=["Shirt", 2]).predictions.tolist() == [1, 2]


def test_words_that_are_numbers_name_the_classes_of_scikit_learn() -> None:
    assert scikit_learn(Y.numpy() + 5).explain(X[0], k=1, labels="6").predictions.tolist() == [1]


def test_names_of_hugging_face() -> None:
    rows = hugging.texts(12, seed=1)
    pair = hugging.trained("bert", 5), hugging.tokenizer()
    explainer = Explainer(pair, rows, classes=NAMES)
    for one in ("Sneaker", ["Sneaker"], 2, [2]):
        assert explainer.explain(rows[0]["text"], k=1, labels=one).predictions.tolist() == [2]
    with pytest.raises(InputError, match=r"is 'Sneker'.*names of classes: .*Boot, Shirt, Sneaker"):
        explainer.explain(rows[0]["text"], labels="Sneker")


def test_a_loaded_explainer_knows_the_names(tmp_path) -> None:
    explainer = pytorch(classes=NAMES)
    explainer.save(tmp_path / "kept")
    loaded = Explainer.load(tmp_path / "kept", explainer.subject.classifier.module, (X, Y))
    assert loaded.explain(X[0], k=1, labels="Shirt").predictions.tolist() == [1]


def test_what_names_no_class_is_refused_with_the_known_names() -> None:
    named = pytorch(classes=NAMES)
    with pytest.raises(
        InputError, match=r"^No class is named 'Sneker'. Did you mean 'Sneaker'\? Known: Boot, Shirt, "
    ):
        named.explain(X[0], labels="Sneker")
    with pytest.raises(InputError, match=r"are no numbers, as 'Boot'.*classes=\[\.\.\.\]"):
        pytorch().explain(X[0], labels="Boot")
    with pytest.raises(InputError, match=r"is 'Sneker', which .* Its classes are: 'Boot', 'Shirt', 'Sneaker'"):
        EXPLAINERS["scikit-learn"]().explain(X[0], labels="Sneker")
    with pytest.raises(InputError, match=r"'Boot' is the name of several classes. Pass the class number"):
        pytorch(classes=["Boot", "Boot", "Shirt"]).explain(X[0], labels="Boot")
    with pytest.raises(InputError, match=r"labels is 'Boot', one label, but there are 2 cases. Pass a list"):
        named.explain(X[:2], labels="Boot")
    with pytest.raises(InputError, match=r"have the shape \(2,\); 1 inputs need \(1,\)"):
        named.explain(X[0], labels=["Boot", "Shirt"])
