"""What pages show is what the library says: answers, lists, hubs, kept work, jobs, tags, JSON."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import torch
from starlette.requests import Request
from torch import nn
from waiting import Clock, until

import precedents as pr
from explorer.conftest import Client, filled, kept_files, picture_world, row_world, text_world, trained
from precedents.data.examples import Examples
from precedents.errors import InputError
from precedents.explorer.answers import AllAnswers, order_of
from precedents.explorer.app import Pages
from precedents.explorer.jobs import LEASE, SOON, JobQueue
from precedents.explorer.lists import LISTS, SURE
from precedents.explorer.origin import Provenance
from precedents.explorer.questions import tried
from precedents.explorer.readers import picture_case, row_case, row_values, text_case
from precedents.explorer.rows import cited
from precedents.explorer.running import Explorer
from precedents.explorer.safety import Refusal
from precedents.explorer.tags import Tag, Tags

SCHEMA = json.loads(files("precedents").joinpath("explorer", "schema.json").read_text())
WORLDS = {"pictures": picture_world, "texts": text_world, "rows": row_world}


def schema_of(name: str) -> dict:
    return {"$schema": SCHEMA["$schema"], "$defs": SCHEMA["$defs"], **SCHEMA["properties"][name]}


def of_case(world, metric: str, case: int, k: int) -> list:
    predictions = world.measures["case"].predictions[case : case + 1]
    return cited(world, world.answers[metric], metric, case, world.test.take([case]).relabelled(predictions), k)


@pytest.mark.parametrize("kind", WORLDS)
def test_precedents_are_those_of_an_explanation_of_all_cases(kind) -> None:
    explainer, test = WORLDS[kind]()
    explorer = filled(pr.explore(explainer, test))
    try:
        world = explorer.world
        truth = explainer.explain(world.test.selected(range(len(world.test))), k=7)
        for case in range(len(world.test)):
            found, wanted = of_case(world, "cos_grad", case, 7), truth.precedents(case)
            assert [each.index for each in found] == [each.index for each in wanted]
            for one, other in zip(found, wanted, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-9)
                assert one.percentile == pytest.approx(other.percentile, abs=1e-9)
                assert one.cautions == other.cautions
                assert one.residual_cosine == pytest.approx(other.residual_cosine, abs=1e-6)
                assert one.feature_cosine == pytest.approx(other.feature_cosine, abs=1e-6)
        assert world.measures["case"].predictions.tolist() == truth.predictions.tolist()
    finally:
        explorer.stop()


def test_measures_are_those_of_the_model(explorer) -> None:
    world = explorer.world
    model = world.subject.classifier
    for which in ("case", "train"):
        examples, found = world.set_of(which), world.measures[which]
        logits = model.logits(examples.take(range(len(examples))).inputs).double()
        assert found.predictions.tolist() == logits.argmax(dim=1).tolist()
        assert torch.allclose(found.confidences.double(), logits.softmax(dim=1).max(dim=1).values, atol=1e-6)
        losses = nn.functional.cross_entropy(logits, examples.labels, reduction="none")
        assert torch.allclose(found.losses.double(), losses, atol=1e-5)


def test_whom_an_instance_answers_is_the_reverse_of_who_answers_a_case(explorer) -> None:
    answers = explorer.world.answers["cos_grad"]
    for place in range(0, answers.train, 7):
        cases, ranks = answers.answered_by(place)
        slow = [
            (rank, case)
            for case in range(60)
            for rank in range(answers.k)
            if answers.indices[case, rank] == place
        ]
        assert list(zip(ranks.tolist(), cases.tolist(), strict=True)) == sorted(slow)


def test_hubs_are_those_of_an_explanation(explorer) -> None:
    answers = explorer.world.answers["dot_grad"]
    truth = pr.Explainer(explorer.world.subject.classifier, explorer.world.subject.train, "dot_grad").explain(
        explorer.world.test, k=1
    )
    flagged = {int(truth.top.indices[i, 0]) for i in range(60) if "hub" in truth.flags[i][0]}
    assert set(answers.hubs) == flagged


def test_wrong_and_sure_cases_are_answered_first(explorer) -> None:
    measures = explorer.world.measures["case"]
    order = order_of(measures)
    wrong = measures.wrong[order].tolist()
    assert wrong == sorted(wrong, reverse=True)
    first = measures.confidences[order][: sum(wrong)]
    assert bool((first[1:] <= first[:-1]).all())


def test_work_lists_are_what_they_say(explorer) -> None:
    world = explorer.world
    measures, answers = world.measures["case"], world.answers[world.main]
    found = {name: kind.cases(world).nonzero().flatten().tolist() for name, kind in LISTS.items()}
    labels, said = world.test.labels.tolist(), measures.predictions.tolist()
    assert found["wrong"] == [i for i in range(60) if labels[i] != said[i]]
    assert found["sure"] == [i for i in found["wrong"] if measures.confidences[i] >= SURE]
    train = world.subject.train.labels
    odd = []
    for i in set(range(60)) - set(found["wrong"]):
        others = sum(int(train[int(j)]) != said[i] for j in answers.indices[i, :5])
        odd += [i] if others > 2.5 else []
    assert found["odd"] == sorted(odd)
    best = answers.scores[:, 0]
    assert found["unprecedented"] == sorted(best.argsort(stable=True)[:3].tolist())
    one, *others = world.answers.values()
    apart = []
    for i in range(60):
        own = set(one.indices[i, :10].tolist())
        common = [len(own & set(each.indices[i, :10].tolist())) / 10 for each in others]
        apart += [i] if sum(common) / len(common) <= 0.1 else []
    assert found["disagree"] == apart


def test_copies_of_training_instances_are_found() -> None:
    explainer, (x, y) = picture_world()
    x = x.clone()
    x[4] = explainer.subject.train.take([9]).inputs[0]
    explorer = filled(pr.explore(explainer, (x, y)))
    try:
        assert dict(explorer.world.copies) == {4: 9}
        assert "#9" in Client(explorer).ask("/cases/4")[2]
    finally:
        explorer.stop()


def test_kept_work_is_read_and_not_made_again(tmp_path, monkeypatch) -> None:
    explainer, test = picture_world()
    filled(pr.explore(explainer, test, keep=tmp_path)).stop()
    assert {"explorer.json", "0000.safetensors", "0001.safetensors", "0002.safetensors"} <= kept_files(tmp_path)

    def refused(*_) -> None:
        raise AssertionError

    monkeypatch.setattr("precedents.explorer.world.fill", refused)
    monkeypatch.setattr("precedents.explorer.world.measured", refused)
    again = filled(pr.explore(picture_world()[0], test, keep=tmp_path))
    try:
        truth = explainer.explain(again.world.test, k=5)
        assert again.world.answers["cos_grad"].indices[:, :5].tolist() == truth.top.indices.tolist()
        assert again.world.differing == []
    finally:
        again.stop()


@pytest.mark.parametrize("changed", ["weights", "training labels", "training rows", "cases"])
def test_kept_work_of_something_else_is_made_again(tmp_path, changed) -> None:
    explainer, (x, y) = picture_world()
    filled(pr.explore(explainer, (x, y), keep=tmp_path)).stop()
    batch = explainer.subject.train.take(range(160))
    inputs, labels = batch.inputs.clone(), batch.labels.clone()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 4))
    model.load_state_dict(
        {k.removeprefix("module."): v for k, v in explainer.subject.classifier.module.state_dict().items()}
    )
    if changed == "weights":
        model[1].weight.data[0, 0] += 1
    elif changed == "training labels":
        labels[3] = 0
    elif changed == "training rows":
        inputs[3] += 0.1
    else:
        x = x.clone()
        x[3] += 0.1
    other = pr.Explainer(model, (inputs, labels))
    explorer = filled(pr.explore(other, (x, y), keep=tmp_path))
    try:
        assert explorer.world.differing
        truth = other.explain(explorer.world.test, k=5).top.indices
        assert explorer.world.answers["cos_grad"].indices[:, :5].tolist() == truth.tolist()
    finally:
        explorer.stop()


def test_a_damaged_file_is_made_again(tmp_path) -> None:
    explainer, test = picture_world()
    filled(pr.explore(explainer, test, keep=tmp_path)).stop()
    file = tmp_path / "0002.safetensors"
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    explorer = filled(pr.explore(explainer, test, keep=tmp_path))
    try:
        truth = explainer.explain(explorer.world.test, k=100).top
        assert torch.equal(explorer.world.answers["cos_grad"].scores, truth.scores)
    finally:
        explorer.stop()


def test_a_second_explorer_of_a_folder_works_and_does_not_write(tmp_path) -> None:
    explainer, test = picture_world()
    one = filled(pr.explore(explainer, test, keep=tmp_path))
    before = (tmp_path / "explorer.json").read_bytes()
    two = filled(pr.explore(picture_world()[0], test, metrics=["cos_last"], keep=tmp_path))
    try:
        assert set(two.world.answers) == {"cos_grad", "cos_last"}
        assert (tmp_path / "explorer.json").read_bytes() == before
    finally:
        two.stop()
        one.stop()


def test_a_metric_without_a_meaning_says_why_and_the_others_are_answered() -> None:
    torch.manual_seed(0)
    x, y = torch.rand(40, 5), torch.arange(40) % 2
    explorer = filled(
        pr.explore(pr.Explainer(nn.Linear(5, 2), (x, y)), (x[:9] + 0.1, y[:9]), metrics=["cos_last"])
    )
    try:
        assert set(explorer.world.answers) == {"cos_grad"}
        text = Client(explorer).ask("/cases/3")[2]
        assert "The model is linear: it has no hidden layer." in text
    finally:
        explorer.stop()


def test_what_would_take_long_is_asked_for_first(monkeypatch) -> None:
    monkeypatch.setattr("precedents.explorer.world.LONGEST", 0.0)
    explorer = filled(pr.explore(*picture_world()))
    try:
        client = Client(explorer)
        assert explorer.world.answers == {}
        for target in ("/cases", "/cases/3"):
            assert "Explain them anyway" in client.ask(target)[2]
        wrong = json.dumps({"metric": "dot_grad"}).encode()
        assert client.ask("/api/v1/answers", "POST", wrong)[0] == 400
        assert client.ask("/api/v1/answers", "POST", json.dumps({"metric": "cos_grad"}).encode())[0] == 200
        filled(explorer)
        assert explorer.world.answers["cos_grad"].complete
        assert "Explain them anyway" not in client.ask("/cases/3")[2]
    finally:
        explorer.stop()


# JSON


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("run", "run"),
        ("cases", "cases?list=all&size=5"),
        ("cases/{place}", "cases/3?k=4"),
        ("cases/{place}/precedents", "cases/3/precedents?metric=dot_grad&k=100"),
        ("train", "train?size=7"),
        ("train/{place}", "train/5"),
        ("train/{place}/answers", "train/5/answers"),
        ("hubs", "hubs"),
        ("suspects", "suspects"),
        ("audit", "audit"),
        ("try", "try"),
        ("tags", "tags"),
        ("tags.json", "tags.json"),
        ("jobs/{number}", "jobs/1"),
        ("map", "map"),
    ],
)
def test_json_is_valid_against_the_schema(client, explorer, name, target) -> None:
    client.ask(f"/api/v1/{target}")
    filled(explorer)
    status, head, text = client.ask(f"/api/v1/{target}")
    assert status == 200
    assert "content-type: application/json" in head
    jsonschema.validate(json.loads(text), schema_of(name))


def test_every_address_that_answers_in_json_is_in_the_schema() -> None:
    from precedents.explorer.app import DATA, PAGES

    assert {path.lstrip("/") for path in (*PAGES, *DATA)} <= set(SCHEMA["properties"])


def test_the_columns_of_a_map_are_as_long_as_the_training_set(client, explorer) -> None:
    client.ask("/api/v1/map?by=input")
    filled(explorer)
    content = client.raw(client.head("/api/v1/map/input"))
    assert len(content.partition(b"\r\n\r\n")[2]) == 160 * (8 + 2 + 2 + 4 + 4)


def test_the_precedents_of_a_case_taken_for_a_class_are_those_of_an_explanation(client, explorer) -> None:
    world = explorer.world
    client.ask("/api/v1/cases/3/precedents?as=2&k=5")
    filled(explorer)
    found = json.loads(client.ask("/api/v1/cases/3/precedents?as=2&k=5")[2])
    truth = world.explainer.explain(world.test.selected([3]), 5, labels=[2])
    assert world.main == world.explainer.name
    assert [each["index"] for each in found["answer"]] == truth.top.indices[0].tolist()


def test_progress_comes_as_events(client, explorer) -> None:
    job = explorer.world.jobs.ask("slow", "slow work", _slow)
    content = client.raw(client.head(f"/api/v1/jobs/{job.number}/events")).decode()
    assert "text/event-stream" in content
    told = [json.loads(line[6:]) for line in content.splitlines() if line.startswith("data: ")]
    assert told[-1]["state"] == "done"
    assert [each["done"] for each in told] == sorted(each["done"] for each in told)


def _slow(job) -> None:
    for i in range(5):
        job.step(i, 5)
        time.sleep(0.1)


# Jobs


def test_jobs_run_one_after_the_other_and_equal_questions_are_joined() -> None:
    queue, done = JobQueue(), []

    def work(job) -> None:
        time.sleep(0.02)
        done.append(job.key)

    jobs = [queue.ask(f"key {i % 4}", "work", work) for i in range(8)]
    assert len({job.number for job in jobs}) == 4
    until(lambda: all(job.state == "done" for job in jobs))
    assert done == [f"key {i}" for i in range(4)]
    queue.close()


def test_a_ninth_question_is_refused_and_a_job_that_nobody_waits_for_ends() -> None:
    queue = JobQueue()
    held = queue.ask("held", "held", _until_ended)
    until(lambda: held.state == "running")
    waiting = [queue.ask(i, "work", _until_ended) for i in range(8)]
    with pytest.raises(Refusal) as refused:
        queue.ask("one more", "work", _until_ended)
    assert refused.value.status == 429
    for job in (held, *waiting):
        job.listeners = 1
        queue.left(job)
    until(lambda: held.state == "cancelled")
    assert {job.state for job in waiting} == {"cancelled"}
    queue.close()


def _until_ended(job) -> None:
    while True:
        job.step(0, 1)
        time.sleep(0.005)


def test_a_job_is_waited_for_as_long_as_a_page_asks_for_it(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr("precedents.explorer.jobs.monotonic", clock)
    queue = JobQueue()
    job = queue.ask("a", "a", _until_ended)
    until(lambda: job.state == "running")
    clock.passes(1000)  # nobody has asked: whoever began it may come back
    assert not job.abandoned
    for _ in range(3):
        job.asked()
        clock.passes(LEASE - 1)
        assert not job.abandoned
    job.let_go()
    clock.passes(SOON / 2)
    job.asked()  # another page
    clock.passes(SOON)
    assert not job.abandoned
    job.let_go()
    clock.passes(SOON)
    until(lambda: job.state == "cancelled")
    queue.close()


def test_jobs_that_nobody_waits_for_any_more_take_no_place(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr("precedents.explorer.jobs.monotonic", clock)
    queue = JobQueue()
    held = queue.ask("held", "held", _until_ended)
    until(lambda: held.state == "running")
    waiting = [queue.ask(i, "work", _until_ended, lasting=i == 0) for i in range(8)]
    for job in waiting:
        job.asked()
    clock.passes(LEASE)
    queue.ask("one more", "work", _until_ended)
    assert [job.state for job in waiting] == ["waiting", *["cancelled"] * 7]
    queue.close()


def test_every_job_can_be_cancelled_but_the_look_at_all_cases(client, explorer) -> None:
    jobs = explorer.world.jobs
    hold = jobs.ask("hold", "held", _until_ended)
    lasting = jobs.ask("lasting", "lasting", _until_ended, lasting=True)
    fill = jobs.ask("fill", "all cases", _until_ended, lasting=True)
    assert client.ask(f"/api/v1/jobs/{fill.number}", "DELETE")[0] == 403
    for job in (lasting, hold):
        assert client.ask(f"/api/v1/jobs/{job.number}", "DELETE")[0] == 200
        until(lambda: job.state == "cancelled")  # noqa: B023  at once
    jobs.cancel(fill)
    until(lambda: fill.state == "cancelled")
    del jobs.every[fill.number]


def test_a_single_question_says_how_far_it_is(explorer) -> None:
    from precedents.explorer.questions import single
    from precedents.runtime.progress import tracked

    said = []

    def work() -> int:
        every = explorer.world.jobs.every
        passes = tracked(range(4), "a pass of the training set", patience=0)
        said.extend(next(reversed(every.values())).title for _ in passes)
        return 3

    found = single(explorer.world, "some", "labels", work)
    job = explorer.world.jobs.every[found["job"]["job"]]
    until(lambda: job.state == "done")
    assert single(explorer.world, "some", "labels", work)["answer"] == 3
    assert any(title.startswith("labels: a pass") for title in said)


def test_a_job_that_fails_says_why_and_the_next_one_runs(capfd) -> None:
    queue = JobQueue()

    def failing(_) -> None:
        raise InputError("A sentence for people.")

    def broken(_) -> None:
        raise ZeroDivisionError("of ours")

    jobs = [queue.ask("a", "a", failing), queue.ask("b", "b", broken), queue.ask("c", "c", lambda _: 3)]
    until(lambda: jobs[-1].state == "done")
    assert [job.state for job in jobs] == ["failed", "failed", "done"]
    assert jobs[0].said == "A sentence for people."
    assert "of ours" not in jobs[1].said
    assert "of ours" in capfd.readouterr().err
    queue.close()


# Tags


def test_tags_are_kept_by_their_data_and_undone_one_by_one(tmp_path) -> None:
    marks = {"training set": "a", "test set": "b"}
    tags = Tags.open(tmp_path, marks)
    for place in (3, 4, 3):
        tags.add(Tag("train", place, "drop"))
    tags.add(Tag("train", 7, "wrong label", "a note", 2))
    again = Tags.open(tmp_path, marks)
    assert [(each.place, each.tag) for each in again.every] == [(4, "drop"), (3, "drop"), (7, "wrong label")]
    assert Tags.open(tmp_path, {**marks, "test set": "c"}).every == []
    assert again.undo() == Tag("train", 7, "wrong label", "a note", 2)
    assert len(Tags.open(tmp_path, marks).every) == 2


def test_the_python_of_tags_drops_and_relabels(tmp_path) -> None:
    tags = Tags.open(None, {"training set": "a", "test set": "b"})
    tags.add(Tag("train", 1, "drop"), Tag("train", 2, "wrong label", "", 0))
    scope = {"train": Examples.of((torch.arange(4.0)[:, None], torch.tensor([1, 1, 1, 1])))}
    exec("\n".join(tags.python()), scope)
    assert scope["train"].labels.tolist() == [1, 0, 1]
    assert scope["train"].take(range(3)).inputs.flatten().tolist() == [0.0, 2.0, 3.0]


# What is typed becomes a case


def test_a_picture_is_read_as_pages_show_pictures(explorer) -> None:
    from precedents.views.instance import png

    world = explorer.world
    drawn = world.shown("case", 3)
    found = picture_case(world, png(drawn))
    assert torch.allclose(found.flatten(), torch.tensor(drawn).flatten().float(), atol=0.01)


def test_a_row_of_the_test_set_typed_again_is_the_same_case() -> None:
    explainer, test = row_world()
    explorer = filled(pr.explore(explainer, test))
    try:
        world = explorer.world
        row = {name: repr(value) for name, value in world.shown("case", 3).items()}
        cases = world.subject.cases(row_case(world, row))
        assert torch.allclose(cases.take([0]).inputs, world.test.take([3]).inputs)
        with pytest.raises(InputError, match="Give a value for each column"):
            row_case(world, {"alcohol": "1"})
        with pytest.raises(InputError, match="not texts"):
            text_case(world, "words")
    finally:
        explorer.stop()


@pytest.mark.parametrize("value", ["1e39", "1e400", "inf", "nan", 10**400, -(10**400), "9" * 400])
def test_a_number_that_the_model_cannot_hold_is_refused_in_words(columned, value) -> None:
    status, _, text = Client(columned).ask(
        "/api/v1/try", "POST", json.dumps({"row": {f"x{i}": value if i == 2 else 1 for i in range(5)}}).encode()
    )
    assert status == 400
    assert text.startswith("x2 is ")
    assert len(text) < 200


@pytest.fixture(scope="module")
def columned() -> Iterator[Explorer]:
    """A table of five columns of float32."""
    torch.manual_seed(0)
    x, y = torch.randn(40, 5), torch.arange(40) % 3
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    explainer = pr.Explainer(model, (x, y), render=pr.tables([f"x{i}" for i in range(5)]))
    explorer = filled(pr.explore(explainer, (x[:9] + 0.1, y[:9])))
    yield explorer
    explorer.stop()


def test_whole_numbers_of_a_column_stay_whole_and_small() -> None:
    example = {"a": 3, "b": 1.5}
    assert row_values(example, {"a": "7", "b": "2"}) == {"a": 7, "b": 2.0}
    for value in ("1e30", 10**30, str(2**63)):
        with pytest.raises(InputError, match=r"a is .* Give a finite, smaller number"):
            row_values(example, {"a": value, "b": 1})


@pytest.mark.parametrize(
    "typed",
    [
        '{"text": "goal \\ud800"}',
        '{"set": "case", "place": 1, "tag": "drop", "note": "\\udc00x", "label": null}',
    ],
)
def test_half_of_a_letter_is_refused(client, explorer, typed) -> None:
    for target in ("try", "tags"):
        status, _, text = client.ask(f"/api/v1/{target}", "POST", typed.encode())
        assert (status, text[:24]) == (400, "There is half of a lette")
    assert explorer.world.tags.every == []


def test_half_of_a_letter_that_was_kept_by_an_earlier_version_is_written_out(client, explorer) -> None:
    explorer.world.tags.add(Tag("case", 1, "drop", "a\ud800b"))
    try:
        for target in ("/tags", "/api/v1/tags", "/api/v1/tags.json", "/api/v1/tags.csv"):
            assert client.ask(target)[0] == 200
    finally:
        explorer.world.tags.undo()


def test_titles_have_ids_letter_by_letter() -> None:
    x, y = torch.eye(4).repeat(3, 1), torch.arange(12) % 2
    test = pr.Examples.of((x, y), "test set", ids=[f"Ada Ng-{i}" for i in range(12)])
    explorer = filled(pr.explore(pr.Explainer(nn.Linear(4, 2), (x, y)), test))
    try:
        client = Client(explorer)
        assert "<h1>Case Ada Ng-3: predicted" in client.ask("/cases/3")[2]
        typed = json.dumps({"row": {f"x{i}": 1.0 for i in range(4)}}).encode()
        number = json.loads(client.ask("/api/v1/try", "POST", typed)[2])["try"]
        filled(explorer)
        assert "Case Ada Ng-3</a>: predicted" in client.ask(f"/try?id={number}&case=3")[2]
    finally:
        explorer.stop()


# Copy as Python and as command


def test_code_that_is_copied_runs(tmp_path, monkeypatch) -> None:
    import sys

    (tmp_path / "own_model.py").write_text(
        "import torch\n\n\ndef factory():\n    torch.manual_seed(0)\n"
        "    x, y = torch.rand(30, 4), torch.arange(30) % 2\n"
        "    return torch.nn.Linear(4, 2), (x, y), (x[:5] + 0.1, y[:5])\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    origin = Provenance(target="own_model:factory")
    scope: dict = {}
    exec(origin.python("cos_grad", "found = explainer.explain(test.selected([3]), k=2)"), scope)
    assert len(scope["found"].precedents()) == 2
    assert origin.command("explain", "--case", "3") == "precedents explain --target own_model:factory --case 3"
    assert Provenance(run="runs/my run").command("audit") == "precedents audit 'runs/my run'"
    assert Provenance().command("audit") == ""


@pytest.mark.parametrize(
    "target",
    ["cases?list=all", "cases/3", "train", "train/5?metric=dot_grad", "hubs?metric=cos_last", "suspects"],
)
def test_the_python_of_a_page_runs(client, explorer, target, capsys) -> None:
    found = json.loads(client.ask(f"/api/v1/{target}")[2])
    filled(explorer)
    world = explorer.world
    scope = {"model": world.subject.classifier, "train": world.subject.train, "test": world.test}
    exec(found["python"], scope)
    assert capsys.readouterr().out.strip()


def test_suspects_are_by_the_metric_that_pages_begin_with() -> None:
    explainer, (x, y) = picture_world()
    few = {"metrics": ["cos_grad", "dot_x"], "criteria": ["identical_class"]}
    audit = pr.audit(explainer.subject.classifier, explainer.subject.train, (x, y), **few)
    explainer = pr.Explainer(explainer.subject.classifier, explainer.subject.train, "dot_x")
    explorer = filled(pr.explore(explainer, (x, y), metrics=["cos_grad"], audit=audit))
    try:
        client, world = Client(explorer), explorer.world
        assert (world.main, world.explainer.name) == ("cos_grad", "dot_x")
        client.ask("/suspects")
        filled(explorer)
        found = json.loads(client.ask("/api/v1/suspects")[2])["suspects"]
        truth = pr.Explainer(world.subject.classifier, world.subject.train, "cos_grad").suspects(60, world.test)
        other = explainer.suspects(60, world.test)
        accusers = [len(row["accused_by"]) for row in truth.rows()]
        assert [each["accusers"] for each in found] == accusers
        assert accusers != [len(row["accused_by"]) for row in other.rows()]
    finally:
        explorer.stop()


def test_a_suspect_without_neighbours_is_told_so() -> None:
    x, y = torch.eye(6), torch.arange(6) % 2  # no two have anything in common
    explorer = filled(pr.explore(pr.Explainer(nn.Linear(6, 2), (x, y)), (x[:4], y[:4])))
    try:
        client = Client(explorer)
        client.ask("/suspects")
        filled(explorer)
        answer = json.loads(client.ask("/api/v1/suspects")[2])
        jsonschema.validate(answer, schema_of("suspects"))
        assert [each["others"] for each in answer["suspects"]] == [None] * 6
        page = str(client.ask("/suspects")[2])
        assert page.count("it has no neighbours") == 6
    finally:
        explorer.stop()


def test_suspects_are_kept_in_the_folder_and_read_as_they_were(tmp_path, monkeypatch) -> None:
    explainer, test = picture_world()
    said = []
    for _ in range(2):
        explorer = filled(pr.explore(explainer, test, keep=tmp_path))
        try:
            client = Client(explorer)
            client.ask("/suspects")
            filled(explorer)
            said.append(json.loads(client.ask("/api/v1/suspects")[2])["suspects"])
        finally:
            explorer.stop()
        monkeypatch.setattr(pr.Explainer, "suspects", None)  # whoever asks again fails
    for each in (row for rows in said for row in rows):
        each.pop("tile")  # whose address is of one start
    assert len(said[0]) == 60
    assert said[0] == said[1]


def test_suspects_and_maps_stay_however_much_is_asked_afterwards(explorer, client) -> None:
    client.ask("/suspects")
    filled(explorer)
    found = explorer.world.single.get(("suspects", explorer.world.main))
    for i in range(100):
        explorer.world.single.put(i, i)
    assert found is not None
    assert explorer.world.single.get(("suspects", explorer.world.main)) is found
    assert len(explorer.world.single.keys()) == 64


def test_of_two_classes_of_one_name_the_better_label_is_the_right_one() -> None:
    torch.manual_seed(0)
    y = torch.arange(60) % 3
    x = 2 * torch.randn(3, 5)[y] + torch.randn(60, 5)
    model = trained(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), x, y)
    wrong = torch.where(torch.arange(60) < 6, (y + 1) % 3, y)
    explorer = filled(pr.explore(pr.Explainer(model, (x, wrong), classes=["a", "a", "b"]), (x[:20], y[:20])))
    try:
        client = Client(explorer)
        client.ask("/suspects")
        filled(explorer)
        found = json.loads(client.ask("/api/v1/suspects")[2])["suspects"]
        better = {each["place"]: each["better"] for each in found}
        assert {i: better[i] for i in range(6)} == {i: int(y[i]) for i in range(6)}
    finally:
        explorer.stop()


@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_the_python_of_a_case_of_ones_own_is_the_same_case(kind, capsys) -> None:
    explainer, test = WORLDS[kind]()
    explorer = filled(pr.explore(explainer, test))
    try:
        client, world = Client(explorer), explorer.world
        typed = {"text": 'the late "goal"'}
        if kind == "rows":
            typed = {"row": {name: str(value) for name, value in world.shown("case", 3).items()}}
        number = json.loads(client.ask("/api/v1/try", "POST", json.dumps(typed).encode())[2])["try"]
        filled(explorer)
        found = json.loads(client.ask(f"/api/v1/try?id={number}")[2])
        model, train = explainer.subject.classifier, explainer.subject.train
        scope = {"model": model, "train": train, "test": world.test}
        line = found["python"].rpartition("explainer.explain")[2]
        scope["explainer"], code = explainer, found["python"].partition("explainer = ")[2].partition("\n")[2]
        exec(f"import pandas as pd\n{code}\nfound = explainer.explain{line.rstrip()[:-1]}", scope)
        shown = [each["index"] for each in found["tried"][0]["columns"]["cos_grad"]]
        assert [each.index for each in scope["found"].precedents()] == shown
        assert capsys.readouterr().out.strip()
    finally:
        explorer.stop()


def test_an_explorer_says_what_it_needs() -> None:
    with pytest.raises(InputError, match="Pass one"):
        pr.explore("model", None)
    explainer, test = picture_world()
    with pytest.raises(InputError, match="https://"):
        pr.explore(explainer, test, proxy="hub")
    with pytest.raises(InputError, match="is a file, but answers and tags are kept in a folder"):
        pr.explore(explainer, test, keep=__file__)
    assert AllAnswers.empty(3, 2, 2).k == 2


def test_it_is_told_what_it_is(explorer) -> None:
    assert repr(explorer) == "Explorer(Sequential, 60 cases, running)"
    assert isinstance(explorer.world.folder, Path)


# Behind a proxy


@pytest.mark.parametrize(
    ("proxy", "origin"),
    [
        ("https://hub.example.org/user/me/proxy/8123/", "https://hub.example.org"),
        ("HTTPS://Hub.Example.org:443/user/me/proxy/8123", "https://hub.example.org"),
        ("http://hub.example.org:80/user/me/proxy/8123", "http://hub.example.org"),
        ("http://127.0.0.1:8888/user/me/proxy/8123/", "http://127.0.0.1:8888"),
        ("https://[::1]:8443/user/me/proxy/8123//", "https://[::1]:8443"),
    ],
)
def test_an_address_of_a_proxy_is_what_browsers_make_of_it(proxy, origin) -> None:
    explorer = filled(pr.explore(*picture_world(), proxy=proxy))
    try:
        client, host = Client(explorer), origin.partition("://")[2]
        assert explorer.address.startswith(f"{origin}/user/me/proxy/8123/?token=")
        assert f'src="{origin}/user' in explorer._repr_html_()
        status, head, _ = client.ask("/cases", Host=host)
        assert status == 200
        ancestors = head.partition("frame-ancestors ")[2].partition("\r\n")[0]
        assert origin in ancestors.split()
        tag = json.dumps({"set": "case", "place": 1, "tag": "drop", "note": "", "label": None}).encode()
        assert client.ask("/api/v1/tags", "POST", tag, Host=host, Origin=origin)[0] == 200
    finally:
        explorer.stop()


@pytest.mark.parametrize(
    "proxy",
    [
        "hub",
        "ftp://hub",
        "https://",
        "https://me@hub/",
        "https://hub/?a=b",
        "https://hub/#x",
        "https://hub:x/",
        "//hub",
    ],
)
def test_what_is_no_address_of_a_proxy_is_refused(proxy) -> None:
    with pytest.raises(InputError, match="Pass the address at which it is served"):
        pr.explore(*picture_world(), proxy=proxy)


def test_an_address_with_a_slash_too_many_leads_nowhere_else(client) -> None:
    status, head, _ = client.ask("/cases/")
    assert (status, "location" in head.lower()) == (404, False)


def test_pictures_are_under_the_address_of_the_json_too(client) -> None:
    one, other = (client.raw(client.head(f"{path}/pictures/train/9.png")) for path in ("", "/api/v1"))
    assert one.partition(b"\r\n\r\n")[2] == other.partition(b"\r\n\r\n")[2] != b""
    assert client.ask("/api/v1/pictures/train/160.png")[0] == 404


# The audit's cells


def audited(metrics: list[str], **more) -> tuple:
    """An explorer of pictures whose training set has a long instance, and the audit by all criteria."""
    explainer, (x, y) = picture_world()
    batch = explainer.subject.train.take(range(160))
    inputs = batch.inputs.clone()
    inputs[0] *= 9
    explainer = pr.Explainer(explainer.subject.classifier, (inputs, batch.labels))
    finer = (batch.labels * 2 + torch.arange(160) // 80, y * 2 + torch.arange(60) % 2)
    audit = pr.audit(
        explainer.subject.classifier, (inputs, batch.labels), (x, y), metrics=metrics, subclasses=finer
    )
    return explainer, (x, y), audit


def test_a_cell_of_the_audit_leads_to_what_failed_it_by_every_criterion() -> None:
    explainer, test, audit = audited(["cos_grad", "dot_x"])
    explorer = filled(pr.explore(explainer, test, metrics=["dot_x"], audit=pr.Audit.from_json(audit.to_json())))
    try:
        client, world = Client(explorer), explorer.world
        found = json.loads(client.ask("/api/v1/audit")[2])
        assert found["untold"] == []
        names = {f"{m}:{c}" for (m, c), each in audit.judgement.outcomes.items() if hasattr(each, "values")}
        assert set(found["failed"]) == names
        kinds = {name.partition(":")[2].partition("(")[0] for name in names}
        assert kinds == {"identical_class", "identical_subclass", "identical_instance", "model_randomization"}
        trial = pr.Trial.of(world.subject.classifier, world.subject.train, world.test)
        slow = {
            "dot_x:identical_class": _of_another_class(trial),
            "dot_x:identical_instance": _not_itself(world),
            "dot_x:model_randomization": list(range(60)),
        }
        for name, wanted in slow.items():
            assert wanted
            page = "cases?list=all&" if found["failed"][name]["set"] == "case" else "train?"
            shown = json.loads(client.ask(f"/api/v1/{page}size=100&sort=place&failed={name}")[2])
            listed = shown.get("cases") or shown["instances"]
            assert [each["place"] for each in listed] == wanted[:100]
            assert found["failed"][name]["count"] == shown["count"] == len(wanted)
            assert shown["why"]
            assert f"failed={name.replace(':', '%3A')}" in client.ask("/audit")[2]
    finally:
        explorer.stop()


def _of_another_class(trial: pr.Trial) -> list[int]:
    firsts = trial.scores(pr.metric("dot_x")).argmax(dim=1)
    said = trial.cases.labels
    return [i for i in range(60) if trial.workspace.train.labels[firsts[i]] != said[i]]


def _not_itself(world) -> list[int]:
    rows = world.subject.train.take(range(160)).inputs.flatten(1).double()
    right = ~world.measures["train"].wrong
    return [i for i in range(160) if right[i] and (rows @ rows[i]).max() > rows[i] @ rows[i] * (1 + 1e-9)]


def test_right_cases_with_another_subclass_are_found_by_their_places() -> None:
    explainer, test, audit = audited(["dot_x"])
    result = audit["dot_x", "identical_subclass"]
    truth = pr.Trial.of(explainer.subject.classifier, explainer.subject.train, test)
    assert result.places.tolist() == (truth.cases.labels == truth.truth).nonzero().flatten().tolist()
    assert len(result.places) == len(result.values) < 60


def test_an_audit_of_other_cases_or_of_an_older_version_says_why_its_numbers_lead_nowhere() -> None:
    explainer, (x, y), audit = audited(["cos_grad"])
    kept = json.loads(audit.to_json())
    for outcome in kept["outcomes"]:
        outcome.pop("places", None)
    older = pr.Audit.from_json(json.dumps(kept))
    for known, given, wanted in (
        (older, (x, y), "an earlier version made it"),
        (audit, (x.flip(0), y.flip(0)), "other cases than the first of these"),
    ):
        explorer = filled(pr.explore(explainer, given, audit=known))
        try:
            assert wanted in Client(explorer).ask("/audit")[2]
        finally:
            explorer.stop()


def test_pages_and_pictures_are_kept_within_the_memory_budget() -> None:
    explainer, test = picture_world()
    batch = explainer.subject.train.take(range(160))
    small = pr.Explainer(explainer.subject.classifier.module, (batch.inputs, batch.labels), memory="100 MB")
    explorer = filled(pr.explore(small, test))
    try:
        client, world = Client(explorer), explorer.world
        assert 0 < world.pages.most == world.pictures.most == world.tries.room <= 100 * 10**6 // 16
        world.tries.room = 3 * world.shown("case", 0).nbytes
        for case in range(5):
            tried(world, world.test.take([case]).inputs, None)
        filled(explorer)
        assert world.tries.keys() == [3, 4, 5]
        assert world.tries.size == world.tries.room
        world.pages.most = 60_000
        for case in range(20):
            client.ask(f"/cases/{case}")
        assert 0 < world.pages.size <= 60_000
    finally:
        explorer.stop()


# Equal questions


def test_equal_questions_at_the_same_time_are_made_once_and_kept_until_something_changes(explorer) -> None:
    pages, made, both = Pages(explorer.world), [], threading.Event()

    def make() -> bytes:
        assert both.wait(20)
        made.append(1)
        return b"an answer"

    def request(query: bytes) -> Request:
        return Request({"type": "http", "path": "/cases", "query_string": query, "headers": []})

    async def asked() -> list[bytes]:
        every = [asyncio.ensure_future(pages._kept(request(b"list=all"), make)) for _ in range(5)]
        every.append(asyncio.ensure_future(pages._kept(request(b"list=odd"), make)))
        await asyncio.sleep(0)
        both.set()
        found = await asyncio.gather(*every)
        return [*found, await pages._kept(request(b"list=all"), make)]

    assert asyncio.run(asked()) == [b"an answer"] * 7
    assert len(made) == 2
    explorer.world.changed()
    assert asyncio.run(pages._kept(request(b"list=all"), make)) == b"an answer"
    assert len(made) == 3


def test_a_question_that_fails_fails_for_all_who_ask_and_is_asked_anew(explorer) -> None:
    pages, made = Pages(explorer.world), []

    def make() -> bytes:
        made.append(1)
        raise Refusal(404, "No.")

    async def asked() -> list:
        request = Request({"type": "http", "path": "/none", "query_string": b"", "headers": []})
        return await asyncio.gather(*(pages._kept(request, make) for _ in range(3)), return_exceptions=True)

    assert [each.status for each in asyncio.run(asked())] == [404] * 3
    assert len(made) == 1
    asyncio.run(asked())
    assert len(made) == 2


def test_an_index_answers_as_a_pass_does(tmp_path) -> None:
    explainer, test = picture_world()
    explainer.save(tmp_path / "saved")
    batch = explainer.subject.train.take(range(160))
    loaded = pr.Explainer.load(
        tmp_path / "saved", picture_world()[0].subject.classifier, (batch.inputs, batch.labels)
    )
    explorer = filled(pr.explore(loaded, test))
    try:
        truth = explainer.explain(explorer.world.test, k=100).top
        assert torch.equal(explorer.world.answers["cos_grad"].indices.long(), truth.indices)
    finally:
        explorer.stop()
