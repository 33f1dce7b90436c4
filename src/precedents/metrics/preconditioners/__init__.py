"""M: the matrix under whose inverse vectors are compared. One file per matrix."""

import sys
from typing import TYPE_CHECKING

from precedents.registry import Registry

if TYPE_CHECKING:
    from precedents.metrics.preconditioners._inverse import Preconditioner

PRECONDITIONERS: Registry["Preconditioner"] = Registry("preconditioner", sys.modules[__name__])
