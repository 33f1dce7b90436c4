import torch
from torch import nn

from precedents.classifier.clone import sharing_clone


def test_a_clone_has_modules_of_its_own_and_the_tensors_of_the_original() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    module[2].weight = nn.Parameter(torch.zeros(2, 4))
    clone = sharing_clone(module)
    assert all(mine is not theirs for mine, theirs in zip(clone.modules(), module.modules(), strict=True))
    assert all(mine is theirs for mine, theirs in zip(clone.parameters(), module.parameters(), strict=True))
    assert all(mine is theirs for mine, theirs in zip(clone.buffers(), module.buffers(), strict=True))


def test_a_hook_on_a_clone_is_not_on_the_original() -> None:
    module = nn.Linear(2, 2)
    sharing_clone(module).register_forward_hook(lambda *_: None)
    assert not module._forward_hooks
