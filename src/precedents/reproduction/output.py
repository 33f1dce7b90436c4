"""Tables, comparison and figures as files by name: Markdown, CSV, HTML, SVG."""

from collections.abc import Iterator, Sequence

from precedents.reproduction.comparison import Comparison, compare
from precedents.reproduction.comparison_tables import MEASURE, grids, notes_of, sentences
from precedents.reproduction.examples import gallery, hubs
from precedents.reproduction.figures import drawings
from precedents.reproduction.published import CRITERIA
from precedents.reproduction.results import Duration, SettingResults
from precedents.reproduction.tables import criterion_of, overview, table
from precedents.views.pages import Illustration, Page, Section, html, picture
from precedents.views.table import Table, as_csv

FILES = {criterion: name for name, criterion in CRITERIA.items()}


def table_grids(found: Sequence[SettingResults], test: str | None = None) -> list[Table]:
    """One table, or all five and the overview."""
    if test is not None:
        return [table(criterion_of(test), found).grid()]
    return [*(table(criterion, found).grid() for criterion in CRITERIA.values()), overview(found).grid()]


def table_files(found: Sequence[SettingResults], test: str | None = None) -> dict[str, str]:
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
    sections = [Section(grid.title.partition(":")[0], tables=[grid]) for grid in [*grids, notes_of(found)]]
    lead = ["Ours beside the published numbers, from the records of the reproduction."]
    name = f"{FILES[criterion_of(test)]}.html" if test else "tables.html"
    return files | {name: html(Page("Tables", lead, sections))}


def comparison_files(comparison: Comparison, found: Sequence[SettingResults]) -> dict[str, str]:
    """Every cell as CSV; what it comes to as Markdown and as a page."""
    said, made = sentences(comparison), [*grids(comparison), notes_of(found)]
    text = "\n".join(
        ["# Ours against the published numbers", "", *(f"- {each}" for each in said), "", MEASURE, ""]
    )
    page = Page(
        "Ours against the published numbers", said, [Section(grid.title, tables=[grid]) for grid in made]
    )
    return {
        "comparison.csv": as_csv(each.record() for each in comparison.cells),
        "comparison.md": "\n".join([text, *(grid.markdown() for grid in made)]),
        "comparison.html": html(page),
    }


def figure_files(found: Sequence[SettingResults], spent: Sequence[Duration]) -> Iterator[tuple[str, str]]:
    """Every figure as SVG, the examples, and an index that shows all; each when it is drawn."""
    shown: dict[str, list[Illustration]] = {}
    for drawing in drawings(found, spent):
        file = f"{drawing.name}.svg"
        yield file, picture(drawing.draw(), drawing.name)
        shown.setdefault(drawing.section, []).append(Illustration(file, drawing.caption))
    sections = [
        Section(name, pictures=pictures, tables=hubs(found) if name.startswith("Most often") else ())
        for name, pictures in shown.items()
    ]
    examples = gallery(found)
    if examples is not None:
        yield "examples.html", html(examples)
        links = {
            f"{len(examples.sections)} groups of cases with their precedents by every metric": "examples.html"
        }
        sections.append(Section("Examples", links=links))
    tables, comparison = table_files(found), comparison_files(compare(found), found)
    yield from (tables | comparison).items()
    listed = {name: name for name in ("tables.html", "comparison.html", "comparison.md", *tables, *comparison)}
    sections.append(Section("Tables and comparison", tables=[overview(found).grid()], links=listed))
    sections.append(Section("How it was run", tables=[notes_of(found)]))
    yield "index.html", html(Page("The paper's evaluation, again", sentences(compare(found)), sections))
