"""Tables, comparison and figures as files by name: Markdown, CSV, HTML, SVG."""

from collections.abc import Sequence

from precedents.bench.comparison import Comparison
from precedents.bench.findings import Findings
from precedents.bench.published import CRITERIA
from precedents.bench.summary import MEASURE, grids, notes_of, sentences
from precedents.bench.tables import criterion_of, overview, table
from precedents.views.grid import Grid, as_csv
from precedents.views.pages import Page, Section, html

FILES = {criterion: name for name, criterion in CRITERIA.items()}


def table_grids(found: Sequence[Findings], test: str | None = None) -> list[Grid]:
    """One table, or all five and the overview."""
    if test is not None:
        return [table(criterion_of(test), found).grid()]
    return [*(table(criterion, found).grid() for criterion in CRITERIA.values()), overview(found).grid()]


def table_files(found: Sequence[Findings], test: str | None = None) -> dict[str, str]:
    """Every table as Markdown and CSV, and all of them on one page."""
    files = {}
    grids = []
    for criterion in [criterion_of(test)] if test else CRITERIA.values():
        made = table(criterion, found)
        grids.append(made.grid())
        files[f"{FILES[criterion]}.md"] = grids[-1].markdown()
        files[f"{FILES[criterion]}.csv"] = as_csv(made.records())
    if test is None:
        over = overview(found)
        grids = [over.grid(), *grids]
        files["overview.md"] = grids[0].markdown()
        files["overview.csv"] = as_csv(over.records())
    sections = [Section(grid.title.partition(":")[0], grids=[grid]) for grid in [*grids, notes_of(found)]]
    lead = ["Ours beside the published numbers, from the records of the bench."]
    name = f"{FILES[criterion_of(test)]}.html" if test else "tables.html"
    return files | {name: html(Page("Tables", lead, sections))}


def comparison_files(comparison: Comparison, found: Sequence[Findings]) -> dict[str, str]:
    """Every cell as CSV; what it comes to as Markdown and as a page."""
    said, made = sentences(comparison), [*grids(comparison), notes_of(found)]
    text = "\n".join(["# Ours against the published numbers", "", *(f"- {each}" for each in said), "", MEASURE, ""])
    page = Page("Ours against the published numbers", said, [Section(grid.title, grids=[grid]) for grid in made])
    return {
        "comparison.csv": as_csv(each.record() for each in comparison.cells),
        "comparison.md": "\n".join([text, *(grid.markdown() for grid in made)]),
        "comparison.html": html(page),
    }
