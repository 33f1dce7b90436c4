"""Nothing stale: kept work knows what it was made of by what that does, and data that change are named."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hugging
import numpy as np
import pandas as pd
import pytest
import torch
from conftest import blobs, mlp, retrained, trained
from scipy.sparse import csr_matrix
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import precedents as pr
from precedents import Audit, Examples, Explainer, StaleError, Trial, audit
from precedents.classifier.behaviour import differences, sketched
from precedents.data import sources, watch
from precedents.data.parts import together, without
from precedents.metrics.preconditioners.hessian import CURVATURE
from precedents.runtime.code import code_mark
from precedents.runtime.sealed import sealed
from precedents.zoo.run import Prepared, Recipe, Run

TRAIN, TEST = blobs(45, seed=1), blobs(12, seed=2)


class Net(nn.Module):
    """With what no state has: an attribute, and a buffer that is not kept."""

    def __init__(self, temperature: float = 1.0, shift: float = 0.0) -> None:
        super().__init__()
        self.body, self.temperature = trained(mlp, TRAIN), temperature
        self.register_buffer("shift", torch.tensor([shift, 0.0, 0.0], dtype=torch.double), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) / self.temperature + self.shift


def bent() -> Net:
    """Another forward with the same weights, that differs for few instances."""

    class Net(globals()["Net"]):  # of the same name
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * torch.where(x[:, :1] > 2.5, 1.1, 1.0)

    return Net()


def frozen() -> Net:
    net = Net()
    net.body[0].requires_grad_(False)
    return net


def given(weight: float) -> Callable[[Tensor, Tensor], Tensor]:
    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return weight * cross_entropy(logits, labels, reduction="none")

    return loss


def seen(last: float) -> Callable[[Tensor], Tensor]:
    """Vectors that differ for the last training instance alone."""
    return lambda x: torch.where((x == TRAIN[0][-1]).all(dim=1, keepdim=True), last * x, x)


def drawn(scale: float) -> Callable[[int], nn.Module]:
    def fresh(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        net = Net()
        for p in net.parameters():
            p.data = scale * torch.randn_like(p)
        return net

    return fresh


MODELS = {
    "temperature": (lambda: Net(temperature=1.01), "the logits of the model"),
    "buffer": (lambda: Net(shift=0.01), "the logits of the model"),
    "forward": (bent, "the logits of the model"),
}


# Saved explainers.


@pytest.mark.parametrize("metric", ["cos_grad", "cos_x"])
@pytest.mark.parametrize("what", MODELS)
def test_a_saved_explainer_knows_the_forward_pass(what, metric, tmp_path) -> None:
    Explainer(Net(), TRAIN, metric).save(tmp_path / "saved")
    other, named = MODELS[what]
    said = rf"{named} \(\d+ of 45 instances, the first at \d+\)"
    if what == "temperature":
        said = r"an attribute \(temperature: 1.0 then, 1.01 now\)\. "
    with pytest.raises(StaleError, match=f"these differ: {said}"):
        Explainer.load(tmp_path / "saved", other(), TRAIN)
    assert Explainer.load(tmp_path / "saved", Net(), TRAIN).explain(TEST[0]).metric == metric


OPTIONS = {
    "loss": ({"loss": given(1.0)}, {"loss": given(2.0)}, "cos_grad", "the losses .* so pass the same loss"),
    "vectorise": ({"vectorise": seen(1.0)}, {"vectorise": seen(1.001)}, "cos_x", "the vectors of the inputs"),
    "no vectorise": ({}, {"vectorise": seen(2.0)}, "cos_x", "the vectors of the inputs"),
}


@pytest.mark.parametrize("what", OPTIONS)
def test_a_saved_explainer_knows_functions_by_their_values(what, tmp_path) -> None:
    then, now, metric, named = OPTIONS[what]
    Explainer(Net(), TRAIN, metric, **then).save(tmp_path / "saved")
    with pytest.raises(StaleError, match=named):
        Explainer.load(tmp_path / "saved", Net(), TRAIN, **now)
    Explainer.load(tmp_path / "saved", Net(), TRAIN, **then)


def test_a_saved_explainer_knows_what_is_trainable(tmp_path) -> None:
    Explainer(Net(), TRAIN).save(tmp_path / "saved")
    with pytest.raises(StaleError, match=r"which parameters are frozen \(body\.0\.weight and 1 more\)"):
        Explainer.load(tmp_path / "saved", frozen(), TRAIN)


def test_a_saved_explainer_knows_torch(tmp_path) -> None:
    Explainer(Net(), TRAIN).save(tmp_path / "saved")
    file = tmp_path / "saved" / "index.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    content["origin"]["torch"] = "1.0"
    file.write_text(sealed(json.dumps(content)))
    with pytest.raises(StaleError, match=r"the version of torch \(1\.0 then, .* now\)"):
        Explainer.load(tmp_path / "saved", Net(), TRAIN)


def test_rounding_is_no_difference() -> None:
    rows = torch.randn(20, 30, dtype=torch.double)
    then, now = {"logits": sketched(rows)}, {"logits": sketched(rows * (1 + 1e-10))}
    assert list(differences(then, now, 1e-8)) == []
    assert len(list(differences(then, {"logits": sketched(rows * 1.001)}, 1e-8))) == 1


# Kept audits.


def kept(folder: Path | None, model: nn.Module | None = None, **options: Any) -> Audit:
    few = {"metrics": ["cos_grad", "cos_x"], "criteria": ["identical_class", "model_randomization(draws=1)"]}
    return audit(model or Net(), TRAIN, TEST, keep=folder, **(few | options))


@pytest.mark.parametrize("what", [*MODELS, "frozen"])
def test_a_kept_audit_knows_the_forward_pass(what, tmp_path) -> None:
    kept(tmp_path)
    other, named = (MODELS | {"frozen": (frozen, "differs in: trainable")})[what]
    with pytest.raises(StaleError, match=named):
        kept(tmp_path, other())


AUDITED = {
    "loss": (given(1.0), given(2.0), "the losses of the training set"),
    "vectorise": (seen(1.0), seen(1.001), "the vectors of the inputs"),
    "fresh": (drawn(1.0), drawn(2.0), "the random model of seed 0, so pass the same fresh"),
}


@pytest.mark.parametrize("what", AUDITED)
def test_a_kept_audit_knows_functions_by_their_values(what, tmp_path) -> None:
    then, now, named = AUDITED[what]
    first = kept(tmp_path, **{what: then}).to_json()
    with pytest.raises(StaleError, match=named):
        kept(tmp_path, **{what: now})
    assert kept(tmp_path, **{what: then}).to_json() == first


def merged(steps: int) -> Callable[[pr.Examples, int], nn.Module]:
    def retrain(train: pr.Examples, seed: int) -> nn.Module:
        batch = train.take(range(len(train)))
        return trained(lambda: mlp(classes=2), (batch.inputs, batch.labels), steps=steps, seed=seed)

    return retrain


@pytest.mark.parametrize("share", [0.9, 1.0])
def test_a_kept_audit_knows_another_retrain_also_when_it_is_finished(share, tmp_path) -> None:
    options = {"criteria": ["identical_subclass"], "metrics": ["cos_grad", "cos_last"]}
    expected = kept(tmp_path, retrain=merged(30), **options).to_json()
    records = tmp_path / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[: round(share * len(lines))]))
    with pytest.raises(StaleError, match="retrain, seed 0"):
        kept(tmp_path, retrain=merged(3), **options)
    assert kept(tmp_path, retrain=merged(30), **options).to_json() == expected


@pytest.mark.parametrize("steps", ["3", "30 "])
def test_a_kept_audit_knows_a_file_that_retrain_reads(steps, tmp_path) -> None:
    options = {"criteria": ["identical_subclass"], "metrics": ["cos_grad"]}
    recipe = tmp_path / "steps.txt"
    recipe.write_text("30")

    def retrain(train: pr.Examples, seed: int) -> nn.Module:
        return merged(int(recipe.read_text()))(train, seed)

    first = kept(tmp_path / "kept", retrain=retrain, **options).to_json()
    recipe.write_text(steps)
    if int(steps) == 30:  # another file, the same model
        assert kept(tmp_path / "kept", retrain=retrain, **options).to_json() == first
    else:
        with pytest.raises(StaleError, match="retrain, seed 0"):
            kept(tmp_path / "kept", retrain=retrain, **options)


def test_a_retrain_of_other_code_that_does_the_same_is_taken(tmp_path) -> None:
    options = {"criteria": ["identical_subclass"], "metrics": ["cos_grad"]}
    first = kept(tmp_path, retrain=merged(30), **options).to_json()
    assert kept(tmp_path, retrain=lambda train, seed: retrained(train, seed), **options).to_json() == first


@pytest.mark.parametrize("kind", ["criterion", "features"])
def test_a_part_of_the_users_is_known_by_its_code(kind, tmp_path) -> None:
    def options(factor: float) -> dict[str, Any]:
        def own(*given: Any) -> Any:
            if kind == "criterion":
                return pr.rate("own", torch.full((12,), factor > 1), 0.5, 0.95)
            return factor * given[1].inputs

        dot = pr.metric("dot_x").similarity
        return {"criteria": [own]} if kind == "criterion" else {"metrics": [pr.Metric(own, dot)]}

    kept(tmp_path, **options(1.0))
    kept(tmp_path, **options(1.0))
    with pytest.raises(StaleError, match="own parts"):
        kept(tmp_path, **options(2.0))


def test_an_explainer_refuses_the_audit_of_another_forward_pass() -> None:
    found = Audit.from_json(kept(None).to_json())
    Explainer(Net(), TRAIN, audit=found)
    with pytest.raises(
        StaleError, match="gives other logits on the training set, though its weights are the same"
    ):
        Explainer(Net(temperature=1.5), TRAIN, audit=found)


def test_code_marks_tell_code_closures_defaults_and_globals() -> None:
    marks = {code_mark(each) for each in (merged(1), merged(2), drawn(1.0), seen(1.0), Net, lambda x=1: x)}
    assert len(marks) == 6
    assert code_mark(merged(1)) == code_mark(merged(1))


# Memory.


def test_what_memory_left_out_is_no_result(tmp_path) -> None:
    options = {"metrics": ["cos_x", "cosine:gradient/hessian(kind=exact)"], "criteria": ["identical_class"]}
    small = kept(tmp_path, memory=100_000, **options)
    assert "needs" in small["cosine:gradient/hessian(kind=exact)", "identical_class"].reason
    assert kept(tmp_path, memory="1 GB", **options).to_json() == kept(None, **options).to_json()


def test_another_memory_that_chooses_another_curvature_is_refused_and_none_goes_on(tmp_path) -> None:
    options = {"metrics": ["cos_if"], "criteria": ["identical_class"]}
    small = kept(tmp_path, memory=200_000, **options)
    said = "as the memory budget has no room for exact Hessian: another memory= gives other numbers"
    assert said in " ".join(str(small).split())
    with pytest.raises(StaleError, match=r"differs in: .*curvature"):
        kept(tmp_path, memory="1 GB", **options)
    assert kept(tmp_path, **options)["cos_if", "identical_class"].values.tolist() == (
        small["cos_if", "identical_class"].values.tolist()
    )


def test_a_curvature_that_was_left_out_is_not_spoken_of() -> None:
    options = {"metrics": ["cos_x", "cos_if"], "criteria": ["identical_class"]}
    found = kept(None, memory=200_000, afford=1e-9, **options)
    assert found["cos_if", "identical_class"].kind == "left out"
    assert "other numbers" not in str(found)


def test_explanations_name_their_curvature(tmp_path) -> None:
    small, large = (Explainer(Net(), TRAIN, "cos_if", memory=memory) for memory in (200_000, "1 GB"))
    assert str(large.explain(TEST[0][0])).endswith("\nCurvature: exact Hessian, negative curvature dropped.")
    assert "no room for exact Hessian" in small.explain(TEST[0][0]).to_dict()["curvature"]
    assert Explainer(Net(), TRAIN).explain(TEST[0][0]).to_dict()["curvature"] is None
    small.save(tmp_path / "saved")
    loaded = Explainer.load(tmp_path / "saved", Net(), TRAIN)
    assert loaded.relevance.workspace.cache.get(CURVATURE) != "exact"
    assert torch.equal(loaded.scores(TEST[0]), small.scores(TEST[0]))


# Runs.


def test_a_run_whose_model_does_something_else_is_refused(tmp_path) -> None:
    Prepared.of(Recipe("wine", "logistic_regression", epochs=1)).run().write(tmp_path / "run")
    Run.open(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    content = json.loads(file.read_text())
    del content["checksum"]
    content["logits"] = " ".join(str(2 * float(each)) for each in content["logits"].split())
    file.write_text(sealed(json.dumps(content)))
    with pytest.raises(StaleError, match="gives other logits than when it was trained"):
        Run.open(tmp_path / "run")


# Data that change.


def explained(explainer: Explainer, folder: Path) -> None:
    explainer.explain(TEST[0][0])


def scored(explainer: Explainer, folder: Path) -> None:
    explainer.scores(TEST[0])


def saved(explainer: Explainer, folder: Path) -> None:
    explainer.save(folder / "saved")


def tensors() -> tuple[Any, Any]:
    return TRAIN[0].clone(), TRAIN[1].clone()


def arrays() -> tuple[Any, Any]:
    return TRAIN[0].numpy().copy(), TRAIN[1].numpy().astype(np.int32)


def halves() -> tuple[Any, Any]:
    return TRAIN[0].float().clone(), TRAIN[1].clone()


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], str]] = {
    "in place": (tensors, lambda x, y: x[3].add_(1), r"Row 3 of the training set has changed"),
    "two rows": (tensors, lambda x, y: x[[5, 7]].add_(0) is x.__setitem__([5, 7], 0.0), "Row 5 and 1 more"),
    "behind torch": (tensors, lambda x, y: x.data.__setitem__((44, 4), 9.0), "Row 44 "),
    "labels": (tensors, lambda x, y: y.__setitem__(2, 0), "Label 2 of the training set"),
    "array": (arrays, lambda x, y: x.__setitem__((0, 0), 5.0), "Row 0 "),
    "array of labels": (arrays, lambda x, y: y.__setitem__(1, 2), "Label 1 "),
    "half precision": (halves, lambda x, y: x.__setitem__((9, 2), 0.0), "Row 9 "),
}


@pytest.mark.parametrize("ask", [explained, scored, saved])
@pytest.mark.parametrize("what", CHANGES)
def test_data_that_change_are_named(what, ask, tmp_path) -> None:
    make, change, named = CHANGES[what]
    x, y = make()
    explainer = Explainer(
        trained(mlp, TRAIN).float() if what == "half precision" else Net(), (x, y), "dot_fisher"
    )
    before = explainer.scores(x[:1])
    assert torch.equal(explainer.scores(x[:1]), before)
    change(x, y)
    with pytest.raises(StaleError, match=f"{named}.*Make a new Explainer"):
        ask(explainer, tmp_path)
    assert not list(tmp_path.iterdir())
    assert len(Explainer(explainer.subject.classifier, (x, y)).scores(x[:1])) == 1


@pytest.mark.parametrize("which", ["train", "test"])
def test_a_trial_names_what_changed(which) -> None:
    sets = {"train": tensors(), "test": (TEST[0].clone(), TEST[1].clone())}
    trial = Trial.of(Net(), sets["train"], sets["test"])
    trial.scores(pr.metric("cos_x"))
    sets[which][0][4] = 0.0
    with pytest.raises(StaleError, match=f"Row 4 of the {'training' if which == 'train' else 'test'} set"):
        trial.scores(pr.metric("cos_x"))


HELD = {
    "a loader": lambda x, y: DataLoader(TensorDataset(x, y), batch_size=7),
    "a subset": lambda x, y: Subset(TensorDataset(x, y), range(1, len(x))),
    "a loader of a subset": lambda x, y: DataLoader(Subset(TensorDataset(x, y), list(range(len(x)))), 7),
    "a list": lambda x, y: [(x[i], int(y[i])) for i in range(len(x))],
}


@pytest.mark.parametrize("ask", [lambda e: e.explain(TEST[0]), lambda e: e.answers(3, TEST[0])])
@pytest.mark.parametrize("held", HELD)
def test_tensors_below_a_data_set_are_watched(held, ask) -> None:
    x, y = tensors()
    explainer = Explainer(Net(), HELD[held](x, y))
    ask(explainer)
    ask(explainer)
    x[3] += 1
    with pytest.raises(
        StaleError, match=r"\b[23]\b.*(has changed since|differs from its first).*[mM]ake a new Explainer"
    ):
        ask(explainer)


class Own(Dataset):
    """A data set of the user's own over tensors that may change."""

    def __init__(self, x, y) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int):
        return self.x[i], int(self.y[i])


def pairs(items):
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])


OWN = {
    "a data set": lambda x, y: Own(x, y),
    "a subset of it": lambda x, y: Subset(Own(x, y), range(len(x))),
    "its loader": lambda x, y: DataLoader(Own(x, y), batch_size=7),
    "its loader with a collate_fn": lambda x, y: DataLoader(Own(x, y), batch_size=7, collate_fn=pairs),
    "tensors with a collate_fn": lambda x, y: DataLoader(TensorDataset(x, y), 7, collate_fn=pairs),
}


@pytest.mark.parametrize("row", [0, -1, slice(None)])
@pytest.mark.parametrize("ask", [lambda e: e.explain(TEST[0]), lambda e: e.answers(3, TEST[0])])
@pytest.mark.parametrize("held", OWN)
def test_items_of_a_users_own_data_set_are_read_again(held, ask, row) -> None:
    x, y = tensors()
    explainer = Explainer(Net(), OWN[held](x, y))
    ask(explainer)
    ask(explainer)
    x[row] += 1
    with pytest.raises(
        StaleError, match=r"(has changed since|differs from its first).*[mM]ake a new Explainer"
    ):
        ask(explainer)


@pytest.mark.parametrize("held", OWN)
def test_nothing_is_saved_of_a_data_set_that_has_changed(held, tmp_path) -> None:
    x, y = tensors()
    explainer = Explainer(Net(), OWN[held](x, y))
    explainer.explain(TEST[0])
    x += 1
    with pytest.raises(
        StaleError, match=r"(has changed since|differs from its first).*[mM]ake a new Explainer"
    ):
        explainer.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize(
    "part", [lambda x, y: together(x, y), lambda x, _: without(x, [4])], ids=["together", "without"]
)
@pytest.mark.parametrize("held", [lambda x, y: (x, y), OWN["a data set"]], ids=["tensors", "items"])
def test_parts_of_sets_are_watched(part, held) -> None:
    x, y = tensors()
    train = part(Examples.of(held(x, y)), Examples.of(held(*tensors())))
    explainer = Explainer(Net(), train)
    explainer.explain(TEST[0])
    x[0] += 1
    with pytest.raises(
        StaleError, match=r"(has changed since|differs from its first).*[mM]ake a new Explainer"
    ):
        explainer.explain(TEST[0])


@pytest.mark.parametrize("row", [0, 23])
def test_texts_that_change_in_their_list_are_named(row) -> None:
    rows = hugging.texts(24, seed=1)
    explainer = Explainer((hugging.trained("bert", steps=3), hugging.tokenizer()), rows)
    explainer.explain(rows[5]["text"])
    rows[row]["text"] = rows[(row + 1) % 24]["text"] + " " + rows[(row + 2) % 24]["text"]
    with pytest.raises(StaleError, match=f"Instance {row} differs from its first reading"):
        explainer.explain(rows[5]["text"])


class Drawing(Own):
    """Draws, whatever for, and gives the same all the time."""

    def __getitem__(self, i: int):
        torch.rand(1), np.random.rand(), random.random()  # noqa: NPY002
        return super().__getitem__(i)


DRAWING = {
    "a data set": lambda held: held,
    "its loader": lambda held: DataLoader(held, batch_size=7),
    "its loader with a collate_fn": lambda held: DataLoader(held, batch_size=7, collate_fn=pairs),
    "parts of it": lambda held: without(Examples.of(held), [3]),
}


@pytest.mark.parametrize("held", DRAWING.values(), ids=DRAWING)
def test_reading_again_leaves_the_random_numbers_as_they_were(held) -> None:
    explainer = Explainer(Net(), held(Drawing(*tensors())))
    explainer.explain(TEST[0])
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    explainer.subject.train.unchanged()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]  # noqa: NPY002


def test_what_fails_at_a_reading_again_is_no_change(monkeypatch) -> None:
    explainer = Explainer(Net(), Own(*tensors()))
    explainer.explain(TEST[0])
    monkeypatch.setattr(Own, "__getitem__", lambda self, i: {}[i])
    with pytest.raises(pr.UserCodeError, match=r"Item 0 of the training set failed: KeyError"):
        explainer.explain(TEST[0])


def test_a_slow_data_set_is_not_read_through(monkeypatch) -> None:
    x, y = tensors()
    held, asked = Own(x, y), []
    explainer = Explainer(Net(), held)
    monkeypatch.setattr(sources, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(Own, "__getitem__", lambda self, i: (asked.append(i), self.x[i], int(self.y[i]))[1:])
    explainer.subject.train.unchanged()
    assert asked[:2] == [0, len(y) - 1]
    assert len(asked) == 3


def test_rows_outside_of_a_subset_may_change() -> None:
    x, y = tensors()
    explainer = Explainer(Net(), Subset(TensorDataset(x, y), range(1, len(x))))
    before = explainer.scores(TEST[0])
    x[0] += 1
    assert torch.equal(explainer.scores(TEST[0]), before)


@pytest.mark.parametrize("given", [torch.Tensor.numpy, lambda x: x], ids=["array", "tensor"])
def test_an_explanation_stays_what_it_is_when_its_cases_change(given) -> None:
    x, y = tensors()
    explainer, cases = Explainer(Net(), (x, y)), TEST[0][:2] + 0.1
    found, kept = explainer.explain(given(cases)), explainer.explain(cases.clone())
    cases.copy_(-3 * cases)
    assert torch.equal(found.cases, kept.cases)
    assert str(found.shares(0, 1)) == str(kept.shares(0, 1))
    assert found.to_frame(inputs=True).equals(kept.to_frame(inputs=True))


def test_the_same_values_written_again_are_no_change() -> None:
    x, y = tensors()
    explainer = Explainer(Net(), (x, y))
    before = explainer.scores(TEST[0])
    x.copy_(x.clone())
    assert torch.equal(explainer.scores(TEST[0]), before)


def test_rows_of_scikit_learn_are_watched() -> None:
    from sklearn.linear_model import LogisticRegression

    x, y = arrays()
    explainer = Explainer(LogisticRegression().fit(x, y), (x, y))
    explainer.explain(x[0])
    x[8] += 1
    with pytest.raises(StaleError, match="Row 8 "):
        explainer.explain(x[0])


def test_a_set_beyond_what_is_compared_at_once_is_compared_where_it_is_read(monkeypatch) -> None:
    monkeypatch.setattr(watch, "QUICK", 40 * 5)  # five rows of 45
    x, y = tensors()
    explainer = Explainer(Net(), (x, y), "dot_fisher")
    first = explainer.explain(TEST[0][0], k=1).precedents()[0].index
    x.data[first] += 1  # behind torch's back
    with pytest.raises(StaleError, match=f"Row {first} "):
        explainer.explain(TEST[0][0], k=1)
    with pytest.raises(StaleError, match=f"Row {first} "):
        explainer.relevance.workspace.train.unchanged(whole=True)


@pytest.mark.parametrize(
    "heads", [[0, 1, 0, 1, 0, 2], [0.0, 1.0, 0.0, 1.0, 0.0, 2.0]], ids=["two types", "one"]
)
def test_frames_that_change_later_change_no_answer(heads) -> None:
    y = [0, 1, 0, 1, 0, 1]
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "heads": heads})
    case = frame[:1].copy()
    explainer = Explainer(LogisticRegression().fit(frame, y), (frame, y))
    before = explainer.explain(case)
    frame.loc[:, "size"] = 99.0
    after = explainer.explain(case)
    assert torch.equal(after.top.scores, before.top.scores)
    assert str(after) == str(before)


def test_sparse_rows_that_change_are_named() -> None:
    x, y = csr_matrix(np.eye(6) + 1), [0, 1, 0, 1, 0, 1]
    explainer = Explainer(LogisticRegression().fit(x, y), (x, y))
    case = x[:1].copy()
    explainer.explain(case)
    x.data[7] = 5.0
    with pytest.raises(StaleError, match="Row 1 of the training set has changed"):
        explainer.explain(case)


def test_an_explainer_that_was_made_in_inference_mode_is_watched() -> None:
    (x, y), net = tensors(), Net()
    with torch.inference_mode():
        explainer = Explainer(net, (x, y))
        explainer.scores(TEST[0])
    explainer.scores(TEST[0])
    x[1] = 0.0
    with pytest.raises(StaleError, match="Row 1 "):
        explainer.scores(TEST[0])


# Labels beside a data set, its length, and rows that are no numbers.


class Bare(Own):
    """Without labels in its items."""

    def __getitem__(self, i: int):
        return self.x[i]


def inputs_alone(items):
    return torch.stack(list(items))


APART = {
    "a data set": lambda x, y: Examples.of(Bare(x, y), labels=y),
    "an attribute": lambda x, y: Examples.of(Bare(x, y), labels="y"),
    "items that have them, too": lambda x, y: Examples.of(Own(x, y), labels=y),
    "an array": lambda x, y: Examples.of(Bare(x, y), labels=y.numpy()),
    "tensors": lambda x, y: Examples.of(Subset(TensorDataset(x, TRAIN[1]), range(45)), labels=y),
    "its loader": lambda x, y: Examples.of(DataLoader(Bare(x, y), batch_size=7), labels=y),
    "its loader with a collate_fn": lambda x, y: Examples.of(
        DataLoader(Bare(x, y), batch_size=7, collate_fn=inputs_alone), labels=y
    ),
}


@pytest.mark.parametrize("held", APART)
def test_labels_beside_a_data_set_are_watched(held) -> None:
    x, y = tensors()
    train = APART[held](x, y)
    explainer = Explainer(Net(), train)
    explainer.explain(TEST[0])
    y[4] = (y[4] + 1) % 3
    assert torch.equal(train.labels, TRAIN[1])
    with pytest.raises(StaleError, match="Label 4 of the training set has changed"):
        explainer.explain(TEST[0])


def grown(x: Tensor, y: Tensor, n: int) -> Own:
    data = Own(x.repeat(2, 1), y.repeat(2))
    data.__class__ = type("Grown", (Own,), {"__len__": lambda _: n})
    return data


def shortened(data: list[Any]) -> None:
    del data[40:]


def lengthened(data: list[Any]) -> None:
    data.append(data[0])


def reached(data: Any, n: int) -> None:
    data.__class__ = type("Grown", (Own,), {"__len__": lambda _: n})


SIZES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], None], int]] = {
    "a list shrinks": (HELD["a list"], shortened, 40),
    "a list grows": (HELD["a list"], lengthened, 46),
    "a data set shrinks": (Own, lambda data: reached(data, 44), 44),
    "a data set grows": (lambda x, y: grown(x, y, 45), lambda data: reached(data, 50), 50),
    "a subset shrinks": (HELD["a subset"], lambda data: setattr(data, "indices", range(1, 30)), 29),
    "below a loader": (OWN["its loader"], lambda data: reached(data.dataset, 30), 30),
    "below a collate_fn": (OWN["its loader with a collate_fn"], lambda data: reached(data.dataset, 30), 30),
}


@pytest.mark.parametrize("ask", [lambda e: e.explain(TEST[0]), lambda e: e.scores(TEST[0])])
@pytest.mark.parametrize("what", SIZES)
def test_a_set_of_another_length_is_named(what, ask) -> None:
    make, change, found = SIZES[what]
    data = make(*tensors())
    explainer = Explainer(Net(), data)
    n = len(explainer.subject.train)
    ask(explainer)
    change(data)
    with pytest.raises(StaleError, match=f"training set has {found} instances, and had {n} when it was read"):
        ask(explainer)


@pytest.mark.parametrize("wrap", [lambda subset: subset, lambda subset: Subset(subset, range(20))])
def test_other_rows_of_a_subset_are_named(wrap) -> None:
    subset = Subset(TensorDataset(*tensors()), list(range(30)))
    explainer = Explainer(Net(), wrap(subset))
    explainer.explain(TEST[0])
    subset.indices[7] = 40
    with pytest.raises(StaleError, match="Row 7 of the training set has changed"):
        explainer.explain(TEST[0])


def test_labels_of_texts_that_change_are_named() -> None:
    rows = hugging.texts(24, seed=1)
    explainer = Explainer((hugging.trained("bert", steps=3), hugging.tokenizer()), rows)
    explainer.explain(rows[5]["text"])
    rows[0]["label"] = 1 - rows[0]["label"]
    with pytest.raises(StaleError, match="Instance 0 differs from its first reading"):
        explainer.explain(rows[5]["text"])
    rows.pop()
    with pytest.raises(StaleError, match="data set has 23 instances, and had 24"):
        explainer.explain(rows[5]["text"])


COUNTED = [{"a": float(i), "b": "xz"[i % 2]} for i in range(40)]
NAMED: dict[str, tuple[Any, Callable[[], Any], Callable[[Any], None]]] = {
    "dicts": (DictVectorizer, lambda: [dict(row) for row in COUNTED], lambda rows: rows[3].update(a=999.0)),
    "objects": (
        lambda: OneHotEncoder(handle_unknown="ignore"),
        lambda: np.array([list(row.values()) for row in COUNTED], dtype=object),
        lambda rows: rows.__setitem__((3, 0), 999),
    ),
    "texts": (
        TfidfVectorizer,
        lambda: np.array([f"{'good' if i % 2 else 'bad'} film {i}" for i in range(40)], dtype=object),
        lambda rows: rows.__setitem__(3, "other"),
    ),
}


@pytest.mark.parametrize("what", NAMED)
def test_rows_of_scikit_learn_that_are_no_numbers_are_copied(what) -> None:
    first, make, change = NAMED[what]
    rows, y = make(), np.arange(40) % 2
    explainer = Explainer(make_pipeline(first(), LogisticRegression()).fit(rows, y), (rows, y))
    case = make()[3]
    before = str(explainer.explain(case, k=40))
    change(rows)
    assert str(explainer.explain(case, k=40)) == before


@pytest.mark.parametrize("names", [np.array([0, 1]), np.array(["n", "p"]), np.array(["n", "p"], dtype=object)])
@pytest.mark.parametrize("what", NAMED)
def test_labels_beside_rows_of_scikit_learn_are_watched(what, names) -> None:
    first, make, _ = NAMED[what]
    rows, y = make(), names[np.arange(40) % 2]
    explainer = Explainer(make_pipeline(first(), LogisticRegression()).fit(rows, y), (rows, y))
    explainer.explain(make()[3])
    y[5] = names[0]
    with pytest.raises(StaleError, match="Label 5 of the training set has changed"):
        explainer.explain(make()[3])
