"""The README's commands run, and print what the page says that they print."""

import re
import shlex

from cli.conftest import ROOT, factory_of_the_readme


def commands() -> list[tuple[str, str]]:
    """The page's commands, each with what the page says that it prints."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    return [(command, said) for command, _, said in (part.partition("\n") for part in parts)]


def test_commands_print_what_the_page_says(tmp_path, monkeypatch, precedents) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model.py").write_text(factory_of_the_readme())
    assert len(commands()) > 3
    for command, said in commands():
        name, *arguments = shlex.split(command)
        assert name == "precedents"
        done = precedents(*arguments)
        assert done.code == 0, done.err
        assert [line.rstrip() for line in done.out.splitlines()] == said.splitlines()
