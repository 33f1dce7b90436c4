"""Models in wrappers for speed are explained as what is inside; programs without layers are refused."""

from collections.abc import Callable, Iterator
from copy import deepcopy

import hugging
import pytest
import torch
from plain import cosines
from torch import Tensor, nn
from torch._dynamo.utils import counters

import precedents as pr

X = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
Y = torch.arange(30) % 3

# torch's own, at the first use of torch.compile, of torch.jit and of DataParallel
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")


def in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


class Parted(nn.Module):
    """Wrappers inside, of wrappers."""

    def __init__(self, inner: nn.Sequential) -> None:
        super().__init__()
        self.body, self.head = nn.DataParallel(compiled(inner[:3])), inner[3]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


@pytest.fixture(scope="module")
def process(tmp_path_factory) -> Iterator[None]:
    """A group of one process, as DistributedDataParallel needs it."""
    file = tmp_path_factory.mktemp("group") / "file"
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


WRAPPED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "compiled": compiled,
    "in place": in_place,
    "parallel": nn.DataParallel,
    "distributed": nn.parallel.DistributedDataParallel,
    "compiled and parallel": lambda model: compiled(nn.DataParallel(model)),
    "parallel and compiled": lambda model: nn.DataParallel(compiled(model)),
    "distributed and compiled": lambda model: nn.parallel.DistributedDataParallel(compiled(model)),
}


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize("kind", WRAPPED)
def test_a_wrapped_model_is_explained_saved_and_audited_as_what_is_inside(kind, tmp_path) -> None:
    model = network()
    plain = pr.Explainer(model, (X, Y))
    wrapped = WRAPPED[kind](deepcopy(model))
    explainer = pr.Explainer(wrapped, (X, Y))
    found = explainer.scores(X[:5], labels=Y[:5])
    torch.testing.assert_close(found, cosines(model, X, Y)[:5], rtol=0, atol=1e-6)
    assert torch.equal(found, plain.scores(X[:5], labels=Y[:5]))
    assert explainer.subject.name == "Sequential"
    assert [tap.module for tap in explainer.subject.classifier.taps] == ["3"]
    assert torch.equal(
        pr.Explainer(wrapped, (X, Y), "cos_last", hidden=["0"]).scores(X[:2]),
        pr.Explainer(model, (X, Y), "cos_last", hidden=["0"]).scores(X[:2]),
    )
    plain.save(tmp_path)  # by the one, and loaded by the other
    assert torch.equal(pr.Explainer.load(tmp_path, wrapped, (X, Y)).scores(X[:5], labels=Y[:5]), found)
    with torch.no_grad():
        next(wrapped.parameters())[0] += 1
    with pytest.raises(pr.StaleError, match=r"0\.weight"):
        pr.Explainer.load(tmp_path, wrapped, (X, Y))


@pytest.mark.parametrize("wrap", [compiled, nn.DataParallel])
def test_an_audit_takes_wrapped_models_also_of_fresh_and_retrain(wrap) -> None:
    def fresh(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return wrap(network())

    def audit(model: nn.Module, **options) -> str:
        return str(pr.audit(model, (X, Y), (X[:6], Y[:6]), metrics=["cos_grad", "cos_last"], **options))

    model = network()
    retrain = lambda train, seed: nn.Sequential(network(), nn.Linear(3, 2))  # noqa: E731
    wanted = audit(model, fresh=lambda _: network(), retrain=retrain)
    assert audit(wrap(model), fresh=fresh, retrain=lambda *given: wrap(retrain(*given))) == wanted


def test_wrappers_inside_of_a_model_are_taken_off() -> None:
    model = network()
    explainer = pr.Explainer(Parted(deepcopy(model)), (X, Y))
    torch.testing.assert_close(
        explainer.scores(X[:5], labels=Y[:5]), cosines(model, X, Y)[:5], rtol=0, atol=1e-6
    )
    assert next(name for name, _ in explainer.subject.classifier.module.named_parameters()) == "body.0.weight"


@pytest.mark.parametrize("wrap", [compiled, in_place, Parted])
def test_nothing_is_compiled_for_an_explanation(wrap) -> None:
    model = wrap(network().eval())
    model(X[:2])
    before = deepcopy(dict(counters["frames"]))
    pr.Explainer(model, (X, Y)).explain(X[0])
    assert dict(counters["frames"]) == before


@pytest.mark.parametrize("wrap", [compiled, nn.DataParallel])
def test_wrapped_transformers_are_read_as_such(wrap) -> None:
    model, rows = hugging.trained("bert", 0), hugging.data("bert", 12, seed=2)
    wanted = pr.Explainer(model, rows).scores(rows[:2])
    assert torch.equal(pr.Explainer(wrap(model), rows).scores(rows[:2]), wanted)
    texts = hugging.texts(12, seed=2)
    assert torch.equal(pr.Explainer((wrap(model), hugging.tokenizer()), texts).scores(texts[:2]), wanted)


PROGRAMS: dict[str, Callable[[nn.Module], object]] = {
    "scripted": torch.jit.script,
    "traced": lambda model: torch.jit.trace(model.eval(), X[:2]),
    "exported": lambda model: torch.export.export(model.eval(), (X[:2],)),
    "exported module": lambda model: torch.export.export(model.eval(), (X[:2],)).module(),
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_are_refused_with_what_to_pass(kind) -> None:
    program = PROGRAMS[kind](network())
    with pytest.raises(
        pr.InputError, match=r"torch\.(jit|export): its layers cannot be seen. Pass the nn.Module"
    ):
        pr.Explainer(program, (X, Y))
    again = network()
    with torch.no_grad():
        again[0].weight += 1
    state = program.state_dict
    again.load_state_dict(state() if callable(state) else state)  # as the message says
    assert torch.equal(again[0].weight, network()[0].weight)
