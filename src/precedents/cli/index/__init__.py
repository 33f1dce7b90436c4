"""An index of a training set in a folder, from which `explain --index` answers: built, grown, checked."""

import sys
from collections.abc import Callable

from precedents.registry import Registry

index: Registry[Callable[..., None]] = Registry("command of index", sys.modules[__name__])
