"""s: how the relevance comes from a block of inner products. One file per similarity."""

import sys
from typing import TYPE_CHECKING

from precedents.registry import Registry

if TYPE_CHECKING:
    from precedents.metrics.metric import Similarity

SIMILARITIES: Registry["Similarity"] = Registry("similarity", sys.modules[__name__])
