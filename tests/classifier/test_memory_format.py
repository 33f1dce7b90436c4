import torch
from torch import Tensor, nn

from precedents import Classifier, Examples, Explainer
from precedents.classifier.memory_format import layout
from precedents.gradients.gradients import planned


def images(count: int = 6) -> Examples:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, 2, 6, 6, generator=generator)
    return Examples.of((inputs, torch.arange(count) % 3))


def convolutions() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.Flatten(), nn.Linear(20, 3))


class Viewing(nn.Module):
    """Counts on the usual layout of what a convolution returns."""

    def __init__(self) -> None:
        super().__init__()
        self.body = convolutions()[:3]
        self.head = nn.Linear(20, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).view(len(x), -1))


class Striding(Viewing):
    """Reads memory by its own strides: it runs in any layout, and is right in the usual one alone."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).as_strided((len(x), 20), (20, 1)))


def test_channels_are_last_where_the_model_runs_in_that() -> None:
    assert layout(Classifier.of(convolutions(), images()).module) == torch.channels_last


def test_a_model_that_counts_on_the_usual_layout_keeps_it() -> None:
    for module in (Viewing(), Striding()):
        model = Classifier.of(module, images())
        assert layout(model.module) == torch.contiguous_format
        assert torch.equal(model.logits(images().take([0, 1]).inputs), module(images().take([0, 1]).inputs))


def test_the_users_own_weights_stay_as_they_are_stored() -> None:
    module = convolutions()
    Explainer(module, images()).scores(images().take([0]).inputs)
    assert all(parameter.is_contiguous() for parameter in module.parameters())


def test_the_layout_changes_no_score() -> None:
    cases = images().take(range(6)).inputs
    usual = Explainer(Usual(), images()).scores(cases)
    assert torch.allclose(Explainer(Usual().body, images()).scores(cases), usual, atol=1e-5)


class Usual(nn.Module):
    """The same function as its body, which never runs in another layout."""

    def __init__(self) -> None:
        super().__init__()
        self.body = convolutions()

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.body:
            x = layer(x)
            x.view(-1)
        return x


def test_a_fresh_draw_is_the_same_in_every_layout() -> None:
    model = Classifier.of(convolutions(), images())
    plain = Classifier.of(Usual(), images())
    for ours, theirs in zip(
        model.randomized(3).module.parameters(), plain.randomized(3).module.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    assert layout(model.randomized(3).module) == torch.channels_last
    assert layout(plain.randomized(3).module) == torch.contiguous_format


def test_a_fingerprint_does_not_depend_on_the_layout_or_the_work_done() -> None:
    model = Classifier.of(convolutions(), images())
    before = model.fingerprint()
    planned(model)
    assert model.fingerprint() == before
