from dataclasses import replace

import pytest
import torch

from precedents import Classifier, Explainer, FormatError, InputError, UnknownNameError
from precedents.zoo.run import Prepared, Recipe, Run, is_run


@pytest.fixture(scope="module")
def run() -> Run:
    return Prepared.of(Recipe("wine", "mlp", seed=3, epochs=4)).run()


def test_a_run_is_read_back_as_it_was_written(run, tmp_path) -> None:
    run.write(tmp_path / "run")
    read = Run.open(tmp_path / "run")
    assert read.prepared.recipe == run.prepared.recipe
    assert dict(read.metrics) == dict(run.metrics)
    for part in ("train", "test"):
        assert getattr(read.prepared, part).fingerprint() == getattr(run.prepared, part).fingerprint()
    case = run.prepared.test.take([0]).inputs
    first, second = (Explainer(each.model, each.prepared.train).explain(case) for each in (run, read))
    assert first.to_dict() == second.to_dict()
    assert not read.model.training


def test_the_same_recipe_gives_the_same_files(run, tmp_path) -> None:
    run.write(tmp_path / "one")
    state = torch.get_rng_state()
    Prepared.of(run.prepared.recipe).run().write(tmp_path / "two")
    assert torch.equal(torch.get_rng_state(), state)
    for name in ("run.json", "weights.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_another_seed_is_another_split_and_model(run) -> None:
    other = Prepared.of(replace(run.prepared.recipe, seed=4))
    assert other.train.fingerprint() != run.prepared.train.fingerprint()
    assert other.recipe.folder != run.prepared.recipe.folder


def test_the_metrics_are_those_of_the_model(run) -> None:
    model, train = Classifier.of(run.model, run.prepared.train), run.prepared.train
    assert run.metrics["train accuracy"] == (model.predicted(train) == train.labels).double().mean()
    assert len(run.metrics["loss"]) == 4
    assert run.metrics["loss"][-1] < run.metrics["loss"][0]


def test_retraining_on_two_classes_gives_two_outputs(run) -> None:
    merged = run.prepared.train.relabelled(run.prepared.train.labels % 2)
    assert run.prepared.retrain(merged, seed=0)(merged.take([0]).inputs).shape == (1, 2)


def test_a_changed_weight_is_noticed(run, tmp_path) -> None:
    run.write(tmp_path / "run")
    file = tmp_path / "run" / "weights.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(FormatError, match="damaged or of another run"):
        Run.open(tmp_path / "run")


def test_a_folder_without_a_run_is_none(tmp_path) -> None:
    assert not is_run(tmp_path)
    with pytest.raises(InputError, match="has no run in it"):
        Run.open(tmp_path)


@pytest.mark.parametrize(("dataset", "model"), [("wien", "mlp"), ("wine", "mpl")])
def test_an_unknown_name_is_found_before_any_work(dataset, model) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        Recipe(dataset, model)


def test_an_estimate_grows_with_the_epochs(run) -> None:
    recipe = run.prepared.recipe
    few, many = (replace(run.prepared, recipe=replace(recipe, epochs=n)).estimate() for n in (1, 10_000))
    assert 0 < few.seconds < many.seconds
    assert few.disk == many.disk > 0
