"""Whether plain values are what `schema.json` describes: as much of JSON Schema as that file uses."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
SECONDS = {"type": "number", "minimum": 0}
BEHAVIOUR = {"type": ["string", "array"], "items": {"type": "array", "items": {"type": "number"}}}
FILES = {"type": "object"}  # of what retrain read: bytes and times


def checked(value: Any) -> None:
    """Refuses, by a ValueError with the place, what is no audit."""
    _refuse(value, _schema(), "the audit")


def checked_piece(name: Sequence[str], value: Any) -> None:
    """Refuses, by a ValueError or TypeError, what is no value of this piece of an audit's work."""
    kind, *of = name
    every, named = _schema()["properties"], _schema()["$defs"]
    known = {"norms": named["lengths"], "agreement": every["agreement"], "behaviour": BEHAVIOUR, "files": FILES}
    if kind == "outcome":
        metric, criterion = of
        _refuse({**value, "metric": metric, "criterion": criterion}, every["outcomes"]["items"], kind)
    elif kind == "portrait":
        (metric,), rest = of, {**value}
        _refuse(rest.pop("seconds", None if "reason" not in rest else 0), SECONDS, "the seconds")
        _refuse({**rest, "metric": metric}, every["portraits"]["items"], kind)
    elif isinstance(value, dict) and "reason" in value:
        _refuse({**value, "metric": kind}, named["unseen"], kind)
    else:
        _refuse(value, known.get(kind, {}), kind)


def _refuse(value: Any, schema: Any, place: str) -> None:
    wrong = _wrong(value, schema, place)
    if wrong is not None:
        raise ValueError(wrong)


@cache
def _schema() -> Any:
    return json.loads(files("precedents.audit").joinpath("schema.json").read_text(encoding="utf-8"))


def _wrong(value: Any, schema: Any, place: str) -> str | None:
    """What is wrong with a value, and where; none if nothing is."""
    if "$ref" in schema:
        return _wrong(value, _schema()["$defs"][schema["$ref"].rpartition("/")[2]], place)
    if "oneOf" in schema:
        every = [_wrong(value, each, place) for each in schema["oneOf"]]
        return every[-1] if all(every) else None
    if not _fits(value, schema):
        return f"{place} is not as it should be"
    parts = _parts(value, schema, place)
    return next((said for part in parts if (said := _wrong(*part)) is not None), None)


def _fits(value: Any, schema: Any) -> bool:
    """Whether a value itself is right, whatever is in it."""
    kinds = schema.get("type", list(TYPES))
    known = [kind for name in ([kinds] if isinstance(kinds, str) else kinds) for kind in TYPES[name]]
    if not isinstance(value, tuple(known)) or (isinstance(value, bool) and bool not in known):
        return False
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get(
        "maximum", value
    ):
        return False
    if isinstance(value, (list, str)):
        least, most = schema.get("minItems", schema.get("minLength", 0)), schema.get("maxItems", len(value))
        if not least <= len(value) <= most:
            return False
    if isinstance(value, dict):
        closed = schema.get("additionalProperties") is False
        if not set(schema.get("required", ())) <= set(value) or (
            closed and set(value) - set(schema["properties"])
        ):
            return False
    return value in schema.get("enum", [value]) and value == schema.get("const", value)


def _parts(value: Any, schema: Any, place: str) -> list[tuple[Any, Any, str]]:
    """What is in a value, with the schema of each and its place."""
    if isinstance(value, dict):
        own, others = schema.get("properties", {}), schema.get("additionalProperties")
        rest = others if isinstance(others, dict) else {}
        return [(each, own.get(name, rest), f"{name!r} in {place}") for name, each in value.items()]
    if isinstance(value, list):
        first, rest = schema.get("prefixItems", []), schema.get("items") or {}
        kinds = [*first, *[rest] * (len(value) - len(first))]
        return [
            (each, kind, f"entry {i} of {place}")
            for i, (each, kind) in enumerate(zip(value, kinds, strict=False))
        ]
    return []
