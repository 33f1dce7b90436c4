"""Options that the commands of this group share."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._output import put

RecordsFolder = Annotated[
    Path, Option(metavar="FOLDER", help="The folder of the records, which `reproduction run` fills.")
]
Settings = Annotated[
    list[str] | None,
    Option(metavar="DATASET/MODEL", help="Settings, with commas between.", show_default="all with records"),
]


def written(files: dict[str, str], folder: Path) -> list[Path]:
    """Writes texts by name into a folder; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        put(folder / name, text)
    return [folder / name for name in files]
