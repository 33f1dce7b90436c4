"""What fails says why, on the pages that miss it; what was computed stays; nothing is waited for in vain."""

import json
import re

import pytest
import torch
from torch import nn
from waiting import until

import precedents as pr
from explorer.conftest import Client, filled, picture_world
from precedents.errors import FormatError, InputError, NumericalError, StoreError
from precedents.explorer.answers import Answerer
from precedents.explorer.guard import FAILED, refused
from precedents.explorer.running import Explorer
from precedents.explorer.tags import Tag, Tags

PAGES = [
    "cases",
    "cases?list=odd",
    "cases?list=disagree",
    "cases/0",
    "train",
    "train/0",
    "hubs",
    "suspects",
    "tags",
]


def vectors() -> tuple[pr.Explainer, tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(0)
    y = torch.arange(40) % 3
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    return pr.Explainer(model, (torch.randn(40, 5), y)), (torch.randn(20, 5), y[:20])


def rested(explorer: Explorer) -> Explorer:
    """When no job is left, however they ended."""
    every = explorer.world.jobs.every
    until(lambda: all(job.state not in ("waiting", "running") for job in list(every.values())))
    return explorer


def waited_for(client: Client, pages: list[str]) -> list[str]:
    """The pages that wait for something, when no job is left."""
    for page in pages:
        client.ask(f"/{page}")
    rested(client.explorer)
    return [page for page in pages if "data-waiting" in client.ask(f"/{page}")[2]]


def test_cases_that_the_model_cannot_answer_are_told_on_all_pages() -> None:
    explainer, (x, y) = vectors()
    x[3] = torch.nan
    explorer = rested(pr.explore(explainer, (x, y)))
    try:
        client = Client(explorer)
        assert waited_for(client, PAGES) == []
        for page in PAGES:
            text = client.ask(f"/{page}")[2]
            assert "could not be looked at to the end" in text
            assert "not finite" in text or "NaN" in text or "nan" in text
        found = json.loads(client.ask("/api/v1/run")[2])
        assert found["stopped"]
    finally:
        explorer.stop()


def test_one_metric_that_breaks_down_says_so_and_the_others_go_on(monkeypatch) -> None:
    whole = Answerer.ranked

    def broken(self, cases, k):
        if "last_hidden" in str(self.relevance.metric):
            raise RuntimeError("out of memory at /secret/place")
        return whole(self, cases, k)

    monkeypatch.setattr(Answerer, "ranked", broken)
    explorer = filled(pr.explore(*vectors(), metrics=["cos_last", "dot_grad"]))
    try:
        client = Client(explorer)
        assert {name for name, each in explorer.world.answers.items() if each.complete} == {
            "cos_grad",
            "dot_grad",
        }
        text = client.ask("/cases/0")[2]
        assert "could not be computed" in text
        assert FAILED in text
        assert "secret" not in text
        assert waited_for(client, [*PAGES, "hubs?metric=cos_last", "train/0?metric=cos_last"]) == []
    finally:
        explorer.stop()


def test_a_single_metric_has_none_to_disagree_with() -> None:
    explorer = filled(pr.explore(*vectors()))
    try:
        assert waited_for(Client(explorer), ["cases?list=disagree"]) == []
    finally:
        explorer.stop()


def test_what_cannot_be_kept_is_shown_and_told(tmp_path) -> None:
    (tmp_path / "0002.safetensors").mkdir()
    explorer = filled(pr.explore(*vectors(), keep=tmp_path))
    try:
        assert explorer.world.answers["cos_grad"].complete
        text = Client(explorer).ask("/cases/0")[2]
        assert "cannot be kept" in text
        assert "0002.safetensors" in text
        assert str(tmp_path) not in text
        assert "its precedents are being computed" not in text
        (tmp_path / "0002.safetensors").rmdir()
        explorer.world.store.put("later", {"rows": torch.zeros(3)})
    finally:
        explorer.stop()
    again = filled(pr.explore(*vectors(), keep=tmp_path))
    try:
        assert {"case", "train", "later"} <= set(again.world.store.holds)
        assert again.world.notes == []
    finally:
        again.stop()


def test_a_manifest_that_cannot_be_written_keeps_nothing_and_is_told(tmp_path) -> None:
    (tmp_path / "explorer.json").mkdir()
    explorer = filled(pr.explore(*vectors(), keep=tmp_path))
    try:
        assert explorer.world.answers["cos_grad"].complete
        assert "cannot be kept" in Client(explorer).ask("/cases")[2]
    finally:
        explorer.stop()


@pytest.mark.parametrize("how", ["cut", "edited", "empty"])
def test_damaged_tags_are_moved_aside_and_told(tmp_path, how) -> None:
    explainer, test = picture_world()
    explorer = filled(pr.explore(explainer, test, keep=tmp_path))
    explorer.world.tags.add(Tag("case", 1, "drop", "a note"))
    explorer.stop()
    (file,) = tmp_path.glob("tags-*.json")
    whole = file.read_text()
    damaged = {"cut": whole[:-30], "edited": whole.replace("a note", "b note"), "empty": ""}[how]
    file.write_text(damaged)
    explorer = filled(pr.explore(explainer, test, keep=tmp_path))
    try:
        assert explorer.world.tags.every == []
        (aside,) = tmp_path.glob("tags-*.damaged")
        assert aside.read_text() == damaged
        text = Client(explorer).ask("/cases")[2]
        assert f"It is called {aside.name} now" in text
        assert str(tmp_path) not in text
        explorer.world.tags.add(Tag("case", 2, "drop"))
        assert file.is_file()
    finally:
        explorer.stop()


def test_two_explorers_of_a_folder_keep_the_tags_of_both(tmp_path) -> None:
    known = {"training set": "a", "test set": "b"}
    one, two = Tags.open(tmp_path, known), Tags.open(tmp_path, known)
    one.add(Tag("case", 1, "drop"))
    two.add(Tag("case", 2, "drop"), Tag("case", 3, "drop"))
    one.add(Tag("case", 4, "drop"))
    assert [each.place for each in one.every] == [1, 2, 3, 4]
    two.undo()
    one.remove("case", 1, "drop")
    assert [each.place for each in Tags.open(tmp_path, known).every] == [2, 4]


def test_tags_that_cannot_be_written_are_not_changed(tmp_path) -> None:
    (tmp_path / "kept").write_text("a file where the folder was")
    tags = Tags(tmp_path / "kept" / "tags-0.json", {"training set": "a", "test set": "b"})
    with pytest.raises(StoreError, match="Nothing was changed"):
        tags.add(Tag("case", 1, "drop"))
    assert tags.every == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("k is 0. Ask for one."), "k is 0. Ask for one."),
        (NumericalError("The loss of case 3 is no number."), "The loss of case 3 is no number."),
        (FormatError("/root/my runs/a/explorer.json is damaged."), "my explorer.json is damaged."),
        (
            StoreError(r"C:\users\me\tags.json cannot be written: 'C:\x\y.new'."),
            "tags.json cannot be written: 'y.new'.",
        ),
        (RuntimeError("at /secret/x.py"), FAILED),
    ],
)
def test_our_errors_are_told_and_files_without_their_folders(error, text) -> None:
    found = refused(error).text
    assert found == text
    assert not re.search(r"[/\\]", found)
