"""The commands of an index: built, asked, checked; a stale or incomplete one is one line and exit code 2."""

import json

from cli.conftest import RUN
from precedents.cli._main import WRONG

INDEX = ("--index", "index-of-digits")


def test_explanations_from_an_index_are_those_without(folder, precedents) -> None:
    plain = json.loads(precedents("explain", RUN, "--case", "12", "--json").out)["cases"][0]
    found = json.loads(precedents("explain", RUN, *INDEX, "--case", "12", "--json").out)["cases"][0]
    both = [[(each["index"], each["label"]) for each in one["precedents"]] for one in (plain, found)]
    assert both[0] == both[1]
    assert plain["completeness"] != found["completeness"]


def test_an_index_answers_other_similarities(folder, precedents) -> None:
    done = precedents("explain", RUN, *INDEX, "--case", "3", "--metric", "gd", "-k", "1")
    wanted = precedents("explain", RUN, "--case", "3", "--metric", "gd", "-k", "1")
    assert done.out.splitlines()[1].split()[:3] == wanted.out.splitlines()[1].split()[:3]
    wrong = precedents("explain", RUN, *INDEX, "--case", "3", "--metric", "cosine:gradient/ekfac")
    assert wrong.code == WRONG
    assert "the metric (gradient then" in wrong.err


def test_the_status_says_how_far_it_is(folder, precedents) -> None:
    assert precedents("index", "status", *INDEX).out.endswith("rows in 1 shard, complete\n")
    part = precedents("index", "build", RUN, "--index", "half", "--rows", "100", "--shard", "1/2", "-q")
    assert part.code == 0
    found = json.loads(precedents("index", "status", "--index", "half", "--json").out)
    assert found["made"] == -(-found["shards"] // 2)
    assert not found["complete"]
    asked = precedents("explain", RUN, "--index", "half", "--case", "1")
    assert asked.code == WRONG
    assert "is not complete" in asked.err
    assert precedents("index", "build", RUN, "--index", "half", "-q").out.endswith("complete\n")


def test_a_plan_and_a_basis_are_prepared_for_a_job_array(folder, precedents) -> None:
    done = precedents("index", "build", RUN, "--index", "array", "--prepare", "-q")
    assert done.out.endswith("0 of them made\n")
    assert sorted(path.name for path in (folder / "array").iterdir()) == ["basis.safetensors", "plan.json"]


def test_an_index_of_another_model_is_refused(folder, precedents) -> None:
    done = precedents("index", "check", "--target", "grown:half", *INDEX)
    assert done.code == WRONG
    assert "does not fit, for these differ" in done.err
    assert "nothing is no folder" in precedents("index", "status", "--index", "nothing").err


def test_a_check_is_printed_and_given_as_json(folder, precedents) -> None:
    said = ("index", "check", RUN, *INDEX, "--cases", "10", "-q")
    assert "over 10 cases" in precedents(*said).out
    assert json.loads(precedents(*said, "--json").out)["recall"] == 1.0
