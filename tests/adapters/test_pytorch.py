"""PyTorch as people write it: Lightning, compiled and half precision models, wherever they are."""

import warnings
from copy import deepcopy

import oracle
import pytest
import torch
from conftest import trained
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import prune
from torch.utils.data import DataLoader, TensorDataset

from precedents import Classifier, Examples, Explainer, InputError


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))


def correlation(one: Tensor, other: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1])


# Half precision: computed in float32.


class Images(nn.Module):
    """A convolution with a norm, for rows of five."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x[:, None].to(self.head.weight.dtype)))


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", [network, Images])
@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "cos_last"])
def test_half_precision_scores_correlate_with_those_of_float32(metric, make, precision, train, cases) -> None:
    model = trained(make, train).float()
    half = deepcopy(model).to(precision)
    whole, halved = (Explainer(each, train, metric).scores(cases) for each in (model, half))
    assert correlation(whole, halved) > 0.99


def test_half_precision_weights_are_computed_with_in_float32(train) -> None:
    model = network().bfloat16()
    classifier = Classifier.of(model, Examples.of(train))
    assert {p.dtype for p in classifier.module.parameters()} == {torch.float32}
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert all(
        torch.equal(ours, theirs.float())
        for ours, theirs in zip(classifier.module.parameters(), model.parameters(), strict=True)
    )


def test_scores_of_half_precision_are_those_of_its_weights_in_float32(train, cases) -> None:
    half = network().half()
    assert torch.equal(
        Explainer(half, train).scores(cases), Explainer(deepcopy(half).float(), train).scores(cases)
    )


def test_inputs_of_half_precision_are_taken(train, cases) -> None:
    model, halved = network(), (train[0].bfloat16(), train[1])
    found = Explainer(model, halved).scores(cases.bfloat16())
    wanted = Explainer(model, (halved[0].float(), train[1])).scores(cases.bfloat16().float())
    assert torch.equal(found, wanted)


# Compiled.


class Parted(nn.Module):
    """Some of its layers are compiled."""

    def __init__(self, inner: nn.Sequential) -> None:
        super().__init__()
        self.body, self.head = torch.compile(inner[:2], backend="eager"), inner[2]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def compiled_in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # torch.compile's own, at its first use
@pytest.mark.parametrize(
    "compiled",
    [lambda m: torch.compile(m, backend="eager"), compiled_in_place, Parted],
    ids=["whole", "in place", "parts"],
)
def test_a_compiled_model_explains_as_the_one_it_came_from(compiled, train, cases) -> None:
    model = trained(network, train)
    wanted = Explainer(model, train).scores(cases)
    other = compiled(deepcopy(model))
    other(train[0][:2])
    explainer = Explainer(other, train)
    assert torch.equal(explainer.scores(cases), wanted)
    assert not any(
        hasattr(part, "_orig_mod") for part in explainer.relevance.workspace.classifier.module.modules()
    )


# Lightning.


@pytest.fixture(scope="module")
def lightning():
    """A LightningModule after its Trainer has run, which it keeps."""

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Lightning, about workers and loggers
        import pytorch_lightning as pl

        class Lit(pl.LightningModule):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.save_hyperparameters()
                self.net = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 3)).double()

            def forward(self, x: Tensor) -> Tensor:
                return self.net(x)

            def training_step(self, batch, index: int) -> Tensor:
                loss = cross_entropy(self(batch[0]), batch[1])
                self.log("loss", loss)
                return loss

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        def fitted(train) -> nn.Module:
            with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.manual_seed(0)
                model = Lit(width=4)
                trainer = pl.Trainer(
                    max_epochs=1,
                    accelerator="cpu",
                    logger=False,
                    enable_checkpointing=False,
                    enable_progress_bar=False,
                    enable_model_summary=False,
                )
                trainer.fit(model, DataLoader(TensorDataset(*train), batch_size=9, shuffle=True))
            return model

        yield fitted


def test_a_lightning_module_explains_as_the_network_inside(lightning, train, cases) -> None:
    model = lightning(train)
    trainer = model.trainer
    found = Explainer(model, DataLoader(TensorDataset(*train), batch_size=9)).scores(cases)
    wanted = Explainer(model.net, train).scores(cases)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    assert model.trainer is trainer


# Layers that torch's tools have changed, and instances that go their own ways.


class Routed(nn.Module):
    """Each instance goes through the one of three experts that a gate chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(5, 3), nn.ModuleList([network() for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.gate(x).softmax(dim=1).max(dim=1)
        out = x.new_zeros(len(x), 3)
        for i, expert in enumerate(self.experts):
            own = chosen == i
            if bool(own.any()):
                out[own] = weight[own, None] * expert(x[own])
        return out


def pruned() -> nn.Module:
    model = network()
    prune.l1_unstructured(model[0], "weight", 0.5)
    return model


def weighed() -> nn.Module:
    model = network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        nn.utils.weight_norm(model[2])
    return model


class Keeping(nn.Module):
    """It keeps what it computed: in an attribute, in a list of dicts and, by a hook, in a dict of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.kept = network(), {}
        self.body[1].register_forward_hook(self.keep)

    def keep(self, layer: nn.Module, _: object, output: Tensor) -> None:
        self.kept[type(layer).__name__] = output

    def forward(self, x: Tensor) -> Tensor:
        self.logits = self.body(x)
        self.steps = [self.logits, {"twice": (self.logits * 2, self.logits)}]
        return self.logits


@pytest.mark.filterwarnings(
    "ignore::precedents.gradients.search.SlowGradientsWarning", "ignore:There is a performance drop"
)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [Routed, pruned, weighed, Keeping])
def test_scores_are_those_of_plain_autograd(make, seed, train, cases) -> None:
    torch.manual_seed(seed)
    model = make().double()
    train, cases = (train[0].double(), train[1]), cases.double()
    model(cases)  # what it keeps of this has a graph
    wanted = torch.tensor(oracle.relevance("cos_grad", model, train, cases))
    torch.testing.assert_close(Explainer(model, train).scores(cases), wanted, rtol=1e-9, atol=1e-9)


class Tabled(nn.Module):
    """A bias that is turned once, and kept in a dict, where training does not clear it."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.bias = nn.Linear(5, 6), nn.Linear(6, 3), nn.Parameter(torch.randn(6))
        self.unset()

    def unset(self) -> None:
        self.table = {}

    def turned(self) -> Tensor:
        if "turned" not in self.table:
            self.table["turned"] = self.bias.flip(0)
        return self.table["turned"]

    def forward(self, x: Tensor) -> Tensor:
        return self.head((self.body(x) + self.turned()).tanh())


class Attributed(Tabled):
    """The same in an attribute, beside one that says for what it is there."""

    def unset(self) -> None:
        self.table, self.known = None, False

    def turned(self) -> Tensor:
        if not self.known or self.table is None:
            self.table, self.known = self.bias.flip(0), True
        return self.table


class Appearing(Tabled):
    """The same in an attribute that is not there before."""

    def unset(self) -> None:
        vars(self).pop("table", None)

    def turned(self) -> Tensor:
        if not hasattr(self, "table"):
            self.table = self.bias.flip(0)
        return self.table


class Within(nn.Module):
    """One of these, called twice, within another module."""

    def __init__(self, part: Tabled) -> None:
        super().__init__()
        self.part, self.last = part, nn.Linear(3, 3)

    def unset(self) -> None:
        self.part.unset()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.part(x) * self.part(x.flip(1)))


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize("before", ["nothing", "a pass", "a pass without gradients"])
@pytest.mark.parametrize("kind", [Tabled, Attributed, Appearing])
@pytest.mark.parametrize("place", [lambda part: part, Within], ids=["alone", "within"])
def test_a_function_of_parameters_that_is_kept_has_their_gradients(place, kind, before, train, cases) -> None:
    torch.manual_seed(0)
    model = place(kind()).double().eval()
    train, cases = (train[0].double(), train[1]), cases.double()

    def gradients(x: Tensor, labels: Tensor) -> Tensor:
        rows = []
        for one, label in zip(x, labels, strict=True):
            model.unset()
            loss = cross_entropy(model(one[None]), label[None])
            rows.append(torch.cat([each.flatten() for each in torch.autograd.grad(loss, model.parameters())]))
        return torch.stack(rows)

    labels = model(cases).argmax(dim=1)
    wanted = gradients(cases, labels) @ gradients(*train).T
    model.unset()
    if before != "nothing":
        with torch.set_grad_enabled(before == "a pass"):
            model(cases)
    explainer = Explainer(model, train, "dot_grad")
    for _ in range(2):
        torch.testing.assert_close(explainer.scores(cases), wanted, rtol=1e-9, atol=1e-9)
    classifier = explainer.relevance.workspace.classifier
    drawn = classifier.randomized(0)
    model.load_state_dict(drawn.module.state_dict())
    model.unset()
    torch.testing.assert_close(drawn.logits(cases), model(cases))


def test_what_a_model_keeps_of_its_own_making_stays(train, cases) -> None:
    """Only what a pass makes again, the very same, is taken away."""

    class Given(Tabled):
        def unset(self) -> None:
            self.table = {"turned": torch.full((6,), 2.0)}  # which a pass would make otherwise

    model, cases = Given().eval(), cases.float()
    found = Classifier.of(model, Examples.of(train))
    torch.testing.assert_close(found.logits(cases), model(cases))
    assert "turned" in found.module.table


@pytest.mark.parametrize("training", [True, False])
def test_a_function_of_parameters_that_eval_makes_is_refused_by_its_name(training, train) -> None:
    class Evaluating(Appearing):
        def train(self, mode: bool = True) -> nn.Module:
            self.unset()
            if not mode:
                self.turned()
            return super().train(mode)

    with torch.no_grad(), pytest.raises(InputError, match=r"attribute 1\.table of .* Compute it in forward"):
        Explainer(nn.Sequential(nn.Linear(5, 5), Evaluating()).train(training), train)


# What is no classifier of any kind.


@pytest.mark.parametrize(
    "model", [lambda x: x, "model.pt", {"weight": torch.zeros(3)}, 7], ids=lambda m: type(m).__name__
)
def test_what_is_no_model_is_refused_with_the_kinds_there_are(model, train) -> None:
    with pytest.raises(InputError, match=r"The model is an? .*. Pass a torch.nn.Module.*forward"):
        Explainer(model, train)


def test_models_of_other_libraries_are_named_with_these_and_classes_as_classes(train) -> None:
    other = type("Sequential", (), {"__module__": "keras.src.models.sequential"})
    with pytest.raises(InputError, match=r"The model is a Sequential of keras\. Pass a torch\.nn\.Module"):
        Explainer(other(), train)
    with pytest.raises(InputError, match=r"The model is the class Linear\. Pass a torch\.nn\.Module"):
        Explainer(nn.Linear, train)
