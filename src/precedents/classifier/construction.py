"""temporary"""

from typing import Any, TypedDict


class Told(TypedDict, total=False):
    """What is told."""

    hidden: Any
    vectorise: Any
    memory: Any
    loss: Any
    output: Any
