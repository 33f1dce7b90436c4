"""Explanations as frames and files: with what a person sees of instances, and safe to open in a spreadsheet."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from precedents.runtime.atomic import write
from precedents.runtime.given import path
from precedents.seen import uncomputed
from precedents.views.fragments import document
from precedents.views.instance import Shown

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from precedents.explain.explanation import Explanation, Precedent


def framed(explanation: "Explanation", inputs: bool) -> "pd.DataFrame":
    """One row per case and precedent; with `inputs`, also what is seen of both, and the parts of Grad-Cos."""
    import pandas as pd

    known = [name for name in ("case_id", "truth", "id") if _has(explanation, name)]
    first = ["case", *(["case_id"] if "case_id" in known else []), "prediction"]
    first += ["truth"] * ("truth" in known) + ["rank", "index"] + ["id"] * ("id" in known)
    columns = [*first, "label", "score", "percentile", "cautions"]
    columns += ["agrees", "residual_cosine", "feature_cosine"] * inputs
    rows = [
        _row(explanation, case, precedent, inputs)
        for case in range(len(explanation))
        for precedent in explanation.precedents(case)
    ]
    named = list(dict.fromkeys(name for row in rows for name in row if name not in _OWN))
    return pd.DataFrame(rows, columns=[*columns, *named])


_OWN = {
    *("case", "case_id", "prediction", "truth", "rank", "index", "id", "label", "score", "percentile"),
    *("cautions", "agrees", "residual_cosine", "feature_cosine"),
}


def _has(explanation: "Explanation", name: str) -> bool:
    fields = {"case_id": explanation.case_ids, "truth": explanation.truth, "id": explanation.ids}
    return fields[name] is not None


def _row(explanation: "Explanation", case: int, precedent: "Precedent", inputs: bool) -> dict[str, Any]:
    truth = explanation.truth
    row = {
        "case": explanation.number(case),
        **explanation.own_id("case_id", case),
        "prediction": explanation.plain(int(explanation.predictions[case])),
        **({} if truth is None else {"truth": explanation.plain(int(truth[case]))}),
        **asdict(precedent),
        "label": explanation.plain(precedent.label),
        "cautions": ", ".join(precedent.cautions),
    }
    if inputs:
        seen = explanation.seen(case), explanation.seen(case, precedent.rank)
        row |= _told("case", seen[0]) | _told("precedent", seen[1])
    return row


def _told(whose: str, shown: Shown) -> dict[str, Any]:
    """What a person reads of an instance, by the names of columns; of a picture nothing."""
    if isinstance(shown, str):
        return {f"{whose}: text": shown}
    if isinstance(shown, Mapping):
        return {f"{whose}: {name}": value for name, value in shown.items()}
    return {}


def as_csv(frame: "pd.DataFrame", file: "str | Path | None" = None) -> str:
    """The frame as comma-separated values, which are also written to the file, if one is given.

    >>> import pandas as pd
    >>> as_csv(pd.DataFrame({"a": ["=1+1", "plain"]})).split()
    ['a', "'=1+1", 'plain']
    """
    found = frame.map(_cell)
    found.columns = [uncomputed(str(name)) for name in frame.columns]
    return into(found.to_csv(index=False, lineterminator="\n"), file)


def _cell(value: Any) -> Any:
    """As a spreadsheet may have it: not computed, and new lines of one kind, as others end a row unquoted."""
    return uncomputed(value).replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value


def as_page(fragment: str, title: str, file: "str | Path | None" = None) -> str:
    """The HTML fragment as a page by itself, which is also written to the file, if one is given."""
    return into(document(fragment, title), file)


def into(text: str, file: "str | Path | None") -> str:
    """The text, which is also written to the file, if one is given."""
    if file is not None:
        write(path(file, "file"), text)
    return text
