"""Errors advise commands where a command is running, also in its workers."""

import pickle

from precedents.runtime.advice import commands, named, typed
from precedents.runtime.engines._travel import carried_out, opened, packed_work


def advice(task: str) -> str:
    return typed(f"Index.build({task})", f"precedents index build {{of}} --index {task}")


def test_what_is_advised_is_what_can_be_typed_here() -> None:
    assert advice("a") == "Index.build(a)"
    with commands():
        assert advice("a") == "precedents index build RUN --index a"
        named("--target my_model:factory")
        assert advice("a") == "precedents index build --target my_model:factory --index a"
    assert advice("a") == "Index.build(a)"
    named("runs/mine")  # no command is running
    assert advice("a") == "Index.build(a)"


def test_workers_advise_what_who_started_them_would() -> None:
    with commands("runs/mine"):
        work = packed_work(advice)
    assert opened(carried_out(work, pickle.dumps("a"), None)) == "precedents index build runs/mine --index a"
    assert opened(carried_out(packed_work(advice), pickle.dumps("a"), None)) == "Index.build(a)"
