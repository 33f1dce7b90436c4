"""Examples and most often chosen instances of the records, as the pages show them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precedents.reproduction.results import SettingResults
from precedents.reproduction.tables import titled
from precedents.views.grid import Entry, Grid, number
from precedents.views.pages import Example, Page, Section, Seen
from precedents.views.shown import scores

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


def hubs(found: Sequence[SettingResults]) -> list[Grid]:
    """By setting, the training instances that a metric chose most often, with their cosine and norm."""
    return [grid for each in found if (grid := _hubs(each)).rows]


def _sections(found: SettingResults) -> Iterator[Section]:
    cases = [case for first in found.of("gallery")[:1] for case in first["cases"]]
    for right, title in ((True, "right predictions"), (False, "wrong predictions")):
        chosen = [case for case in cases if (case["predicted"] == case["truth"]) is right]
        if chosen:
            yield Section(f"{found.setting}: {title}", examples=[_example(case) for case in chosen])


def _example(case: Mapping[str, Any]) -> Example:
    predicted, truth = str(case["predicted"]), str(case["truth"])
    title = f"case {case['case']}\npredicted {predicted}" + (
        "" if predicted == truth else f", in truth {truth}"
    )
    strips = {
        titled(metric): [
            _seen(
                each["shown"],
                f"#{each['index']} {each['label']}\n{score}",
                each["label"] == case["predicted"],
            )
            for each, score in zip(offered, scores([each["score"] for each in offered]), strict=True)
        ]
        for metric, offered in case["by"].items()
    }
    return Example(_seen(case["shown"], title, None), strips)


def _seen(shown: Mapping[str, Any], title: str, agrees: bool | None) -> Seen:
    png, table = str(shown.get("png", "")), shown.get("table")
    return Seen(
        title,
        png=png if BASE64.fullmatch(png) else "",
        text=str(shown.get("text", "")),
        table={str(name): _value(value) for name, value in table.items()} if table else None,
        agrees=agrees,
    )


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _hubs(found: SettingResults) -> Grid:
    rows: list[list[Entry | str]] = [
        [
            titled(metric) if place == 0 else "",
            f"#{index} {label}",
            str(times),
            number(cosine),
            f"{norm:.3g}",
            f"{percentile:.0f}%",
        ]
        for metric, [first, *_] in found.under("hubs").items()
        for place, (index, times, label, cosine, norm, percentile) in enumerate(first)
    ]
    headings = ["metric", "instance", "chosen first", "mean cosine\nto those cases", "norm", "norm\npercentile"]
    return Grid(f"{found.setting}: most often chosen, first repeat", headings, rows, texts=2)
