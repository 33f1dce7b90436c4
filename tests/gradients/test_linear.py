from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, everywhere, factored, normal, ruled

sizes = st.integers(1, 6)


@settings(max_examples=20)
@given(st.lists(sizes, max_size=2), sizes, sizes, st.booleans(), st.sampled_from(["", "weight", "bias"]))
def test_linear(positions, width, out, bias, freeze) -> None:
    everywhere(nn.Linear(width, out, bias=bias), normal(B, *positions, width), freeze=freeze)


def test_a_linear_model() -> None:
    ruled(nn.Linear(5, 3).double(), normal(B, 5))


def test_a_wide_linear_layer_is_kept_as_factors() -> None:
    model, x = Alone(nn.Linear(40, 50).double(), normal(B, 40)), normal(B, 40)
    assert factored(ruled(model, x)) == {"layer.weight", "head.weight"}


def test_more_instances_than_one_pass_takes() -> None:
    layer = nn.Linear(8, 40).double()
    plan = ruled(Alone(layer, normal(1, 900, 8)), normal(150, 900, 8))
    assert plan.size < 150
