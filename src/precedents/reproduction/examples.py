"""Examples and most often chosen instances of the records, as the pages show them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precedents.reproduction.results import SettingResults
from precedents.reproduction.tables import titled
from precedents.views.comparison import Column
from precedents.views.gallery import Picture, Tile, TiledExample
from precedents.views.instance import scores
from precedents.views.pages import Page, Section
from precedents.views.table import Entry, Table, decimal

CASE, PRECEDENT = 100, 6  # columns of a table row that are shown at once
BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def gallery(found: Sequence[SettingResults]) -> Page | None:
    """Right and wrong predictions with the precedents by every metric, if there are any recorded."""
    sections = [section for each in found for section in _sections(each)]
    if not sections:
        return None
    lead = [
        "Cases with the most relevant training instances by every metric, the most relevant first.",
        "✗ and a dashed frame mark another class than the predicted one.",
    ]
    return Page("Examples", lead, sections)


def hubs(found: Sequence[SettingResults]) -> list[Table]:
    """By setting, the training instances that a metric chose most often, with their cosine and norm."""
    return [grid for each in found if (grid := _hubs(each)).rows]


def _sections(found: SettingResults) -> Iterator[Section]:
    cases = [case for first in found.of("gallery")[:1] for case in first["cases"]]
    for right, title in ((True, "right predictions"), (False, "wrong predictions")):
        chosen = [case for case in cases if (case["predicted"] == case["truth"]) is right]
        if chosen:
            yield Section(f"{found.setting}: {title}", examples=[_example(case) for case in chosen])


def _example(case: Mapping[str, Any]) -> TiledExample:
    predicted, truth = str(case["predicted"]), str(case["truth"])
    title = f"case {case['case']}\npredicted {predicted}" + (
        "" if predicted == truth else f", in truth {truth}"
    )
    strips = {
        titled(metric): [
            _tile(
                each["shown"],
                f"#{each['index']} {each['label']}\n{score}",
                each["label"] == case["predicted"],
            )
            for each, score in zip(offered, scores([each["score"] for each in offered]), strict=True)
        ]
        for metric, offered in case["by"].items()
    }
    return TiledExample(_tile(case["shown"], title), predicted == truth, strips)


def _tile(shown: Mapping[str, Any], title: str, agrees: bool | None = None) -> Tile:
    """A recorded instance: an image in base64, values by name, or a text."""
    png, table = str(shown.get("png", "")), shown.get("table")
    if BASE64.fullmatch(png):
        return Tile(title, agrees, Picture(f"data:image/png;base64,{png}"))
    if table:
        columns = tuple(Column(str(name), _value(value)) for name, value in table.items())
        most = CASE if agrees is None else PRECEDENT
        return Tile(title, agrees, values=columns[:most], more=columns[most:])
    return Tile(title, agrees, text=((str(shown.get("text", "")), ""),))


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _hubs(found: SettingResults) -> Table:
    rows: list[list[Entry | str]] = [
        [
            titled(metric) if place == 0 else "",
            f"#{index} {label}",
            str(times),
            decimal(cosine),
            f"{norm:.3g}",
            f"{percentile:.0f}%",
        ]
        for metric, [first, *_] in found.under("hubs").items()
        for place, (index, times, label, cosine, norm, percentile) in enumerate(first)
    ]
    headings = ["metric", "instance", "chosen first", "mean cosine\nto those cases", "norm", "norm\npercentile"]
    return Table(f"{found.setting}: most often chosen, first repeat", headings, rows, texts=2)
