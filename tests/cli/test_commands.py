"""What the commands do is what the library does; results go to stdout, everything else to stderr."""

import json
import shlex
import sys
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from cli.conftest import RUN
from precedents import ALIASES, CRITERIA, METRICS, Audit, Explainer, audit
from precedents.zoo.run import Run

SMALL = f"audit {RUN} --metrics gc,gd --criteria identical_class,identical_instance --cases 30"


def test_metrics_lists_every_metric_and_every_part(precedents) -> None:
    found = json.loads(precedents("metrics", "--json").out)
    assert [row["name"] for row in found["metrics"]] == list(METRICS)
    assert {row["alias"]: row["name"] for row in found["metrics"] if row["alias"]} == dict(ALIASES)
    assert {row["name"]: row["form"] for row in found["metrics"]} == {n: str(m) for n, m in METRICS.items()}
    assert all(row["meaning"] for row in [*found["metrics"], *found["parts"]])
    shown = precedents("metrics").out
    assert all(row["name"] in shown for row in [*found["metrics"], *found["parts"]])


def test_criteria_lists_every_criterion(precedents) -> None:
    found = json.loads(precedents("criteria", "--json").out)
    assert [row["name"] for row in found] == CRITERIA.names()
    shown = precedents("criteria").out
    assert all(row["name"] in shown and row["meaning"] in shown for row in found)


def test_train_keeps_what_it_prints(folder, precedents) -> None:
    done = precedents(*shlex.split("train --dataset wine --model mlp --epochs 3 --seed 2 --json"))
    said = json.loads(done.out)
    assert said["run"] == "runs/wine-mlp-2"
    run = Run.open(folder / said["run"])
    assert dict(run.metrics) == {name: value for name, value in said.items() if name != "run"}
    assert len(run.metrics["loss"]) == 3
    assert "Training mlp on" in done.err


def test_train_again_with_force_gives_the_same_bytes(folder, precedents) -> None:
    before = (folder / RUN / "weights.safetensors").read_bytes(), (folder / RUN / "run.json").read_bytes()
    (folder / RUN / "old").write_text("stays")
    again = "train --dataset digits --model logistic_regression --epochs 20 --force --quiet"
    assert precedents(*again.split()).code == 0
    assert (
        (folder / RUN / "weights.safetensors").read_bytes(),
        (folder / RUN / "run.json").read_bytes(),
    ) == before
    names = ["old", "run.json", "weights.safetensors"]  # a file that is none of the run's stays
    assert sorted(path.name for path in (folder / RUN).iterdir()) == names
    assert [path.name for path in (folder / "runs").iterdir()] == ["digits-logistic_regression"]


def test_explain_is_what_the_library_says(folder, precedents) -> None:
    run = Run.open(folder / RUN)
    explainer = Explainer(run.model, run.prepared.train, "rif", classes=run.prepared.dataset.classes)
    asked = run.prepared.test.take([7, 3])
    expected = explainer.explain(asked.inputs, k=4, truth=asked.labels)
    arguments = shlex.split(f"explain {RUN} --case 7 --case 3 --metric rif -k 4")
    found = json.loads(precedents(*arguments, "--json").out)
    assert [case.pop("case") for case in found["cases"]] == [7, 3]
    plain = expected.to_dict()
    assert [case.pop("case") for case in plain["cases"]] == [0, 1]
    assert found == plain
    lines = precedents(*arguments).out.splitlines()
    assert lines[0] == f"case 7: {expected.outcome(0)}, because of"
    assert lines[5] == f"case 3: {expected.outcome(1)}, because of"


def test_explain_says_where_a_prediction_is_wrong(folder, precedents) -> None:
    run = Run.open(folder / RUN)
    test = run.prepared.test
    predicted = Explainer(run.model, run.prepared.train).explain(test.take(range(200)).inputs, k=1).predictions
    agree = (predicted == test.labels[:200]).tolist()
    right, wrong = agree.index(True), agree.index(False)
    said = f"predicted {int(predicted[wrong])}, in truth {int(test.labels[wrong])}, because of"
    assert said in precedents("explain", RUN, "--case", str(wrong)).out
    assert "in truth" not in precedents("explain", RUN, "--case", str(right)).out


def test_explain_has_the_shares_of_first_precedents_on_demand(folder, precedents) -> None:
    command = shlex.split(
        f"explain {RUN} --case 12 --case 3 --quiet --shares --csv rows.csv --html shares.html"
    )
    printed = precedents(*command).out
    assert printed.count("of which") == 2
    found = json.loads(precedents(*command, "--json", "--force").out)
    first = [case["precedents"][0]["index"] for case in found["cases"]]
    assert [part["index"] for part in found["shares"]] == first
    assert (folder / "rows.csv").read_text().count("\n") == 1 + 2 * 5
    assert (folder / "shares.html").read_text().startswith("<!doctype html>")


def test_explain_writes_a_page_of_its_own(folder, precedents) -> None:
    arguments = shlex.split(f"explain {RUN} --case 12 --html page.html")
    assert precedents(*arguments).code == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "case 12" in page
    assert page.count("<img") == 6
    assert precedents(*arguments).code == 2
    assert precedents(*arguments, "--force").code == 0


def test_audit_is_what_the_library_says(folder, precedents) -> None:
    run = Run.open(folder / RUN)
    expected = audit(
        run.model,
        run.prepared.train,
        run.prepared.test.selected(range(30)),
        metrics=["gc", "gd"],
        criteria=["identical_class", "identical_instance"],
        **run.options,
    )
    done = precedents(*SMALL.split(), "--json")
    assert done.code == 0
    schema = json.loads(files("precedents.audit").joinpath("schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(done.out))
    assert Audit.from_json(done.out).to_json() == expected.to_json() == done.out.strip()


def test_audit_again_takes_what_is_kept(folder, precedents) -> None:
    first = precedents(*SMALL.split(), "--json")
    (kept,) = (folder / RUN).glob("audit-*/records.jsonl")
    recorded = kept.read_bytes()
    assert precedents(*SMALL.split(), "--json").out == first.out
    assert kept.read_bytes() == recorded
    other = SMALL.replace("--cases 30", "--cases 31")
    assert precedents(*other.split()).code == 0
    assert len(list((folder / RUN).glob("audit-*"))) == 2


@pytest.mark.parametrize(
    ("metric", "under", "code"), [("gc", 0.5, 0), ("gc", 1.0, 0), ("gd", 1.0, 1), ("gd", 0.0, 0)]
)
def test_fail_under_is_the_exit_code(folder, precedents, metric, under, code) -> None:
    command = f"audit {RUN} --metrics gc,gd --criteria identical_class,identical_subclass --cases 60"
    done = precedents(*command.split(), "--metric", metric, "--fail-under", str(under))
    assert done.code == code, done.out
    below = [line for line in done.err.splitlines() if line.startswith("precedents: The success rate of gd is")]
    assert len(below) == code
    assert "cos_grad" in done.out


def test_fail_under_is_not_held_where_a_rate_is_not_known(folder, precedents) -> None:
    command = f"audit {RUN} --metrics gc --fail-under 0.1 --within 0.000001 --report late.html"
    done = precedents(*command.split())
    assert done.code == 2
    assert "– left out: cos_grad." in done.out  # the table says why
    assert (folder / "late.html").stat().st_size
    told = "precedents: The success rate of cos_grad is not known: identical_class has no result (left out)."
    assert done.err.splitlines()[-1].startswith(told)


@pytest.mark.parametrize(("cases", "under", "told"), [(20, 0.95, True), (60, 0.9, False)])
def test_fail_under_says_when_the_cases_are_too_few_to_tell(folder, precedents, cases, under, told) -> None:
    command = f"audit {RUN} --metrics gc --criteria identical_class --cases {cases} --fail-under {under}"
    done, quiet = precedents(*command.split()), precedents(*command.split(), "--quiet")
    assert (done.code, quiet.code) == (0, 0)
    begins = "precedents: The success rate of gc is 1.000, but over 20 cases its 95% interval begins at 0.832:"
    assert any(line.startswith(begins) for line in done.err.splitlines()) == told
    assert [line.startswith(begins) for line in quiet.err.splitlines()] == [True] * told
    written = precedents(*command.split(), "--json", "--quiet", "--report", f"{cases}.html")
    assert (written.code, written.err) == (0, quiet.err)
    assert json.loads(written.out)["scope"]["cases"] == cases
    assert (folder / f"{cases}.html").stat().st_size


def test_audit_judges_by_the_rule_that_is_named(folder, precedents) -> None:
    command = f"audit {RUN} --metrics gc --criteria identical_class --cases 20"
    earned, paper = precedents(*command.split()), precedents(*command.split(), "--rule", "paper")
    assert "1.000?" in earned.out
    assert "too few cases (about 72 would do)" in earned.out
    assert "1.000?" not in paper.out
    assert "Use cos_grad: it passes every criterion (1 of 1)." in paper.out
    assert "Verdicts are by the paper's rule" in paper.out


def test_a_factory_may_return_a_mapping(folder, precedents) -> None:
    (folder / "named.py").write_text(
        "import my_model\n"
        "def factory():\n"
        "    model, train, test = my_model.factory()\n"
        "    return dict(model=model, train=train, test=test, classes=['red', 'white', 'rosé'], k=3)\n"
    )
    done = precedents(*["explain", "--target", "named:factory", "--case", "0", "--json"])
    assert json.loads(done.out)["cases"][0]["prediction"] in ("red", "white", "rosé")
    done = precedents(*["audit", "--target", "named:factory", "--metrics", "gc", "--json"])
    assert json.loads(done.out)["scope"]["k"] == 3
    assert not list(folder.glob("**/records.jsonl"))


@pytest.mark.parametrize(
    "command",
    [
        "train --dataset digits --model cnn",
        f"explain {RUN} --case 1 --metric fk --html page.html",
        f"audit {RUN} --metrics gc,fk --report page.html",
        "audit --target my_model:factory --keep kept",
    ],
)
def test_a_dry_run_estimates_and_does_nothing(command, folder, precedents) -> None:
    before = {path for path in folder.rglob("*") if "__pycache__" not in str(path)}
    assert precedents(*command.split(), "--dry-run").out.startswith("about ")
    estimate = json.loads(precedents(*command.split(), "--dry-run", "--json").out)
    each = {"metrics"} if command.startswith("audit") else set()
    assert estimate.keys() == {"seconds", "memory", "disk"} | each
    assert estimate["seconds"] > 0
    assert estimate["memory"] > 0
    assert {path for path in folder.rglob("*") if "__pycache__" not in str(path)} == before


@pytest.mark.parametrize(
    "command",
    [
        "train --dataset digits --model logistic_regression --epochs 2 --seed 5",
        f"explain {RUN} --case 1",
        SMALL,
        "demo --short",
    ],
)
def test_quiet_commands_print_results_only(command, folder, precedents) -> None:
    done = precedents(*command.split(), "--quiet")
    assert (done.code, done.err) == (0, "")
    assert done.out


def test_the_report_has_the_command_that_made_it(folder, precedents, monkeypatch) -> None:
    command = f"{SMALL} --report report.html"
    monkeypatch.setattr(sys, "argv", ["precedents", *command.split()])
    assert precedents(*command.split()).code == 0
    assert f"precedents {command}" in (folder / "report.html").read_text(encoding="utf-8")


def test_cases_may_be_called_by_their_ids_and_explained_for_another_class(folder, precedents) -> None:
    (folder / "called.py").write_text(
        "import my_model, precedents as pr\n"
        "def factory():\n"
        "    model, train, test = my_model.factory()\n"
        "    ids = [f'w-{i}' for i in range(len(test[0]))]\n"
        "    test = pr.Examples.of(test, ids=ids)\n"
        "    return dict(model=model, train=train, test=test, classes=['a', 'b', '1'])\n"
    )
    asked = ["explain", "--target", "called:factory", "--json"]

    def cases(*more: str) -> list[dict[str, object]]:
        return json.loads(precedents(*asked, *more).out)["cases"]

    by_id, by_place = cases("--case", "w-43", "--case", "2"), cases("--case", "43", "--case", "2")
    assert by_id == by_place
    assert [case["case"] for case in by_id] == [43, 2]
    assert [case["id"] for case in by_id] == ["w-43", "w-2"]
    named, numbered = cases("--case", "2", "--label", "b"), cases("--case", "2", "--label", "0")
    assert (named[0]["prediction"], numbered[0]["prediction"]) == ("b", "a")
    several = cases("--case", "2", "--case", "3", "--label", "1", "--label", "a")
    assert [case["prediction"] for case in several] == ["1", "a"]
    assert "There is no case w-x: " in precedents(*asked, "--case", "w-x").err
    assert "or have ids, as 'w-0'" in precedents(*asked, "--case", "w-x").err
