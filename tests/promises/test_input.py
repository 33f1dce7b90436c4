"""Bad input: each is one line of ours, which says what is wrong with the value and what to pass."""

import json
import os
import pickle
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import tee
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

import precedents as pr
from precedents import Classifier, Examples, Explainer, InputError, PrecedentsError, Trial
from precedents.criteria.identical_class import IdenticalClass
from precedents.criteria.identical_instance import IdenticalInstance
from precedents.criteria.model_randomization import ModelRandomization
from precedents.data.parts import without
from precedents.metrics.preconditioners.ekfac import InverseEKFAC
from precedents.metrics.preconditioners.lanczos import InverseLanczos
from precedents.reproduction.settings import chosen, counted
from precedents.zoo.run import Recipe

HERE = Path(__file__).name
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3
TOKENS = torch.randint(0, 7, (12, 5), generator=torch.Generator().manual_seed(0))


def linear() -> nn.Module:
    model = nn.Linear(4, 3, bias=False)
    model.weight.data = torch.arange(12.0).reshape(3, 4).sin()
    return model


def of_tokens() -> nn.Module:
    return nn.Sequential(nn.Embedding(7, 3, padding_idx=0), nn.Flatten(), nn.Linear(15, 3))


def one_line(error: BaseException) -> str:
    said = str(error)
    assert isinstance(error, PrecedentsError)
    assert "\n" not in said
    assert len(said) < 2500
    return said


# What a user's code raises.


class Odd(BaseException):
    """Neither an Exception nor a Ctrl-C."""


RAISED = [
    KeyError("k"),
    ZeroDivisionError("z"),
    OSError("o"),
    SystemExit(0),
    Odd("w"),
    StopIteration("s"),
    GeneratorExit("g"),
]


class Raising(nn.Module):
    """Raises for inputs above 50, or always."""

    def __init__(self, error: type[BaseException], always: bool = True) -> None:
        super().__init__()
        self.layer, self.error, self.always = nn.Linear(4, 3), error, always

    def forward(self, x):
        if self.always or (x > 50).any():
            raise self.error("boo")
        return self.layer(x)


class Broken(Dataset):
    """Raises at one of its items."""

    def __init__(self, error: type[BaseException], at: int) -> None:
        self.error, self.at = error, at

    def __len__(self) -> int:
        return 12

    def __getitem__(self, i):
        if i == self.at:
            raise self.error("boo")
        return X[i], int(Y[i])


class BrokenStream(IterableDataset):
    """Raises after its first item."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __iter__(self):
        yield X[0], 0
        raise self.error("boo")


def failing(error: type[BaseException]):
    def fail(*_):
        raise error("boo")

    return fail


WHERE = {
    "model": lambda error: Explainer(Raising(error), (X, Y)),
    "model, at a case": lambda error: Explainer(Raising(error, always=False), (X, Y)).explain(X[0] + 100),
    "item 0": lambda error: Explainer(linear(), Broken(error, 0)),
    "item 5": lambda error: Explainer(linear(), Broken(error, 5)),
    "stream": lambda error: Explainer(linear(), BrokenStream(error)),
    "collate_fn": lambda error: Explainer(linear(), DataLoader(Broken(error, 99), collate_fn=failing(error))),
    "loss": lambda error: Explainer(linear(), (X, Y), loss=failing(error)),
    "render": lambda error: Explainer(linear(), (X, Y), render=failing(error)),
    "vectorise": lambda error: Explainer(linear(), (X, Y), "cos_x", vectorise=failing(error)).explain(X[0]),
    "retrain": lambda error: Trial.of(linear(), (X, Y), (X, Y), retrain=failing(error)).merged(0),
    "fresh": lambda error: Trial.of(linear(), (X, Y), (X, Y), fresh=failing(error)).randomized(0, "own"),
    "criterion": lambda error: pr.judge(Trial.of(linear(), (X, Y), (X, Y)), ["cos_x"], [failing(error)]),
}


ENDING = {  # what ends an iteration in Python itself
    ("item 0", StopIteration),
    ("collate_fn", StopIteration),
    ("stream", StopIteration),
    ("stream", GeneratorExit),
}
FAILURES = [(where, error) for where in WHERE for error in map(type, RAISED) if (where, error) not in ENDING]


@pytest.mark.parametrize(("where", "error"), FAILURES, ids=lambda each: getattr(each, "__name__", each))
def test_whatever_a_users_code_raises_is_named_with_its_own_line(where, error) -> None:
    with pytest.raises(InputError) as caught:
        WHERE[where](error)
    said = one_line(caught.value)
    assert f"{error.__name__}: " in said
    assert "boo" in said
    assert f"({HERE}, line " in said


def test_a_ctrl_c_in_a_users_code_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        Explainer(Raising(KeyboardInterrupt), (X, Y))


def test_a_users_code_without_memory_is_a_budget_error() -> None:
    with pytest.raises(pr.BudgetError, match="The model ran out of memory"):
        Explainer(Raising(MemoryError), (X, Y))


# Models and inputs that nothing can be computed with.

UNUSABLE = {
    "meta": (lambda: Explainer(linear().to("meta"), (X, Y)), "on the device meta"),
    "lazy": (
        lambda: Explainer(nn.Sequential(nn.LazyLinear(3)), (X, Y)),
        "is not initialised: its layer is lazy",
    ),
    "meta inputs": (
        lambda: Explainer(linear(), (X.to("meta"), Y)),
        "The input of the training set has a shape and",
    ),
    "meta case": (lambda: Explainer(linear(), (X, Y)).explain(X[0].to("meta")), "on the device meta"),
    "sparse": (lambda: Explainer(linear(), (X.to_sparse(), Y)), "x.to_dense()"),
    "sparse rows": (lambda: Explainer(linear(), (X.to_sparse_csr(), Y)), "x.to_dense()"),
    "sparse case": (lambda: Explainer(linear(), (X, Y)).explain(X[0].to_sparse()), "x.to_dense()"),
    "sparse labels": (lambda: Explainer(linear(), (X, Y.to_sparse())), "y.to_dense()"),
    "quantised": (
        lambda: Explainer(linear(), (torch.quantize_per_tensor(X, 0.1, 0, torch.qint8), Y)),
        "x.dequantize()",
    ),
    "complex": (lambda: Explainer(linear(), (X + 0j, Y)), "complex numbers"),
    "nested": (lambda: Explainer(linear(), (torch.nested.nested_tensor(list(X)), Y)), "is a nested tensor"),
    "integers": (lambda: Explainer(linear(), (X.long(), Y)), "x.float()"),
    "floating tokens": (lambda: Explainer(of_tokens(), (TOKENS.float(), Y)), "x.long()"),
    "a floating case of tokens": (
        lambda: Explainer(of_tokens(), (TOKENS, Y)).explain(TOKENS[0] + 0.5),
        "x.long()",
    ),
    "a dict for a tensor": (lambda: Explainer(linear(), (X, Y)).explain({"a": X[0]}), "a dict with 'a'"),
    "an unknown token": (lambda: Explainer(of_tokens(), (TOKENS, Y)).explain(TOKENS[0] + 50), "IndexError"),
    "features": (lambda: Explainer(linear(), (X, Y)).explain(X[0, :3]), r"the shape (3,), but the training"),
    "a pair for Examples": (lambda: Classifier.of(linear(), (X, Y)), "Examples.of(data)"),
    "class names": (lambda: Explainer(linear(), (X, Y), classes=["a"]), "There are 1 class names"),
    "a number of classes": (lambda: Explainer(linear(), (X, Y), classes=3), "classes is an int"),
    "a set of classes": (lambda: Explainer(linear(), (X, Y), classes={"a", "b", "c"}), "classes is a set"),
    "a word for three classes": (lambda: Explainer(linear(), (X, Y), classes="cat"), "classes is a str"),
    "no name of a class": (
        lambda: Explainer(linear(), (X, Y), classes=["a", None, "c"]),
        "The class 1 has the name None. Pass a name for each class",
    ),
    "objects that are numbers": (
        lambda: Explainer(linear(), (X.numpy().astype(object), Y)),
        "an array of objects (dtype object). Make an array of numbers of it: x.astype('float32').",
    ),
    "cases of objects that are numbers": (
        lambda: Explainer(linear(), (X, Y)).explain(X.numpy().astype(object)),
        "What was passed as cases is an array of objects (dtype object). Make an array of numbers of it: x.as",
    ),
    "objects that are no numbers": (
        lambda: Explainer(linear(), (np.array([[1.0, 2.0, 3.0, "red"]] * 12, dtype=object), Y)),
        "an array of objects (dtype object), and 'red' is no number",
    ),
    "labels of objects": (
        lambda: Explainer(linear(), (X, Y.numpy().astype(object))),
        "are an array of objects (dtype object). Make an array of numbers of it: y.astype('int64').",
    ),
    "render": (lambda: Explainer(linear(), (X, Y), render=3), "render is an int"),
    "vectorise": (lambda: Explainer(linear(), (X, Y), vectorise=3), "vectorise is an int"),
    "vectorise, of texts": (
        lambda: Explainer(linear(), (X, Y), "cos_x", vectorise=lambda _: "a").explain(X[0]),
        "vectorise gives a str",
    ),
    "vectorise, of one": (
        lambda: Explainer(linear(), (X, Y), "cos_x", vectorise=lambda x: x[:1]).explain(X[0]),
        "vectorise gives the shape (1, 4)",
    ),
    "hidden": (lambda: Explainer(linear(), (X, Y), hidden=3), "hidden has an int"),
    "an audit": (lambda: Explainer(linear(), (X, Y), audit=3), "audit is an int"),
    "subclasses": (lambda: Trial.of(linear(), (X, Y), (X, Y), subclasses=3), "subclasses is an int"),
    "retrain": (lambda: Trial.of(linear(), (X, Y), (X, Y), retrain=3), "retrain is an int"),
    "fresh": (lambda: Trial.of(linear(), (X, Y), (X, Y), fresh=3), "fresh is an int"),
    "metrics": (lambda: pr.audit(linear(), (X, Y), (X, Y), metrics=3), "metrics is an int"),
    "criteria": (lambda: pr.judge(Trial.of(linear(), (X, Y), (X, Y)), ["cos_x"], [3]), "A criterion is an int"),
    "no result": (
        lambda: pr.judge(Trial.of(linear(), (X, Y), (X, Y)), ["cos_x"], [lambda *_: 3]),
        "returned an int. Return a Result",
    ),
    "keep": (lambda: pr.audit(linear(), (X, Y), (X, Y), metrics=["cos_x"], keep=3), "keep is 3"),
    "no folder": (lambda: Explainer.load(None, linear(), (X, Y)), "folder is None"),
    "columns": (lambda: pr.tables(3), "columns is an int"),
    "Trial.of": (
        lambda: Trial.of(linear(), (X, Y), (X, Y), hiden=["0"]),
        "Trial.of() got an unexpected keyword argument 'hiden'. Did you mean 'hidden'?",
    ),
    "Classifier.of": (
        lambda: Classifier.of(linear(), Examples.of((X, Y)), memry=1),
        "Classifier.of() got an unexpected keyword argument 'memry'. Did you mean 'memory'?",
    ),
    "Explainer.load": (
        lambda: Explainer.load("none", linear(), (X, Y), rendr=1),
        "Explainer.load() got an unexpected keyword argument 'rendr'. Did you mean 'render'?",
    ),
    "damping twice": (lambda: pr.metric("cosine:gradient/hessian(damping=1, damping=2)"), "says damping twice"),
    "memory beyond any number": (lambda: Explainer(linear(), (X, Y), memory="9" * 400 + " GB"), "memory is '9"),
    "index": (lambda: Explainer(linear(), (X, Y), index=3), "Pass True or False"),
    "a case by name": (lambda: Explainer(linear(), (X, Y)).explain(X)["a"], "case is 'a'"),
    "a case that is no number": (
        lambda: Explainer(linear(), (X, Y)).explain(X).shares(float("nan"), 1),
        "Pass the place of a case",
    ),
    "no folder for a file": (
        lambda: Explainer(linear(), (X, Y)).explain(X).to_csv("/nowhere/x.csv"),
        "There is no folder /nowhere",
    ),
    "k twice": (lambda: pr.CRITERIA.read("identical_class(k=1, k=2)"), "says k twice"),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # torch's own, of such tensors
@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_used_says_what_to_pass(name) -> None:
    work, said = UNUSABLE[name]
    with pytest.raises(InputError) as caught:
        work()
    assert said in one_line(caught.value)


def test_a_mistyped_keyword_is_a_type_error_too() -> None:
    with pytest.raises(TypeError, match="Did you mean 'hidden'"):
        Trial.of(linear(), (X, Y), (X, Y), hiden=None)


@pytest.mark.parametrize(
    "option", [{"memory": "1 GB"}, {"hidden": [""]}, {"loss": nn.CrossEntropyLoss()}, {"output": 0}]
)
def test_what_a_given_classifier_makes_meaningless_is_refused_by_name(option) -> None:
    classifier = Classifier.of(linear(), Examples.of((X, Y)))
    (name,) = option
    for door in (
        lambda: Explainer(classifier, (X, Y), **option),
        lambda: Trial.of(classifier, (X, Y), (X, Y), **option),
        lambda: pr.audit(classifier, (X, Y), (X, Y), **option),
    ):
        with pytest.raises(InputError, match=f"so that {name} would do nothing"):
            door()


NAMES = ["ant", "bee", "cat"]


@pytest.mark.parametrize(
    "classes",
    [
        NAMES,
        tuple(NAMES),
        np.array(NAMES),
        pd.Index(NAMES),
        pd.Series(NAMES, index=[7, 8, 9]),
        dict(enumerate(NAMES)),
        iter(NAMES),
        map(str, NAMES),
        (name for name in NAMES),
    ],
    ids=lambda classes: type(classes).__name__,
)
def test_names_of_classes_come_in_whatever_holds_them(classes) -> None:
    again, classes = tee(classes) if isinstance(classes, Iterator) else (classes, classes)
    assert Explainer(linear(), (X, Y), classes=again).classes == NAMES
    found = pr.audit(linear(), (X, Y), (X, Y), classes=classes, metrics="cos_x", criteria="identical_class")
    assert found.scope.names == NAMES


# Cases and rows that are no numbers, and cases of another type.


def spoiled(place: int, value: float) -> torch.Tensor:
    inputs = X.clone()
    inputs[place, 1] = value
    return inputs


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("labels", [None, Y])
@pytest.mark.parametrize("metric", ["cos_grad", "cos_x"])
def test_a_case_that_is_no_number_is_named_as_a_case(value, labels, metric) -> None:
    explainer = Explainer(linear(), (X, Y), metric)
    with pytest.raises(pr.NumericalError, match=r"The loss of 1 case\(s\) is not finite: #3\."):
        explainer.explain(spoiled(3, value), labels=labels)


def test_a_training_row_that_is_no_number_is_named_as_one() -> None:
    with pytest.raises(pr.NumericalError, match=r"is not finite: #3\. .* in these training instances"):
        Explainer(linear(), (spoiled(3, float("nan")), Y)).explain(X[0])


@pytest.mark.parametrize(
    "case", [[1, 2, 3, 4], torch.arange(1, 5), np.arange(1, 5), torch.arange(1.0, 5.0).double()]
)
def test_whole_numbers_are_explained_as_the_numbers_they_are(case) -> None:
    explainer = Explainer(linear(), (X, Y))
    assert torch.equal(explainer.scores(case), explainer.scores(torch.arange(1.0, 5.0)))


# Numbers.

LARGE = 10**30  # too much of what there is a number of, and not of what can be any number
NO_COUNT = [0, -1, True, 1.0, float("nan"), float("inf"), "1", None, LARGE]
NO_AMOUNT = [0, -1.0, True, float("nan"), float("inf"), "1", [1]]
EXPLAINER = Explainer(linear(), (X, Y))
COUNTS = {
    "k": lambda value: EXPLAINER.explain(X[0], k=value),
    "k of an audit": lambda value: pr.audit(linear(), (X, Y), (X, Y), metrics=["cos_x"], k=value),
    "k of a criterion": lambda value: pr.judge(
        Trial.of(linear(), (X, Y), (X, Y)), "cos_x", [IdenticalClass(k=value)]
    ),
}
POSITIVE = {
    "m": lambda value: EXPLAINER.estimate(value),
    "draws": lambda value: ModelRandomization(draws=value),
    "most": lambda value: IdenticalInstance(most=value),
    "rank": lambda value: InverseLanczos(rank=value),
    "epochs": lambda value: Recipe("digits", "cnn", epochs=value),
    "epochs of a reproduction": lambda value: chosen("wine/mlp", 0 if value is None else value),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in [*COUNTS, *POSITIVE] for value in NO_COUNT if name in COUNTS or value != LARGE],
)
def test_a_number_of_things_is_a_whole_number_within_its_range(name, value) -> None:
    with pytest.raises(InputError) as caught:
        (COUNTS | POSITIVE)[name](value)
    assert f"{value!r}" in one_line(caught.value) or value is None


@pytest.mark.parametrize("name", [*COUNTS, *POSITIVE])
def test_numbers_of_numpy_are_numbers(name) -> None:
    (COUNTS | POSITIVE)[name](np.int64(2))


AMOUNTS = {
    "hessian": lambda value: pr.InverseHessian(damping=value),
    "fisher": lambda value: pr.InverseFisher(damping=value),
    "ekfac": lambda value: InverseEKFAC(damping=value),
    "lanczos": lambda value: InverseLanczos(damping=value),
    "afford": lambda value: pr.audit(linear(), (X, Y), (X, Y), metrics=["cos_x"], afford=value),
}


@pytest.mark.parametrize("value", NO_AMOUNT, ids=repr)
@pytest.mark.parametrize("name", AMOUNTS)
def test_a_damping_and_a_time_are_positive_and_finite(name, value) -> None:
    with pytest.raises(InputError) as caught:
        AMOUNTS[name](value)
    assert f"{value!r}" in one_line(caught.value)


@pytest.mark.parametrize("text", ["inf", "nan", "-1", "0", "1e400", "abc", "", "1, damping=2"])
@pytest.mark.parametrize("name", ["hessian", "fisher", "ekfac", "lanczos"])
def test_a_damping_in_a_text_is_positive_finite_and_said_once(name, text) -> None:
    with pytest.raises(InputError) as caught:
        pr.metric(f"cosine:gradient/{name}(damping={text})")
    assert "damping" in one_line(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *(f"identical_class(demand={value})" for value in ("2", "-1", "nan", "inf")),
        *(f"identical_class(k={value})" for value in ("1.5", "")),
        *(f"model_randomization(seed={value})" for value in ("-1", "99999999999999999999999")),
        *(f"model_randomization(fail={value})" for value in ("nan", "5")),
        *(f"identical_instance({setting})" for setting in ("most=0", "seed=-1", "demand=inf")),
        *(f"identical_subclass({setting})" for setting in ("k=x", "seed=-1", "demand=nan")),
    ],
)
def test_settings_of_criteria_are_within_their_ranges(text) -> None:
    with pytest.raises(InputError) as caught:
        pr.CRITERIA.read(text)
    one_line(caught.value)


@settings(max_examples=30)
@given(st.floats() | st.integers() | st.text(max_size=5) | st.booleans() | st.none())
def test_any_value_is_a_seed_or_is_refused(value) -> None:
    within = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    if within:
        assert ModelRandomization(seed=value).seed == value
    else:
        with pytest.raises(InputError):
            ModelRandomization(seed=value)


def test_repeats_beyond_any_use_are_refused() -> None:
    with pytest.raises(InputError, match="--repeats is"):
        counted("99999999999999999999")


# The caller's modes.


def default(kind: torch.dtype):
    class Default:
        def __enter__(self) -> None:
            torch.set_default_dtype(kind)

        def __exit__(self, *_) -> None:
            torch.set_default_dtype(torch.float32)

    return Default()


class Deterministic:
    def __enter__(self) -> None:
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *_) -> None:
        torch.use_deterministic_algorithms(False)


MODES = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.float16),
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "float64": lambda: default(torch.float64),
    "float16": lambda: default(torch.float16),
    "meta": lambda: torch.device("meta"),
    "deterministic": Deterministic,
}


class Scaled(nn.Module):
    """A parameter of its own, which is drawn by us when the model is randomized."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(12.0).reshape(4, 3).cos())

    def forward(self, x):
        return x @ self.weight


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "metric", ["cos_grad", "dot_if", "cos_fisher", "cosine:gradient/ekfac", "cosine:gradient/lanczos"]
)
def test_numbers_are_the_same_in_every_mode_of_the_caller(metric, mode) -> None:
    model = linear()

    def asked(around):
        with around:
            explainer = Explainer(model, (X, Y), metric)
            return explainer.scores(X[:3]), str(explainer.explain(X[:3], k=2))

    (wanted, said), (found, also) = asked(nullcontext()), asked(MODES[mode]())
    assert torch.equal(found, wanted)
    assert also == said


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("mode", MODES)
def test_criteria_and_audits_are_the_same_in_every_mode_of_the_caller(mode) -> None:
    model = Scaled()

    def asked(around):
        with around:
            trial = Trial.of(model, (X, Y), (X, Y))
            alone = pr.CRITERIA.get("model_randomization")(trial, pr.metric("cos_grad"))
            return alone.values, pr.audit(model, (X, Y), (X, Y), metrics=["cos_grad"]).to_json()

    (wanted, page), (found, also) = asked(nullcontext()), asked(MODES[mode]())
    assert torch.equal(found, wanted)
    assert also == page


# Folders that others have changed.


def deep() -> str:
    return "[" * 100_000 + "]" * 100_000


def manifest_with(**values):
    def change(folder: Path) -> None:
        file = folder / "index.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


def text(content: str):
    return lambda folder: (folder / "index.json").write_text(content)


def replaced(make):
    """The file of the labels is something else."""

    def change(folder: Path) -> None:
        (folder / "train.safetensors").unlink()
        make(folder / "train.safetensors")

    return change


def outside(folder: Path) -> None:
    file = folder / "index.json"
    content = json.loads(file.read_text())
    content["files"]["../outside"] = {"bytes": 0, "checksum": 0}
    (folder.parent / "outside").write_bytes(b"")
    file.write_text(json.dumps(content))


def narrower(folder: Path) -> None:
    """Vectors of another width, with their right checksums."""
    from precedents.runtime.tensor_files import TensorFiles

    file = folder / "index.json"
    content = json.loads(file.read_text())
    files = TensorFiles(folder, content["files"])
    for items in content["holdings"].values():
        for item in items:
            tensors = files.read(item["file"])
            files.write({name: value[..., :1].clone() for name, value in tensors.items()}, item["file"])
    file.write_text(json.dumps(content | {"files": files.known}))


FORGED = {
    "deep": text(deep()),
    "deep object": text('{"a":' * 50_000 + "1" + "}" * 50_000),
    "a list": text("[]"),
    "no number": text('{"format": NaN}'),
    "a key twice": text('{"format": 2, "format": 2}'),
    "no text": lambda folder: (folder / "index.json").write_bytes(b"\xff\xfe"),
    "files of numbers": manifest_with(files=3),
    "a file of a number": manifest_with(files={"train.safetensors": 3}),
    "holdings of texts": manifest_with(holdings="x"),
    "a class of another module": manifest_with(inverse={"value": {"class": ["os", "system"], "fields": {}}}),
    "outside": outside,
    "a pipe": replaced(os.mkfifo),
    "a device": replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link out": replaced(lambda path: path.symlink_to("/etc/hostname")),
    "a folder": replaced(lambda path: path.mkdir()),
    "another width": narrower,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "explainer"
    EXPLAINER.save(folder)
    return folder


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_folder_is_refused_in_one_line(name, saved, tmp_path) -> None:
    import shutil

    folder = shutil.copytree(saved, tmp_path / "copy")
    FORGED[name](folder)
    with pytest.raises(PrecedentsError) as caught:
        Explainer.load(folder, linear(), (X, Y)).explain(X[0])
    one_line(caught.value)


@pytest.mark.parametrize("question", ["explain", "scores"])
@pytest.mark.parametrize("asked", [False, True], ids=["not yet asked", "asked before"])
def test_files_that_are_cut_while_they_are_mapped_are_refused_in_one_line(
    question, asked, saved, tmp_path
) -> None:
    import shutil

    folder = shutil.copytree(saved, tmp_path / "copy")
    explainer = Explainer.load(folder, linear(), (X, Y))
    if asked:
        explainer.explain(X[0])
    for file in folder.glob("*.safetensors"):
        os.truncate(file, 8)
    with pytest.raises(
        pr.FormatError, match=r"was cut to 8 of \d+ bytes while it was in use. Save it again"
    ) as caught:
        getattr(explainer, question)(X[0])
    one_line(caught.value)


@pytest.mark.parametrize(
    "content", [deep(), "[]", '{"format": NaN}', '{"format": 1, "format": 1}', '{"format": 1}', "{"]
)
def test_a_forged_audit_is_refused_in_one_line(content) -> None:
    with pytest.raises(pr.FormatError) as caught:
        pr.Audit.from_json(content)
    one_line(caught.value)


AUDIT = pr.audit(linear(), (X, Y), (X, Y), metrics=["cos_x"], criteria=["identical_class"]).to_json()


@settings(max_examples=60)
@given(st.data())
def test_an_audit_whose_values_are_not_what_they_should_be_is_refused_or_shown(data) -> None:
    content = json.loads(AUDIT)
    value, key = content, data.draw(st.sampled_from(sorted(content)))
    while isinstance(value[key], (dict, list)) and value[key] and data.draw(st.booleans()):
        value = value[key]
        key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    value[key] = data.draw(
        st.none() | st.booleans() | st.integers(-2, 99) | st.text(max_size=3) | st.just([]) | st.just({})
    )
    try:
        found = pr.Audit.from_json(json.dumps(content))
        str(found), repr(found), found.to_json()
    except PrecedentsError as error:
        one_line(error)


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "audit"
    made = ledger_of(folder).to_json()
    before = (folder / "records.jsonl").read_bytes()
    assert ledger_of(folder).to_json() == made
    assert (folder / "records.jsonl").read_bytes() == before
    return folder


def trained_again(train: pr.Examples, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Linear(X.shape[1], int(train.labels.max()) + 1)


def ledger_of(folder: Path) -> pr.Audit:
    criteria = ["identical_class", "model_randomization", "identical_subclass"]
    asked = {"metrics": ["cos_x", "cos_last"], "criteria": criteria, "retrain": trained_again}
    return pr.audit(linear(), (X, Y), (X, Y), keep=folder, **asked)


@settings(max_examples=60)
@given(st.data())
def test_a_ledger_whose_values_are_not_what_they_should_be_is_a_damaged_line(kept, data) -> None:
    """Also if every checksum is right."""
    import shutil
    from tempfile import TemporaryDirectory

    from precedents.runtime.sealed import sealed

    lines = (kept / "records.jsonl").read_text().splitlines()
    i = data.draw(st.integers(0, len(lines) - 1))
    record = json.loads(lines[i])
    record.pop("checksum")
    value, key = record, data.draw(st.sampled_from(["piece", "value"]))
    while isinstance(value[key], (dict, list)) and value[key] and data.draw(st.booleans()):
        value = value[key]
        key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    value[key] = data.draw(
        st.none() | st.booleans() | st.integers(-2, 99) | st.text(max_size=3) | st.just([]) | st.just({})
    )
    lines[i] = sealed(json.dumps(record))
    with TemporaryDirectory() as place:
        folder = shutil.copytree(kept, Path(place) / "copy")
        (folder / "records.jsonl").write_text("".join(f"{line}\n" for line in lines))
        try:
            found = ledger_of(folder)
            str(found), repr(found), found.to_json()
        except PrecedentsError as error:
            one_line(error)


@pytest.mark.parametrize(
    "error",
    [
        pr.InputError("a"),
        pr.UnknownNameError("metric", "a", ["b"]),
        pr.KeywordError("f", "a", ["b"]),
        pr.MissingExtraError("a", "b"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_other_processes_as_they_were(error) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


# Values that are hidden or missing.


def hidden(values: np.ndarray) -> np.ma.MaskedArray:
    masked = np.ma.masked_array(values, mask=np.zeros(values.shape, dtype=bool))
    masked[(3,) * values.ndim] = np.ma.masked
    return masked


def nullable(missing: bool) -> pd.DataFrame:
    frame = pd.DataFrame(X.numpy(), columns=list("abcd")).astype("Float32")
    if missing:
        frame.iloc[3, 2] = pd.NA
    return frame


def logistic(x: np.ndarray) -> LogisticRegression:
    return LogisticRegression().fit(x, Y.numpy())


MISSING = {
    "inputs": (lambda: Explainer(linear(), (hidden(X.numpy()), Y)), "training set is a masked array"),
    "labels": (lambda: Explainer(linear(), (X, hidden(Y.numpy()))), "label vector of the training set"),
    "items": (lambda: Explainer(linear(), [(each, 1) for each in hidden(X.numpy())]), "item 3 is a masked"),
    "a label": (
        lambda: Explainer(linear(), list(zip(X, hidden(Y.numpy()), strict=True))),
        "item 3 is a masked",
    ),
    "a list of rows": (
        lambda: Explainer(linear(), ([*hidden(X.numpy())], Y)),
        r"Row 3 of the input of the training set is .* the first at \[3\]",
    ),
    "a list of labels": (lambda: Explainer(linear(), (X, [*hidden(Y.numpy())])), "Row 3 of the label vector"),
    "a case": (
        lambda: Explainer(linear(), (X, Y)).explain(hidden(X.numpy())[3]),
        "passed as cases is a masked",
    ),
    "cases": (lambda: Explainer(linear(), (X, Y)).scores(hidden(X.numpy())), "passed as cases is a masked"),
    "a test set": (lambda: Trial.of(linear(), (X, Y), (hidden(X.numpy()), Y)), "test set is a masked array"),
    "rows": (lambda: Explainer(logistic(X.numpy()), (hidden(X.numpy()), Y.numpy())), "is a masked array"),
    "a row": (
        lambda: Explainer(logistic(X.numpy()), (X.numpy(), Y.numpy())).explain(hidden(X.numpy())[3]),
        "passed as cases is a masked",
    ),
    "a nullable frame": (
        lambda: Explainer(linear(), (nullable(True), Y)),
        "NA.* in the column 'c' of the training set, first at '3'",
    ),
    "a nullable case": (
        lambda: Explainer(linear(), (X, Y)).explain(nullable(True).iloc[3]),
        r"NA.* of the cases",
    ),
    "nullable cases": (
        lambda: Explainer(linear(), (X, Y)).explain(nullable(True)),
        "NA.* of the cases, first at",
    ),
    "nan in a case": (lambda: Explainer(linear(), (X, Y)).explain(spoiled(3, float("nan"))), r"case\(s\).*#3"),
}


@pytest.mark.parametrize("name", MISSING)
def test_hidden_and_missing_values_are_named(name) -> None:
    ask, said = MISSING[name]
    with pytest.raises(PrecedentsError, match=said) as caught:
        ask()
    one_line(caught.value)


@pytest.mark.parametrize(
    "given", [lambda: np.ma.masked_array(X.numpy()), lambda: nullable(False)], ids=["masked", "nullable"]
)
def test_where_nothing_is_missing_the_numbers_are_the_same(given) -> None:
    wanted = Explainer(linear(), (X, Y)).scores(X[:3])
    assert torch.equal(Explainer(linear(), (given(), Y)).scores(given()[:3]), wanted)


# Values that torch cannot read where they are, and columns in another order.

ODD = {
    "backward rows": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "backward columns": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
    "another order of bytes": lambda a: a.astype(a.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_arrays_may_run_backward_and_have_another_order_of_bytes(odd) -> None:
    x, y = X.numpy(), Y.numpy()
    plain, made = Explainer(linear(), (X, Y)), Explainer(linear(), (odd(x), odd(y)))
    items = Explainer(linear(), [(odd(row), int(label)) for row, label in zip(x, y, strict=True)])
    for explainer in (made, items):
        assert torch.equal(explainer.scores(odd(x)[:3], labels=odd(y)[:3]), plain.scores(X[:3], labels=Y[:3]))
        assert str(explainer.explain(odd(x[2]), truth=odd(y[2:3]))) == str(plain.explain(X[2], truth=Y[2:3]))


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_arrays_of_a_collate_fn_and_of_a_render_may_be_odd_too(odd) -> None:
    items = [(odd(row), int(label)) for row, label in zip(X.numpy(), Y, strict=True)]
    train = Examples.of(
        items, collate_fn=lambda some: (odd(np.stack([x for x, _ in some])), [y for _, y in some])
    )
    assert torch.equal(train.take([0, 5]).inputs.arguments[0], X[[0, 5]])
    explainer = Explainer(linear(), (X, Y), render=lambda row: odd(row.reshape(2, 2).numpy()))
    assert (
        explainer.explain(X[0], k=1).to_html()
        == Explainer(linear(), (X, Y), render=lambda row: row.reshape(2, 2)).explain(X[0], k=1).to_html()
    )


def mixed(kinds: str) -> pd.DataFrame:
    """Whole numbers in columns of these types."""
    values = (X * 9).round().numpy()
    values[:, 1] = values[:, 1] > 0
    frame = pd.DataFrame(values, columns=list("abcd"))
    return frame.astype(dict(zip("abcd", kinds.split(), strict=True)))


@pytest.mark.parametrize(
    "kinds",
    [
        "float32 bool float32 float32",
        "float32 boolean float32 int64",
        "Int64 bool Float32 float64",
        "int64[pyarrow] bool[pyarrow] float32 Int32",
    ],
)
def test_columns_of_truth_values_stand_beside_numbers(kinds) -> None:
    frame = mixed(kinds)
    values = torch.tensor(mixed("float32 float32 float32 float32").to_numpy())
    wanted = Explainer(linear(), (values, Y)).scores(values[:3])
    explainer = Explainer(linear(), (frame, Y))
    for cases in (frame[:3], frame.astype("float32")[:3], values[:3]):
        assert torch.equal(explainer.scores(cases), wanted)
    assert torch.equal(explainer.scores(frame.iloc[2]), explainer.scores(values[2]))


def test_two_columns_of_one_name_are_two() -> None:
    frame = mixed("Int64 bool float32 float32").set_axis(list("aabc"), axis=1)
    plain = torch.tensor(mixed("float32 float32 float32 float32").to_numpy())
    wanted = Explainer(linear(), (plain, Y)).scores(plain[:3])
    assert torch.equal(Explainer(linear(), (frame, Y)).scores(frame[:3]), wanted)


SHUFFLED = list("cabd")


@pytest.mark.parametrize(
    "given", [lambda f: f[:3], lambda f: f.assign(label=Y.numpy())[:3]], ids=["alike", "more"]
)
def test_columns_of_cases_are_taken_by_their_names(given) -> None:
    frame = pd.DataFrame(X.numpy(), columns=list("abcd"))
    explainer = Explainer(linear(), (frame, Y))
    wanted, cases = explainer.scores(X[:3]), given(frame)
    other = cases[[*SHUFFLED, *cases.columns[4:]]]
    assert torch.equal(explainer.scores(other), wanted)
    assert torch.equal(explainer.scores(other.iloc[1]), explainer.scores(X[1]))
    fewer = Explainer(linear(), without(explainer.subject.train, [7]))
    assert torch.equal(fewer.scores(other), fewer.scores(X[:3]))


def test_values_without_names_are_taken_as_they_stand() -> None:
    frame = pd.DataFrame(X.numpy(), columns=list("abcd"))
    explainer = Explainer(linear(), (frame, Y))
    for cases in (pd.DataFrame(X[:3].numpy()), X[:3].numpy()):
        assert torch.equal(explainer.scores(cases), explainer.scores(X[:3]))
    assert torch.equal(explainer.scores(pd.Series(X[1].numpy())), explainer.scores(X[1]))
    numbered = Explainer(linear(), (pd.DataFrame(X.numpy()), Y))
    assert torch.equal(numbered.scores(pd.DataFrame(X[:3].numpy())[[3, 1, 0, 2]]), explainer.scores(X[:3]))


@pytest.mark.parametrize("row", [lambda f: f[:3], lambda f: f.iloc[1]], ids=["frame", "row"])
def test_cases_whose_columns_have_other_names_are_refused(row) -> None:
    frame = pd.DataFrame(X.numpy(), columns=["age", "income", "height", "weight"])
    explainer = Explainer(linear(), (frame, Y))
    with pytest.raises(
        InputError, match=r"cases have no column age, .*Their columns are years, income"
    ) as caught:
        explainer.explain(row(frame.rename(columns={"age": "years"})))
    one_line(caught.value)


@pytest.mark.parametrize("order", [SHUFFLED, list("abce")])
def test_sets_whose_columns_are_others_than_those_of_the_training_set_are_refused(order) -> None:
    frame = pd.DataFrame(X.numpy(), columns=list("abcd"))
    test = frame.set_axis(order, axis=1)
    explainer = Explainer(linear(), (frame, Y))
    asked = [
        lambda: Trial.of(linear(), (frame, Y), (test, Y)),
        lambda: explainer.near_duplicates((test, Y)),
        lambda: pr.audit(linear(), (frame, Y), Examples.of((test, Y)), metrics=["cos_x"]),
    ]
    for ask in asked:
        with pytest.raises(
            InputError, match=r"Column \d of the test set is '\w', and of the training set"
        ) as caught:
            ask()
        one_line(caught.value)


def test_a_frame_without_columns_is_refused_in_one_line() -> None:
    with pytest.raises(PrecedentsError, match=r"cannot take inputs of the shape \(2, 0\)") as caught:
        Explainer(linear(), (pd.DataFrame(index=range(12)), Y))
    one_line(caught.value)
