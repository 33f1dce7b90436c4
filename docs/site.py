"""The pages of the documentation site that are made and not written; mkdocs calls the functions `on_...`.

Made from the code, so that they cannot drift from it: the card of every metric and criterion, a page for every
criterion and a section for every part that the pages do not describe, the API, the examples (from their
cells), the list of decisions, and the project's own pages from beside the README.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from precedents.cli.metrics import parts_of
from precedents.criteria import CRITERIA
from precedents.metrics.features import FEATURES
from precedents.metrics.names import ALIASES, FORMS
from precedents.metrics.preconditioners import PRECONDITIONERS
from precedents.metrics.similarities import SIMILARITIES
from precedents.registry import Registry
from precedents.reproduction.published import published

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
AXES: dict[str, Registry[Any]] = {
    "features": FEATURES,
    "preconditioners": PRECONDITIONERS,
    "similarities": SIMILARITIES,
}
OWN = {
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
LIBRARIES = {"ours": "precedents", "pydvl": "pyDVL", "trak": "TRAK"}  # as they write themselves
LATER = ("reproduction.md",)  # in the navigation when it is there
SYMBOLS = {
    "inputs": "x",
    "last_hidden": "h",
    "all_hidden": "h*",
    "gradient": "g",
    "hessian": "H",
    "fisher": "F",
}
PLAIN = {
    "dot": "{0}(z)ᵀ {0}(z′)",
    "cosine": "{0}(z)ᵀ {0}(z′) / ( ‖{0}(z)‖ ‖{0}(z′)‖ )",
    "l2": "−‖{0}(z) − {0}(z′)‖²",
}
UNDER = {
    "dot": "{0}(z)ᵀ {1}⁻¹ {0}(z′)",
    "cosine": "{0}(z)ᵀ {1}⁻¹ {0}(z′) / √( {0}(z)ᵀ {1}⁻¹ {0}(z) · {0}(z′)ᵀ {1}⁻¹ {0}(z′) )",
    "l2": "−( {0}(z) − {0}(z′) )ᵀ {1}⁻¹ ( {0}(z) − {0}(z′) )",
}


def on_config(config: Any) -> Any:
    """Folders in the navigation become their pages."""
    config.nav = [_opened(entry) for entry in config.nav if _page(entry) not in LATER or _written(_page(entry))]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    for name, text in _made().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:  # noqa: ARG001
    """Adds to the page of a metric, of a criterion or of parts what is made for it."""
    folder, _, name = page.file.src_uri.removesuffix(".md").rpartition("/")
    title, _, rest = markdown.partition("\n")
    if folder == "metrics" and name in FORMS:
        first, heading, more = rest.partition("## ")
        return "\n".join([title, first, metric_card(name), heading + more, "", _published(name)])
    if folder == "criteria" and name in CRITERIA.names():
        return "\n".join([title, "", f"*{CRITERIA.meaning(name)}*", rest, "", _settings(CRITERIA, name)])
    if folder == "parts" and name in AXES:
        return _with_settings(markdown, name)
    if page.file.src_uri == "peers.md":
        return markdown.replace("<!-- the files -->", _files()).replace("<!-- what came of them -->", _came())
    return markdown


def _page(entry: dict[str, Any]) -> str:
    place = next(iter(entry.values()))
    return place if isinstance(place, str) else ""


def _written(name: str) -> bool:
    return (DOCS / name).exists()


def _opened(entry: dict[str, Any]) -> dict[str, Any]:
    ((title, place),) = entry.items()
    if isinstance(place, list):
        return {title: [_opened(each) for each in place]}
    return {title: list(_pages(place))} if place.endswith("/") else entry


def _pages(folder: str) -> Iterator[str]:
    """The pages of a folder, written and made, in the order of names; metrics in the order of the paper."""
    names = {path.relative_to(DOCS).as_posix() for path in (DOCS / folder).glob("[!_]*.md")}
    names |= {name for name in _made() if name.startswith(folder)}
    order = [f"metrics/{name}.md" for name in FORMS]
    yield f"{folder}index.md"
    yield from sorted(
        names - {f"{folder}index.md"}, key=lambda name: (order.index(name) if name in order else 0, name)
    )


def _made() -> dict[str, str]:
    own = {name: _moved((ROOT / source).read_text(encoding="utf-8")) for name, source in OWN.items()}
    return {
        **own,
        **dict(_examples()),
        "metrics/index.md": _metrics(),
        "criteria/index.md": _criteria(),
        **{f"criteria/{name}.md": _undescribed(name) for name in CRITERIA.names() if not _described(name)},
        "decisions/index.md": _decisions(),
        "api.md": _api(),
    }


def _moved(text: str) -> str:
    """A page from beside the README, with its links as they are from docs/."""
    text = text.replace("](docs/decisions)", "](decisions/index.md)").replace("](docs/", "](")
    return re.sub(r"\]\((\w+)\.md\)", lambda found: f"]({found[1].lower()}.md)", text)


def by_axis(form: str) -> dict[str, str]:
    """The parts of a metric by axis, from its text."""
    parts = parts_of(form)
    return {
        "features": parts["features"],
        "preconditioners": parts["preconditioner"] or "identity",
        "similarities": parts["similarity"],
    }


def metric_card(name: str) -> str:
    """What follows from the parts of a metric: its formula, its names, its cost."""
    parts = by_axis(FORMS[name])
    phi, m = SYMBOLS[parts["features"]], SYMBOLS.get(parts["preconditioners"])
    formula = (UNDER if m else PLAIN)[parts["similarities"]].format(phi, m)
    names = [f"`{name}`", *(f"`{alias.upper()}`" for alias, known in ALIASES.items() if known == name)]
    links = [
        f"[`{part}`](../parts/{axis}.md#{part}): {AXES[axis].meaning(part)}"
        for axis, part in parts.items()
        if part != "identity"
    ]
    costs = [f"`{part}`: {cost}" for axis, part in parts.items() for cost in _cost(axis, part)]
    return "\n".join(
        [
            f'<p class="formula">R(z, z′) = {formula}</p>',
            "",
            f"Names: {', '.join(names)}, written out `{FORMS[name]}`.",
            "*z* is the case with the predicted label, *z′* a training instance with its own.",
            "",
            *(f"- {link}" for link in links),
            "",
            "**Cost.**",
            "",
            *(f"- {cost}" for cost in costs),
            "",
        ]
    )


def _published(metric: str) -> str:
    """What the paper found of the metric, over its settings."""
    found: dict[str, list[float]] = {}
    for (criterion, _, name), cell in published().items():
        if name == metric:
            found.setdefault(criterion, []).append(cell.mean)
    rows = [
        f"| `{criterion}` | {len(means)} | {fmean(means):.2f} | {min(means):.2f} to {max(means):.2f} |"
        for criterion, means in found.items()
    ]
    head = [
        "## In the paper",
        "",
        "Means over its settings (data set and architecture), as published.",
        "",
    ]
    fisher = "The published Fisher matrix is not ours, see [fisher](../parts/preconditioners.md#fisher).\n"
    table = ["| criterion | settings | mean | |", "|---|---:|---:|---|", *rows, ""]
    return "\n".join([*head, *([fisher] if "fisher" in metric else []), *table])


def _sections(axis: str) -> dict[str, str]:
    """The sections of a page of parts by the part that each describes."""
    found = re.split(
        r"^## `(\w+)`$", (DOCS / "parts" / f"{axis}.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return dict(zip(found[1::2], found[2::2], strict=True))


def _cost(axis: str, part: str) -> list[str]:
    return re.findall(
        r"^\*\*Cost\.\*\* (.*?)\n\n", _sections(axis)[part] + "\n\n", flags=re.DOTALL | re.MULTILINE
    )


def _with_settings(markdown: str, axis: str) -> str:
    """A page of parts with an anchor and the settings of each, those that it does not describe added."""
    described = _sections(axis)
    unknown = set(described) - set(AXES[axis].names())
    if unknown:
        raise PluginError(f"docs/parts/{axis}.md describes {', '.join(sorted(unknown))}, which is no part.")
    markdown = re.sub(r"^## `(\w+)`$", r"## `\1` { #\1 }", markdown, flags=re.MULTILINE)
    head, *rest = re.split(r"(?=^## )", markdown, flags=re.MULTILINE)
    rest = [
        f"{section}\n{_settings(AXES[axis], name)}\n" for section, name in zip(rest, described, strict=True)
    ]
    new = [
        f"## `{name}` {{ #{name} }}\n\n{AXES[axis].meaning(name)}\n\n{_settings(AXES[axis], name)}\n"
        for name in AXES[axis].names()
        if name not in described
    ]
    return "\n".join([head, *rest, *new])


def _settings(registry: Registry[Any], name: str) -> str:
    """The settings that a file's dataclass has, with their defaults and comments."""
    source = registry.source(name)
    *body, value = ast.parse(source).body
    if not isinstance(value, ast.Assign) or not isinstance(value.value, ast.Call):
        return ""
    kind = ast.unparse(value.value.func)
    fields = [
        node
        for made in body
        if isinstance(made, ast.ClassDef) and made.name == kind
        for node in made.body
        if isinstance(node, ast.AnnAssign) and node.value and "ClassVar" not in ast.unparse(node.annotation)
    ]
    if not fields:
        return ""
    table = [f"| `{ast.unparse(node.target)}` | {_default(source, node)} |" for node in fields]
    return "\n".join(["| setting | without it | |", "|---|---|---|", *table, ""])


def _default(source: str, setting: ast.AnnAssign) -> str:
    """What a setting is without being said, and the comment beside it."""
    assert setting.value is not None
    assert setting.end_lineno is not None
    comment = source.splitlines()[setting.end_lineno - 1].partition("  # ")[2]
    return f"`{ast.get_source_segment(source, setting.value)}` | {comment}"


def _metrics() -> str:
    short = {name: alias.upper() for alias, name in ALIASES.items()}
    rows = [
        f"| [`{name}`]({name}.md) | {short.get(name, '')} | `{form}` | {_first(f'metrics/{name}.md')} |"
        for name, form in FORMS.items()
    ]
    text = (DOCS / "metrics" / "_index.md").read_text(encoding="utf-8")
    return "\n".join([text, "| metric | alias | written out | |", "|---|---|---|---|", *rows, ""])


def _criteria() -> str:
    rows = [f"| [`{n}`]({n}.md) | {CRITERIA.meaning(n).partition(': ')[2]} |" for n in CRITERIA.names()]
    text = (DOCS / "criteria" / "_index.md").read_text(encoding="utf-8")
    return "\n".join([text, "| criterion | what a believable metric does |", "|---|---|", *rows, ""])


def _described(name: str) -> bool:
    return _written(f"criteria/{name}.md")


def _undescribed(name: str) -> str:
    """The page of a criterion that has none: what it says of itself, besides its meaning and its settings."""
    criterion = CRITERIA.get(name)
    better = {"higher": "Higher is better.", "zero": "Zero is best."}[criterion.better]
    needs = " or ".join(f"`{need}`" for need in criterion.needs)
    return "\n".join([f"# {name}", "", f"{better} It needs {needs}." if needs else better, ""])


def _decisions() -> str:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    rows = [f"- [{_title(page)}]({page.name})" for page in pages]
    return "\n".join(["# Decisions", "", "Why things are as they are, half a page each.", "", *rows, ""])


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def _first(page: str) -> str:
    """The first sentence below a page's title."""
    paragraph = (DOCS / page).read_text(encoding="utf-8").split("\n\n")[1]
    return re.split(r"(?<=\.)\s", paragraph.replace("\n", " "))[0]


def _notes() -> dict[str, Any]:
    return json.loads((ROOT / "benchmarks/results/side_by_side.json").read_text(encoding="utf-8"))


def _typed(name: str) -> list[str]:
    """The lines that a user of a library types."""
    return (ROOT / f"benchmarks/side_by_side/{name}.py").read_text(encoding="utf-8").splitlines()


def _files() -> str:
    """The files of the same task, a tab for each library."""
    tabs = []
    for name in _notes():
        block = ["```python", *_typed(name), "```"]
        tabs += [f'=== "{LIBRARIES.get(name, name)}"', "", *(f"    {line}".rstrip() for line in block), ""]
    return "\n".join(tabs)


def _came() -> str:
    """What came of the same task with each library."""
    rows = ["| library | version | run on | lines | predicted class | as ours |", "|---|---|---|---:|---:|---|"]
    for name, note in _notes().items():
        lines, share = len(_typed(name)), f"{note['predicted class']:.0%}"
        metric = f"{note['shared']:.0%} of `{note['metric']}`" if note["metric"] else "–"
        library = LIBRARIES.get(name, name)
        rows.append(f"| {library} | {note['version']} | {note['date']} | {lines} | {share} | {metric} |")
    return "\n".join(rows)


def _examples() -> Iterator[tuple[str, str]]:
    """A page for each script, and one that lists them."""
    listed = []
    for script in sorted((ROOT / "examples").glob("*.py")):
        title, text = _cells(script.read_text(encoding="utf-8"))
        listed.append(f"- [{title}]({script.stem}.md): `examples/{script.name}`")
        yield f"examples/{script.stem}.md", f"# {title}\n\n`examples/{script.name}`\n\n{text}"
    head = (
        "# Examples\n\nScripts with cells. Each runs in seconds, downloads nothing, and is run by the tests.\n"
    )
    yield "examples/index.md", "\n".join([head, *listed, ""])


def _cells(script: str) -> tuple[str, str]:
    """The title and the rest of the page that a script with cells makes."""
    first, *cells = re.split(r"^# %%(?!`)", script, flags=re.MULTILINE)
    words = ast.get_docstring(ast.parse(first)) or ""
    parts = [words]
    for cell in cells:
        head, _, body = cell.partition("\n")
        if head.strip() == "[markdown]":
            parts.append("\n".join(line.removeprefix("# ").removeprefix("#") for line in body.splitlines()))
            continue
        parts += [f"## {head.strip()}"] * bool(head.strip()) + [f"```python\n{body.strip()}\n```"]
    title, _, text = "\n\n".join(part.strip() for part in parts if part.strip()).partition("\n")
    return title.lstrip("# ").rstrip("."), text


def _api() -> str:
    """The public names by the module that they come from, in the order of `public.py`."""
    text = [(DOCS / "_api.md").read_text(encoding="utf-8")]
    for module, names in _public():
        text += [f"::: {module}.{name}" for name in names]
    return "\n\n".join(text)


def _public() -> Iterable[tuple[str, list[str]]]:
    tree = ast.parse((ROOT / "src/precedents/public.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "precedents.errors":
            yield node.module or "", [alias.name for alias in node.names]
