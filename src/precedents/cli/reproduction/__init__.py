"""The paper's evaluation, ours beside the published numbers: runs, tables, figures and the comparison."""

import sys
from collections.abc import Callable

from precedents.registry import Registry

reproduction: Registry[Callable[..., None]] = Registry("command of reproduction", sys.modules[__name__])
