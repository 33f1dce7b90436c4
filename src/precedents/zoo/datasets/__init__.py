"""Data sets, one file each."""

import sys
from typing import TYPE_CHECKING

from precedents.registry import Registry

if TYPE_CHECKING:
    from precedents.zoo.dataset import Load

DATASETS: Registry["Load"] = Registry("data set", sys.modules[__name__])
