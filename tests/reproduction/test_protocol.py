"""A repeat: its models, its records, and that neither kills nor workers change them."""

import gc
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples
from precedents.errors import BudgetError, FormatError, InputError, StaleError, UnknownNameError
from precedents.metrics.paper import METRICS, metric
from precedents.metrics.workspace import Workspace
from precedents.reproduction.alternatives import alternatives, lecun
from precedents.reproduction.protocol import EARLY, Repeat, header
from precedents.reproduction.records import Records
from precedents.reproduction.runner import VARIANTS, names, tasks, work
from precedents.reproduction.settings import SETTINGS, chosen, counted
from precedents.zoo.architectures import ARCHITECTURES
from precedents.zoo.dataset import Dataset
from precedents.zoo.text import counted as bag
from precedents.zoo.train import Schedule, moved, trained

QUICK = replace(SETTINGS["wine/mlp"], epochs=3)
FEW = ("cos_grad", "dot_last", "dot_fisher")


def repeat(folder: Path, number: int = 0, setting=QUICK) -> Repeat:
    return Repeat(setting, number, Records.of(folder, setting.name, header(setting, None)))


def lines(folder: Path) -> list[str]:
    return sorted((folder / "wine-mlp.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Two repeats, done without workers and without a stop."""
    folder = tmp_path_factory.mktemp("whole")
    for number in range(2):
        repeat(folder, number).run(FEW)
    return folder


def test_every_criterion_and_analysis_is_recorded(whole) -> None:
    records = Records.of(whole, "wine/mlp")
    pieces = {piece for number, piece in records.values if number == 0}
    criteria = {piece[2] for piece in pieces if piece[0] == "outcome"}
    assert criteria == {
        "identical_class",
        "identical_class(k=10)",
        "identical_subclass",
        "identical_subclass(k=10)",
        "identical_instance",
        "model_randomization",
        "model_randomization(label=shared)",
    }
    assert {piece[0] for piece in pieces} >= {"model", "hubs", "norms", "residuals", "gallery", "stability"}
    outcome = records.values[0, ("outcome", "cos_grad", "identical_class")]
    assert 0 <= outcome["mean"] <= 1
    assert outcome["count"] == records.values[0, ("model", "trained")]["cases"]


def test_words_outside_the_vocabulary_are_counted_too() -> None:
    tokens = torch.tensor([[2, 5, 1, 1, 3, 0], [2, 4, 4, 3, 0, 0]])
    assert bag(tokens, 6).tolist() == [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 2, 0]]
    assert bag(tokens, 6, unknown=True).tolist() == [[0, 2, 0, 0, 0, 1], [0, 0, 0, 0, 2, 0]]
    texts = Dataset("some", "text", ("a", "b"), Examples.of((tokens, torch.tensor([0, 1]))), 1, words=("",) * 6)
    (other,) = alternatives(texts, nn.Linear(2, 2), first=True, early=True)
    assert other.vectorise is not None
    assert torch.equal(other.vectorise(tokens), bag(tokens, 6, unknown=True))


def test_what_is_normalized_is_rescaled_too(tmp_path, monkeypatch) -> None:
    """Other weights, the same predictions: the residuals see no difference, the gradients do."""

    def small(shape: tuple[int, ...], classes: int) -> nn.Module:
        body = nn.Sequential(nn.Conv2d(shape[0], 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))
        return nn.Sequential(body, nn.Flatten(), nn.Linear(64, classes))

    monkeypatch.setitem(ARCHITECTURES._found, "cnn", small)
    setting = replace(SETTINGS["digits/cnn"], epochs=2)
    run = repeat(tmp_path, setting=setting)
    run.run(["cos_grad"])
    found = {piece[2] for _, piece in run.records.values if piece[0] == "outcome" and "rescaled" in piece[2]}
    assert found == {
        f"{criterion}({k}rescaled={factor})"
        for criterion in ("identical_class", "identical_subclass")
        for k in ("", "k=10, ")
        for factor in (4, 16)
    }
    more = next(other for other in run.alternatives if other.choice == "rescaled=16")
    plain, larger = run.trial("trained"), run.trial("trained", more)
    residual, gradient = (metric(name) for name in ("cosine:residual", "cos_grad"))
    torch.testing.assert_close(larger.scores(residual), plain.scores(residual), rtol=1e-4, atol=1e-5)
    assert (larger.scores(gradient) - plain.scores(gradient)).abs().max() > 0.01


def assert_lecun(module: nn.Module) -> None:
    """Normal weights of variance one by the number of inputs, no biases."""
    for name, values in module.state_dict().items():
        if "bias" in name:
            assert not values.any()
        else:
            assert float(values.std()) == pytest.approx(values[0].numel() ** -0.5, rel=0.03)


def test_initial_weights_are_drawn_as_lecun_does_now_and_anew() -> None:
    network = lecun(nn.Sequential(nn.Conv2d(8, 400, 3), nn.Flatten(), nn.Linear(400, 500)))
    examples = Examples.of((torch.randn(6, 8, 3, 3), torch.arange(6) % 2))
    fresh = Classifier.of(network, examples).randomized(0).module
    for module in (network, fresh, lecun(nn.LSTM(100, 80))):
        assert_lecun(module)
    assert not torch.equal(fresh[0].weight, network[0].weight)


def test_a_model_from_other_initial_weights_stands_beside_the_repeats_own(tmp_path) -> None:
    setting = replace(QUICK, published=True)
    run = repeat(tmp_path, setting=setting)
    run.run(["cos_grad", "dot_x"])
    values = run.records.values
    assert values[0, ("model", "trained")] != values[0, ("model", "trained, start=lecun")]
    found = [piece[1:] for _, piece in values if piece[0] == "outcome" and "start=lecun" in piece[2]]
    assert found == [
        ("cos_grad", "identical_class(start=lecun)"),
        ("cos_grad", "identical_class(k=10, start=lecun)"),
        ("cos_grad", "identical_instance(start=lecun)"),
        ("cos_grad", "model_randomization(start=lecun)"),
        ("cos_grad", "model_randomization(label=shared, start=lecun)"),
        ("cos_grad", "identical_subclass(start=lecun)"),
        ("cos_grad", "identical_subclass(k=10, start=lecun)"),
    ]
    assert not repeat(tmp_path, EARLY, setting).alternatives


def test_a_repeat_leaves_no_matrices_behind(tmp_path) -> None:
    """What is kept of a model may be most of the memory, and the next repeat needs it."""

    def held() -> int:
        return sum(type(each) is Workspace for each in gc.get_objects())

    gc.collect()
    before = held()
    gc.disable()
    try:
        repeat(tmp_path).run(FEW)
        assert held() == before
    finally:
        gc.enable()


def test_repeats_differ(whole) -> None:
    values = Records.of(whole, "wine/mlp").values
    assert values[0, ("hubs", "cos_grad")] != values[1, ("hubs", "cos_grad")]


def test_a_repeat_that_is_done_does_nothing(whole, monkeypatch) -> None:
    before = lines(whole)
    monkeypatch.setattr(Repeat, "trial", lambda *_: pytest.fail("a model was asked for"))
    repeat(whole).run(FEW)
    assert lines(whole) == before


def test_metrics_can_be_added_without_training_again(tmp_path, whole, monkeypatch) -> None:
    repeat(tmp_path).run(FEW[:1])
    monkeypatch.setattr(Repeat, "_trained", lambda *_: pytest.fail("it was trained again"))
    repeat(tmp_path).run(FEW)
    first = [line for line in lines(whole) if '"repeat":1' not in line]
    assert lines(tmp_path) == first


def test_weights_that_are_lost_are_made_again_the_same(tmp_path, whole) -> None:
    repeat(tmp_path).run(FEW[:1])
    for path in tmp_path.glob("models/*/*.safetensors"):
        path.unlink()
    repeat(tmp_path).run(FEW)
    assert lines(tmp_path) == [line for line in lines(whole) if '"repeat":1' not in line]


def test_two_workers_give_the_records_of_none(tmp_path, whole) -> None:
    done = list(work(tasks([QUICK], range(2), tmp_path, metrics=FEW), "processes(workers=2)"))
    assert {task.repeat for task in done} == {0, 1}
    assert lines(tmp_path) == lines(whole)


SCRIPT = """
import os, signal, sys, time
from dataclasses import replace
from pathlib import Path
from precedents.reproduction.settings import SETTINGS
from precedents.reproduction.runner import tasks, work

folder, least, metrics = Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
file = folder / "wine-mlp.jsonl"

def run():
    setting = replace(SETTINGS["wine/mlp"], epochs=3)
    list(work(tasks([setting], range(2), folder, metrics=metrics), "serial"))

for lines in map(int, least):
    child = os.fork()
    if not child:
        run()
        os._exit(0)
    deadline = time.monotonic() + 240
    while not (file.exists() and file.read_bytes().count(b"\\n") >= lines):
        assert time.monotonic() < deadline
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with file.open("ab") as half:
        half.write(b'{"repeat":0,"piece":["outc')
run()
"""


def test_a_run_that_is_killed_goes_on_with_the_same_records(tmp_path, whole) -> None:
    """At six records and at thirty, each time with a record that is cut in the middle."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), "6,30", *FEW]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path) == lines(whole)


def test_what_a_killed_training_left_is_swept_once_its_weights_are_there(tmp_path) -> None:
    """A process may be killed between writing the weights and removing how it came to them."""
    first = repeat(tmp_path)
    trained = first.model("trained", first.split)
    (weights,) = (tmp_path / "models").rglob("0-trained.*")
    left = [weights.with_suffix(f".{step}") for step in ("pretraining", "training")]
    for path in left:
        path.write_bytes(weights.read_bytes())
    again = repeat(tmp_path).model("trained", first.split)
    assert [path.exists() for path in left] == [False, False]
    assert all(map(torch.equal, trained.state_dict().values(), again.state_dict().values()))


def test_a_failure_in_a_worker_is_told(tmp_path) -> None:
    wrong = replace(QUICK, architecture="bi_lstm")
    with pytest.raises(RuntimeError, match="indices"):
        list(work(tasks([wrong], range(1), tmp_path, metrics=FEW)))


def test_records_of_other_settings_or_data_are_refused(tmp_path) -> None:
    repeat(tmp_path)
    with pytest.raises(StaleError, match="protocol"):
        repeat(tmp_path, setting=replace(QUICK, epochs=4))


@pytest.mark.parametrize("line", ["no json", "[1]", '{"repeat": 0}', '{"repeat": "x", "piece": 1, "value": 1}'])
def test_a_damaged_line_is_named(tmp_path, line) -> None:
    path = repeat(tmp_path).records.path
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(FormatError, match="Line 2"):
        Records.of(tmp_path, "wine/mlp")


def test_records_begin_with_a_header(tmp_path) -> None:
    (tmp_path / "wine-mlp.jsonl").write_text(json.dumps({"format": 99, "setting": "wine/mlp"}) + "\n")
    with pytest.raises(FormatError, match="format 2"):
        Records.of(tmp_path, "wine/mlp")


def test_numbers_are_recorded_with_six_digits(tmp_path) -> None:
    records = Records.of(tmp_path, "wine/mlp", {})
    made = records.once(0, ("a",), lambda: {"x": [1 / 3, 2], "y": (1e-12 / 3,)})
    assert made == {"x": [0.333333, 2], "y": [3.33333e-13]}
    assert Records.of(tmp_path, "wine/mlp").values == {(0, ("a",)): made}


def test_settings_are_named_in_several_ways() -> None:
    assert len(chosen(None)) == 13
    assert [s.name for s in chosen("vehicle/*, mnist/cnn,vehicle/mlp")] == [
        "vehicle/mlp",
        "vehicle/logreg",
        "mnist/cnn",
    ]
    assert chosen("mnist/cnn", epochs=7)[0].epochs == 7
    with pytest.raises(UnknownNameError):
        chosen("mnist/forest")
    with pytest.raises(InputError):
        chosen(" , ")


@pytest.mark.parametrize(("text", "places"), [("3", [0, 1, 2]), ("3-5", [3, 4, 5]), ("0-0", [0])])
def test_repeats_are_counted_or_named(text, places) -> None:
    assert list(counted(text)) == places


@pytest.mark.parametrize("text", ["0", "-1", "5-3", "many", ""])
def test_repeats_that_are_none_are_refused(text) -> None:
    with pytest.raises(InputError, match="--repeats"):
        counted(text)


def test_all_settings_can_be_built() -> None:
    from precedents.zoo.architectures import ARCHITECTURES
    from precedents.zoo.datasets import DATASETS

    for setting in SETTINGS.values():
        assert DATASETS.known(setting.dataset)
        assert ARCHITECTURES.known(setting.architecture)
        assert set(METRICS) <= set(names(setting, None))
    assert [str(metric(text)) for text in VARIANTS]


def test_a_hessian_is_of_the_kind_that_the_setting_names(tmp_path) -> None:
    made = repeat(tmp_path, setting=replace(QUICK, curvature="gauss_newton"))
    assert "kind=gauss_newton" in str(made.metric("dot_if"))
    assert "kind=ekfac" in str(made.metric("dot:gradient/hessian(kind=ekfac)"))
    assert made.metric("cos_grad") == METRICS["cos_grad"]


def test_the_epoch_that_predicts_the_development_set_best_is_kept() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=generator)
    train, dev = Examples.of((x, (x[:, 0] > 0).long())), Examples.of((x, (x[:, 0] < 0).long()))
    build = lambda: torch.nn.Linear(3, 2)  # noqa: E731
    seen = []

    def watched(epochs: int) -> float:
        model = trained(build, train, Schedule(epochs, rate=0.1), dev=dev, watch=seen.append)
        return float((model(x).argmax(1) == dev.labels).double().mean())

    def last(epochs: int) -> float:
        model = trained(build, train, Schedule(epochs, rate=0.1))
        return float((model(x).argmax(1) == dev.labels).double().mean())

    assert watched(6) == max(last(epochs) for epochs in range(1, 7))
    assert len(seen) == 6


def test_a_cooled_rate_falls_to_zero_over_the_second_half() -> None:
    x, y = torch.randn(20, 4, generator=torch.Generator().manual_seed(1)), torch.arange(20) % 3
    found = trained(lambda: nn.Linear(4, 3), Examples.of((x, y)), Schedule(4, rate=0.1, size=8, cooled=True))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0)
        falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, 2 * (1 - step / 12)))
        for _ in range(4):
            for places in torch.randperm(20).split(8):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x[places]), y[places]).backward()
                optimizer.step()
                falling.step()
    torch.testing.assert_close(found.weight, model.weight)


def test_images_are_moved_and_mirrored_as_wholes() -> None:
    image = torch.arange(1.0, 1 + 3 * 8 * 8).reshape(1, 3, 8, 8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        changed = moved(image.expand(64, -1, -1, -1))
    assert changed.shape == (64, 3, 8, 8)
    wide = torch.nn.functional.pad(image[0], (4, 4, 4, 4))
    possible = [
        window.flip(-1) if mirrored else window
        for i in range(9)
        for j in range(9)
        for mirrored in (False, True)
        for window in [wide[:, i : i + 8, j : j + 8]]
    ]
    found = {next(k for k, each in enumerate(possible) if torch.equal(each, one)) for one in changed}
    assert len(found) > 20
    assert {k % 2 for k in found} == {0, 1}


def test_what_does_not_fit_into_memory_is_not_recorded_as_missing(tmp_path) -> None:
    records = Records.of(tmp_path, QUICK.name, header(QUICK, None))
    with pytest.raises(BudgetError):
        Repeat(QUICK, 0, records, memory="10 KB").run(["dot_if"])
    assert not [piece for _, piece in records.values if piece[0] == "outcome"]


def test_records_that_are_not_there_are_an_error_with_advice(tmp_path) -> None:
    with pytest.raises(InputError, match="precedents reproduction run --settings wine/mlp"):
        Records.of(tmp_path, "wine/mlp")
