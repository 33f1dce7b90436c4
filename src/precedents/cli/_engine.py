"""The engine that a command was told, if any."""

from typing import TYPE_CHECKING

from precedents.errors import InputError

if TYPE_CHECKING:
    from precedents.runtime.engines._engine import Engine


def chosen_engine(engine: str | None, address: str | None, workers: int | None = None) -> "Engine | None":
    """The engine by its name or text, with the settings that stand beside it; none if none is named."""
    from precedents.runtime.engines._find import engine_of

    if engine is None:
        if address is not None:
            raise InputError(f"--address is {address!r}, but no cluster was named. Add --engine ray or dask.")
        return None
    return engine_of(engine, address=address, workers=workers)
