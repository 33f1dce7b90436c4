"""Models, one file each."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from precedents.registry import Registry

if TYPE_CHECKING:
    from torch import nn

Build: TypeAlias = "Callable[[tuple[int, ...], int], nn.Module]"  # a data set's shape, the number of classes

ARCHITECTURES: Registry[Build] = Registry("architecture", sys.modules[__name__])
