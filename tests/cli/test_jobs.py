"""The commands of jobs say what the library says, write files whole, and refuse what cannot be in one line."""

import json
from inspect import signature

import pandas as pd
import pytest

from precedents.cli._jobs import job, places

RUN = "runs/digits-logistic_regression"
COMMANDS = {
    "suspects": ["suspects", RUN, "-k", "5"],
    "contrast": ["contrast", RUN, "--case", "3", "--one", "1", "--other", "8"],
    "answers": ["answers", RUN, "--index", "7", "--index", "70", "--cases", "100"],
    "duplicates": ["duplicates", RUN, "--least", "0.97"],
    "groups": ["groups", RUN, "--cases", "100"],
    "compare": ["compare", RUN, "--other-metric", "cos_x", "--cases", "5"],
    "self_relevance": ["self-relevance", RUN],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_json_csv_and_the_page_have_the_same_rows(name, folder, precedents) -> None:
    done = precedents(*COMMANDS[name], "--json", "--csv", "rows.csv", "--html", "page.html", "--quiet")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert len(pd.read_csv(folder / "rows.csv")) == len(found["rows"])
    page = (folder / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert found["heading"].partition("?")[0] in page.replace("&#x27;", "'")


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_a_file_that_is_there_needs_force(option, folder, precedents) -> None:
    (folder / "there").write_text("mine")
    command = [*COMMANDS["suspects"], option, "there"]
    done = precedents(*command)
    assert done.code == 2
    assert "there is there already. Name another file, or add --force" in done.err
    assert (folder / "there").read_text() == "mine"
    assert precedents(*command, "--force", "--quiet").code == 0
    assert (folder / "there").read_text() != "mine"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["suspects"], "Name one of the two: a run folder, or your own model"),
        (["suspects", RUN, "-k", "0"], "k is 0"),
        (["contrast", RUN, "--case", "99999", "--one", "1", "--other", "2"], "There is no case 99999"),
        (["contrast", RUN, "--case", "1", "--one", "1", "--other", "1"], "Both classes are"),
        (["contrast", RUN, "--case", "1", "--one", "1", "--other", "dog"], "dog"),
        (["answers", RUN, "--index", "99999"], "j is 99999"),
        (["answers", RUN, "--cases", "0"], "--cases is 0"),
        (["duplicates", RUN, "--least", "2"], "least is 2.0"),
        (["groups", RUN, "--by", "colour"], "by is 'colour'"),
        (["compare", RUN], "There is nothing to compare with"),
        (["suspects", RUN, "--memory", "much"], "memory is 'much'"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_two(command, said, folder, precedents) -> None:
    done = precedents(*command, "--quiet")
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not done.out


def test_a_number_is_a_place_and_anything_else_an_id() -> None:
    assert places(["3", "order 4", "-1"]) == [3, "order 4", -1]
    assert places([]) is places(None) is None


def test_shares_are_those_of_the_library(folder, precedents) -> None:
    command = ["shares", RUN, "--case", "12", "--quiet"]
    done = precedents(*command, "--index", "429", "--json", "--csv", "parts.csv", "--html", "parts.html")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["index"] == 429
    assert sum(layer["share"] for layer in found["layers"]) == pytest.approx(found["score"])
    frame = pd.read_csv(folder / "parts.csv")
    assert frame[frame["of"] == "layer"]["share"].sum() == pytest.approx(found["score"])
    assert "of which" in (folder / "parts.html").read_text()
    first = json.loads(precedents("explain", RUN, "--case", "12", "--json", "--quiet").out)["cases"][0][
        "precedents"
    ][0]
    own = json.loads(precedents(*command, "--json").out)  # of its first precedent
    assert (own["index"], own["score"]) == (first["index"], pytest.approx(first["score"]))
    assert "There is no case 99999" in precedents("shares", RUN, "--case", "99999").err


def test_a_job_has_its_own_options_among_those_of_all_jobs() -> None:
    @job
    def counted(asked, of: str, times: int = 2):
        """Counts."""

    outcome = ["csv", "html", "memory", "data", "force", "as_json", "quiet"]
    assert list(signature(counted).parameters) == ["of", "run", "target", "times", *outcome]
    assert counted.__doc__ == "Counts."
