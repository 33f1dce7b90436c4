"""What a metric must satisfy to be believed. One file per criterion."""

import sys
from typing import TYPE_CHECKING

from precedents.registry import Registry

if TYPE_CHECKING:
    from precedents.criteria._criterion import Criterion

CRITERIA: Registry["Criterion"] = Registry("criterion", sys.modules[__name__])
