"""Engines: who runs a pure function for many tasks: this process, others, or a cluster. One file per engine."""

import sys
from typing import TYPE_CHECKING

from precedents.registry import Registry

if TYPE_CHECKING:
    from precedents.runtime.engines._engine import Engine

ENGINES: Registry["Engine"] = Registry("engine", sys.modules[__name__])
