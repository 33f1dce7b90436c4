"""captum: TracInCP with one checkpoint, one backward pass for each example: slow, and for all layers."""

from typing import Any

import numpy as np

from benchmarks.peers.captum import traced


def scores(*work: Any, batch: int) -> np.ndarray:
    """Grad-Dot [m, n]."""
    return traced(*work, batch=batch, together=False)
