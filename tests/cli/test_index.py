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
    assert precedents("index", "status", RUN, "--index", "half").code == 0
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
    assert precedents("index", "status", RUN, *INDEX).code == 0
    assert "does not fit" in precedents("index", "status", "--target", "grown:half", *INDEX).err


def test_a_check_is_printed_and_given_as_json(folder, precedents) -> None:
    said = ("index", "check", RUN, *INDEX, "--cases", "10", "-q")
    assert "over 10 cases" in precedents(*said).out
    assert json.loads(precedents(*said, "--json").out)["recall"] == 1.0


def test_errors_of_commands_advise_commands(folder, precedents) -> None:
    build = f"precedents index build {RUN} --index"
    assert "nothing is no folder. Build one: precedents index build RUN --index nothing" in (
        precedents("index", "status", "--index", "nothing").err
    )
    for command in (("index", "check", RUN), ("explain", RUN, "--case", "1")):
        assert f"Build one: {build} nothing" in precedents(*command, "--index", "nothing").err
    precedents("index", "build", RUN, "--index", "half of it", "--rows", "100", "--shard", "1/2", "-q")
    assert (
        f"It goes on by {build} 'half of it'" in precedents("index", "check", RUN, "--index", "half of it").err
    )
    stale = precedents("explain", RUN, *INDEX, "--case", "3", "--metric", "cosine:gradient/ekfac").err
    assert f"Build it again, elsewhere or when it is removed: {build} index-of-digits" in stale
    refused = precedents("index", "build", RUN, "--index", "other", "--metric", "cos_if").err
    assert f"precedents explain {RUN} --metric cosine:gradient/hessian --case 0" in refused
    small = precedents("index", "build", "--target", "my_model:factory", "--index", "other").err
    assert "asked without an index: precedents explain --target my_model:factory --case 0" in small


def test_no_error_of_a_command_advises_a_call_of_python(folder, precedents) -> None:
    (folder / "index-of-digits" / "index.json").write_text("{}")
    (folder / "empty").mkdir()
    for command in (
        ("explain", RUN, "--case", "1", *INDEX),
        ("explain", RUN, "--case", "1", "--index", "empty"),
        ("index", "check", RUN, *INDEX),
        ("index", "add", "--target", "grown:half", "--index", "index-of-half"),
        ("index", "build", "--target", "grown:factory", "--index", "index-of-half"),
        ("index", "build", RUN, "--index", "empty", "--metric", "cos_x"),
    ):
        done = precedents(*command, "-q")
        assert done.code == WRONG
        assert "Index." not in done.err
        assert "Explainer" not in done.err
        assert len(done.err.splitlines()) == 1


def test_a_training_set_that_has_grown_is_told_how_to_add_the_new_ones(folder, precedents) -> None:
    grown = ("--target", "grown:factory", "--index", "index-of-half")
    said = "precedents index add --target grown:factory --index index-of-half"
    for command in (("explain", "--case", "1"), ("index", "check"), ("index", "build")):
        done = precedents(*command, *grown)
        assert done.code == WRONG
        assert f"(300 then, 600 now). If the new ones stand at its end, add them: {said}." in done.err
    assert precedents("index", "add", *grown, "-q").out.endswith("600 rows in 2 shards, complete\n")
    assert precedents("explain", "--case", "1", *grown).code == 0


def test_rows_of_a_shard_are_those_that_were_planned(folder, precedents) -> None:
    done = precedents("index", "build", RUN, *INDEX, "--rows", "100")
    assert done.code == WRONG
    assert "rows in a shard, not 100. Leave --rows out to go on with those, or build elsewhere." in done.err


def test_help_says_which_index_is_a_folder(precedents) -> None:
    assert "The folder of an index" in precedents("explain", "--help").out
    assert "The folder of the index" in precedents("index", "check", "--help").out
