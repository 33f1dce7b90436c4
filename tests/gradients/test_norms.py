from math import prod

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import B, everywhere, normal, stirred, world
from precedents import Classifier
from precedents.gradients.gradients import loss_gradients

sizes = st.integers(1, 4)
freezes = st.sampled_from(["", "weight", "bias"])
eps = st.sampled_from([1e-5, 0.1])


@settings(max_examples=15)
@given(st.integers(0, 3), sizes, eps, freezes, st.data())
def test_batch_norm(n, channels, eps, freeze, data) -> None:
    kind = [nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d][n]
    lengths = data.draw(st.tuples(*[sizes] * n))
    everywhere(kind(channels, eps=eps), normal(B, channels, *lengths), freeze=freeze)


@settings(max_examples=15)
@given(
    st.lists(sizes, max_size=2),
    st.lists(sizes, min_size=1, max_size=2),
    eps,
    st.booleans(),
    st.booleans(),
    freezes,
)
def test_layer_norm(positions, shape, eps, affine, bias, freeze) -> None:
    layer = nn.LayerNorm(shape, eps=eps, elementwise_affine=affine, bias=bias)
    everywhere(layer, normal(B, *positions, *shape), freeze=freeze)


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 3), st.lists(sizes, max_size=3), eps, st.booleans(), freezes)
def test_group_norm(groups, size, lengths, eps, affine, freeze) -> None:
    assume(size * prod(lengths) > 1)  # torch refuses to normalise a single number
    channels = groups * size
    everywhere(nn.GroupNorm(groups, channels, eps, affine), normal(B, channels, *lengths), freeze=freeze)


@settings(max_examples=20)
@given(st.integers(1, 3), sizes, eps, st.booleans(), st.booleans(), freezes, st.data())
def test_instance_norm(n, channels, eps, affine, running, freeze, data) -> None:
    kind = [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d][n - 1]
    lengths = data.draw(st.tuples(*[st.integers(2, 4)] * n))
    layer = kind(channels, eps=eps, affine=affine, track_running_stats=running)
    everywhere(layer, normal(B, channels, *lengths), freeze=freeze)


@settings(max_examples=15)
@given(
    st.lists(sizes, max_size=2),
    st.lists(sizes, min_size=1, max_size=2),
    st.sampled_from([None, 1e-5, 0.1]),
    st.booleans(),
)
def test_rms_norm(positions, shape, eps, affine) -> None:
    everywhere(nn.RMSNorm(shape, eps=eps, elementwise_affine=affine), normal(B, *positions, *shape))


@pytest.mark.parametrize("kind", [nn.BatchNorm2d, nn.InstanceNorm2d])
def test_running_statistics_stay_as_they_are(kind) -> None:
    norm = kind(2, affine=True, track_running_stats=True)
    model = stirred(nn.Sequential(norm, nn.Flatten(), nn.Linear(18, 3)))
    examples, batch = world(normal(B, 2, 3, 3))
    classifier = Classifier.of(model, examples)
    loss_gradients(classifier, batch)
    buffers = zip(classifier.module.buffers(), model.buffers(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in buffers)
