"""A convolution's gradients are the same by groups, by patches, and not formed at all."""

import sys
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import precedents as pr
from gradients.single import CLASSES, Alone, factored, normal, one_at_a_time, ruled, stirred, world
from gradients.test_conv import KINDS, convolutions
from gradients.test_conv_transpose import convolutions as transposed
from precedents.gradients import patches
from precedents.gradients.gradients import PLAN, loss_gradients, planned, row_size
from precedents.gradients.patches import Patched, Window
from precedents.gradients.rows import Rows, joined
from precedents.gradients.search import searched

RULES = [import_module(f"precedents.gradients.layers.{name}") for name in ("conv", "conv_transpose")]
GROUPS, PATCHES = sys.maxsize, 0  # numbers of a kernel from which on patches are taken
PIXELS, LAID_OUT = -sys.maxsize, sys.maxsize  # what it costs to sum along the kernel


def chosen(module: nn.Module, x: Tensor, many: int, unformed: bool = False) -> Rows:
    """The gradients by groups or by patches; formed, or not."""
    examples, batch = world(x)
    model = pr.Classifier.of(module, examples)
    with ExitStack() as forced:
        for rule in RULES:
            forced.enter_context(patch.object(rule, "MANY", many))
        forced.enter_context(patch.object(RULES[0], "FEW", 0))
        plan = searched(model)
        assert plan.recording is not None
        kernels = [p for p in model.parameters.values() if p.ndim > 2]
        kept = {id(kernel): Patched for kernel in kernels} if unformed else {}
        model.cache.once(PLAN, lambda: replace(plan, factored=kept))
        return loss_gradients(model, batch)


def every_choice(module: nn.Module, x: Tensor, within: float) -> None:
    """By groups, by patches, and not formed, by patches and by pixels: all as by plain autograd."""
    single = one_at_a_time(module.double(), x.double(), world(x)[1].labels)
    wanted = single @ single.T
    module.to(x.dtype)
    for many, unformed, summing in (
        (GROUPS, False, 0),
        (PATCHES, False, 0),
        (PATCHES, True, LAID_OUT),
        (PATCHES, True, PIXELS),
    ):
        rows = chosen(module, x, many, unformed)
        with patch.object(patches, "SUMMING", summing):
            scores, squares = rows.products(rows), rows.squares()
        torch.testing.assert_close(scores, wanted, rtol=0, atol=within * float(wanted.abs().max()))
        torch.testing.assert_close(squares, wanted.diagonal(), rtol=0, atol=within * float(wanted.abs().max()))


def is_plain(layer: nn.Module) -> bool:
    """Whether it takes patches if they are allowed."""
    return layer.groups == 1 and set(layer.kernel_size) != {1}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@settings(max_examples=12)
@given(convolutions().filter(lambda drawn: is_plain(drawn[0])))
def test_every_choice_for_a_convolution(drawn) -> None:
    layer, shape = drawn
    x = normal(3, *shape)
    every_choice(Alone(stirred(layer), x), x, 1e-9)


@settings(max_examples=12)
@given(transposed().filter(lambda drawn: is_plain(drawn[0])))
def test_every_choice_for_a_transposed_convolution(drawn) -> None:
    layer, shape = drawn
    x = normal(3, *shape)
    every_choice(Alone(stirred(layer), x), x, 1e-9)


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_every_choice_in_float32_to_a_millionth(kind) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 24, 4, 4)
    every_choice(Alone(kind(24, 32, 3, padding=1).double(), x.double()).float(), x, 1e-6)


def test_a_convolution_and_its_normalization_by_every_choice() -> None:
    x = normal(3, 5, 6, 6)
    model = nn.Sequential(nn.Conv2d(5, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, CLASSES))
    wanted = one_at_a_time(stirred(model), x, world(x)[1].labels)
    for many in (GROUPS, PATCHES):
        torch.testing.assert_close(chosen(model, x, many).dense(), wanted, rtol=0, atol=1e-9)


def drawn_part(b: int, calls: int, h: int, w: int, layer: nn.Conv2d) -> Patched:
    """One of several calls, on images of this size."""
    (u, v), (s, r) = layer.padding, layer.stride
    window = Window(layer.kernel_size, (s, r), layer.dilation, (u, v), (u, v))
    made = []
    for _ in range(calls):
        x = normal(b, layer.in_channels, h, w)
        made.append(Patched.of(layer.weight, torch.randn_like(layer(x)), x, window))
    return Patched.summed(made, layer.weight, b)


def after(one: Patched, other: Patched) -> Patched:
    """The instances of one, then those of the other, as rows are joined."""
    width, n = one.parameter.numel(), len(one) + len(other)
    blocks = [
        Rows(torch.zeros(len(part), 0), torch.ones(len(part)), ((slice(0, width), part),))
        for part in (one, other)
    ]
    both = joined([(range(len(one)), blocks[0]), (range(len(one), n), blocks[1])], n)
    return both.factors[0][1]


@settings(max_examples=25)
@given(st.integers(0, 2), st.integers(0, 3), st.integers(3, 6), st.integers(4, 5), st.sampled_from([1, 2]))
def test_instances_of_other_sizes_and_calls(calls, b, h, w, stride) -> None:
    layer = nn.Conv2d(2, 3, (3, 2), stride, padding=(1, 0)).double()
    one, other = drawn_part(2, 1, 4, 5, layer), drawn_part(b, calls, h, w, layer)
    formed = torch.cat([one.formed(), other.formed()]).flatten(1)
    for summing in (PIXELS, LAID_OUT):
        with patch.object(patches, "SUMMING", summing):
            torch.testing.assert_close(one.products(other), formed[:2] @ formed[2:].T)
            with patch.multiple(patches, PATCH_NUMBERS=1, MORE_NUMBERS=1, PIXEL_PAIRS=1):
                torch.testing.assert_close(one.products(other), formed[:2] @ formed[2:].T)
                torch.testing.assert_close(other.formed().flatten(1), formed[2:])
    for both, of in ((after(one, other), formed), (after(other, one), formed.roll(b, 0))):
        torch.testing.assert_close(both.formed().flatten(1), of)
        torch.testing.assert_close(both.squares(), of.square().sum(dim=1))
    assert one.stored == one.back[0].numel() + one.received[0].numel()


def wide() -> nn.Sequential:
    """Kernels of many numbers on few positions: one by pixels, one with a stride by patches."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Conv2d(64, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 72, 3, 2, 1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(72, CLASSES),
    ).eval()


def images(count: int) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_wide_kernels_on_few_positions_are_not_formed() -> None:
    plan = ruled(wide().double(), images(4).double())
    assert {"3.weight", "6.weight"} <= factored(plan)
    assert "0.weight" not in factored(plan)


def test_what_is_stored_is_counted() -> None:
    examples, batch = world(images(4))
    model = pr.Classifier.of(wide(), examples)
    rows = loss_gradients(model, batch)
    assert row_size(model)[0] == rows.width == model.size
    assert row_size(model)[2] == rows.stored < model.size / 8


METRICS = (
    "cos_grad",
    "l2_grad",
    "dot_fisher",
    "cosine:gradient/fisher(kind=true)",
    "cosine:gradient/hessian(kind=gauss_newton)",
    "cosine:gradient/ekfac",
)


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_compare_what_is_not_formed(metric, tmp_path) -> None:
    train, cases = (images(9), torch.arange(9) % CLASSES), images(12)[9:]
    model = wide().double()
    explainer = pr.Explainer(model, (train[0].double(), train[1]), metric)
    scores = explainer.scores(cases.double())
    assert {"3.weight", "6.weight"} <= factored(planned(explainer.subject.classifier))
    with patch.object(Patched, "is_cheaper", False):
        formed = pr.Explainer(model, (train[0].double(), train[1]), metric).scores(cases.double())
    torch.testing.assert_close(scores, formed, rtol=0, atol=1e-8 * float(formed.abs().max()))
    explainer.save(tmp_path / "kept")
    loaded = pr.Explainer.load(tmp_path / "kept", model, (train[0].double(), train[1]))
    np.testing.assert_array_equal(loaded.scores(cases.double()), scores)


def test_memory_and_passes_change_no_score_beyond_rounding() -> None:
    train, cases = (images(40), torch.arange(40) % CLASSES), images(45)[40:]
    scores = [
        pr.Explainer(wide(), train, "cos_grad", memory=memory).scores(cases) for memory in ("6 MB", "1 GB")
    ]
    torch.testing.assert_close(*scores, rtol=0, atol=1e-6)
    again = pr.Explainer(wide(), train, "cos_grad", memory="1 GB").scores(cases)
    assert torch.equal(scores[1], again)


@pytest.mark.parametrize("n", KINDS)
def test_a_wide_convolution_in_any_dimension_is_not_formed(n) -> None:
    x = normal(3, 48, *[2] * n)
    assert "layer.weight" in factored(ruled(Alone(KINDS[n](48, 256, 3, padding=1).double(), x), x))
