"""precedents metrics: the relevance metrics by name, and the parts that any metric is made of."""

import re

from precedents.cli._names import PARTS
from precedents.cli._options import Json
from precedents.cli._output import listing, show, show_json
from precedents.metrics.names import ALIASES, FORMS
from precedents.registry import Call


def metrics(as_json: Json = False) -> None:
    """Lists the relevance metrics, and the parts that any metric is made of.

    A metric is a name, an abbreviation of the paper, or a text similarity:features/preconditioner, in
    which a part may have settings: cosine:gradient/hessian(damping=0.01).

    Examples:
      $ precedents metrics
      $ precedents metrics --json

    """
    short = {name: alias for alias, name in ALIASES.items()}
    known = [(name, short.get(name, ""), form, meaning(form)) for name, form in FORMS.items()]
    parts = [(kind, name, reg.meaning(name)) for kind, reg in PARTS.items() for name in reg.names()]
    if as_json:
        keys = ("name", "alias", "form", "meaning")
        named = [dict(zip(keys, row, strict=True)) for row in known]
        show_json(
            {"metrics": named, "parts": [dict(zip(("kind", *keys[::3]), row, strict=True)) for row in parts]}
        )
        return
    show(listing(("metric", "alias", "written as"), [row[:3] for row in known]))
    show("")
    show(listing(("part", "name", "meaning"), parts))


def meaning(form: str) -> str:
    """What the parts of a metric such as `cosine:gradient/hessian` are, in the first words of their files."""
    return ", ".join(
        re.split(r"[:.]( |$)", PARTS[kind].meaning(name))[0] for kind, name in parts_of(form).items() if name
    )


def parts_of(form: str) -> dict[str, str]:
    """The names of a metric's parts by their kind, without settings; no name for the preconditioner it lacks.

    >>> parts_of("dot:gradient/hessian(negative=keep)")
    {'features': 'gradient', 'preconditioner': 'hessian', 'similarity': 'dot'}
    """
    similarity, features, preconditioner = (*re.split("[:/]", form), "")[:3]
    named = {"features": features, "preconditioner": preconditioner, "similarity": similarity}
    return {kind: call.name if (call := Call.read(text)) else "" for kind, text in named.items()}
