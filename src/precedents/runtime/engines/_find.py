"""Which engine a text names."""

from importlib.util import find_spec

from precedents.errors import InputError, MissingExtraError
from precedents.registry import Call
from precedents.runtime.engines import ENGINES
from precedents.runtime.engines._engine import Engine
from precedents.runtime.wording import a_type


def engine_of(given: str | Engine, **settings: object) -> Engine:
    """The engine that a text names, with settings within or beside it; those that are None are left out.

    >>> engine_of("processes(workers=2)") == engine_of("processes", workers=2, address=None)
    True
    """
    if isinstance(given, Engine):
        return given
    if not isinstance(given, str):
        raise InputError(f"engine is {a_type(given)}. Name one: {', '.join(ENGINES.names())}.")
    call = Call.read(given)
    beside = {key: value for key, value in settings.items() if value is not None}
    if call is not None and beside:
        given = str(Call(call.name, {**call.settings, **beside}))
    found = ENGINES.read(given)
    workers = getattr(found, "workers", 0)
    if workers < 0:
        raise InputError(f"workers is {workers}. Pass how many, from 1 on, or 0 for one on each core.")
    if found.package is not None and find_spec(found.package) is None:
        raise MissingExtraError(found.package, type(found).__module__.rpartition(".")[2])
    return found
