"""An index that is there is opened with what is passed: memory, and a metric of one's own parts."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from precedents import BudgetError, Explainer, Index, InputError, Metric
from precedents.classifier.classifier import Classifier
from precedents.data.batch import Batch
from precedents.metrics.similarities.dot import dot

from .worlds import Set

MEMORY = "200 MB"


@dataclass(frozen=True)
class Doubled:
    """A feature map that no text names."""

    def __call__(self, model: Classifier, batch: Batch) -> Tensor:
        return 2 * model.logits(batch.inputs).detach().double()


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))


def rows(n: int) -> Set:
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(0)), torch.arange(n) % 3


@pytest.fixture
def folder(model, tmp_path: Path) -> Path:
    return Index.build(model, rows(600), tmp_path / "i", memory=MEMORY).folder


def test_an_index_is_checked_in_the_memory_that_is_allowed(model, folder) -> None:
    index = Index.open(folder, model, rows(600), memory="100 MB")
    assert index.relevance.workspace.classifier.budget.given == 100_000_000
    assert index.check(3).recall == 1.0
    assert Index.open(folder, model, rows(600)).relevance.workspace.classifier.budget.given == 200_000_000


def test_rows_are_not_added_in_less_memory_than_was_planned(model, folder) -> None:
    with pytest.raises(InputError, match=r"was planned for .* of memory, not 100 MB\. Allow as much"):
        Index.extend(folder, model, rows(700), memory="100 MB")
    with pytest.raises(InputError, match=r"was planned for .* of memory, not 100 MB\. Allow as much"):
        Index.open(folder, model, rows(600), memory="100 MB").add(rows(20))
    assert Index.extend(folder, model, rows(700), memory="300 MB").state.rows == 700


@pytest.mark.parametrize("call", [Index.open, Index.extend])
@pytest.mark.parametrize("told", [{"rows": 100}, {"shard": "1/2"}])
def test_options_of_a_build_are_refused_when_it_is_done(call, told, model, folder) -> None:
    with pytest.raises(
        InputError, match=r"(rows|shard) is for Index\.build: the shards of .* are there\. Leave it"
    ):
        call(folder, model, rows(600), **told)


def test_an_index_of_own_parts_is_opened_and_extended_with_its_metric(model, tmp_path) -> None:
    metric, folder = Metric(Doubled(), dot), tmp_path / "own"
    Index.build(model, rows(600), folder, metric, memory=MEMORY)
    with pytest.raises(
        InputError, match=r"has a part that no text names: .* Pass the metric again.*metric=\.\.\."
    ):
        Index.open(folder, model, rows(600))
    assert Index.open(folder, model, rows(600), metric).check(3).recall == 1.0
    assert Index.extend(folder, model, rows(700), metric).state.rows == 700


def small_pictures() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """Whose codes need more than what they are built in."""
    torch.manual_seed(0)
    return nn.Linear(6, 3), (torch.randn(1600, 6), torch.arange(1600) % 3)


def test_an_index_that_is_built_in_less_memory_than_it_is_asked_in_is_opened_in_more(tmp_path) -> None:
    model, train = small_pictures()
    with pytest.warns(
        UserWarning, match=r"A question to the index in .* Allow more where it is .*memory='\d+ MB'"
    ):
        index = Index.build(model, train, tmp_path / "i", memory="1 MB")
    with pytest.raises(BudgetError, match=r"A question to the index needs .* is 977 KiB\. Allow more") as said:
        index.check(3)
    assert Index.open(tmp_path / "i", model, train).check(3).recall == 1.0
    advised = re.search(r"memory='(\d+ MB)'", str(said.value))
    assert Explainer.load(tmp_path / "i", model, train, memory=advised[1]).explain(train[0][:2], 3).completeness


def test_nothing_is_warned_of_where_there_is_room(tmp_path, recwarn) -> None:
    model, train = small_pictures()
    Index.build(model, train, tmp_path / "i", memory="10 MB")
    assert not recwarn.list


def test_a_folder_of_another_similarity_is_not_gone_on_with(world, tmp_path) -> None:
    model, (x, y), _ = world
    train, folder = (x[:600], y[:600]), tmp_path / "index"
    Index.build(model, train, folder, "cos_grad", memory="100 MB")
    said = r"is of cosine:gradient, not dot:gradient\. .*load\(.*metric='dot:gradient'\)\. To go on: "
    with pytest.raises(InputError, match=said):
        Index.build(model, train, folder, "dot_grad", memory="100 MB")
    Index.build(model, train, folder, "cos_grad", memory="100 MB")
    assert str(Explainer.load(folder, model, train, metric="dot_grad").relevance.metric) == "dot:gradient"
