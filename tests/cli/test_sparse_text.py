"""The example of the command line, a TF-IDF pipeline, runs as its first lines say."""

import re
import shlex

from cli.conftest import ROOT

FOLDER = ROOT / "examples" / "command_line"


def test_the_commands_of_the_example_run(tmp_path, monkeypatch, precedents) -> None:
    monkeypatch.chdir(tmp_path)
    text = (FOLDER / "tickets.py").read_text(encoding="utf-8")
    (tmp_path / "tickets.py").write_text(text, encoding="utf-8")
    commands = re.findall(r"^    precedents (.*)$", text, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = precedents(*shlex.split(command))
        assert done.code == 0, done.err
        assert ("cos_grad" if command.startswith("audit") else "case 0: predicted") in done.out
    page = (tmp_path / "tickets.html").read_text(encoding="utf-8")
    assert any(word in page for word in ("charged", "parcel", "password", "courier", "refund", "declined"))
