"""phi: what an instance is to a metric, as a vector. One file per feature map."""

import sys
from typing import TYPE_CHECKING

from precedents.registry import Registry

if TYPE_CHECKING:
    from precedents.metrics.vectors import Features

FEATURES: Registry["Features"] = Registry("feature map", sys.modules[__name__])
