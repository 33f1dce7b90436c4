"""The examples run, and what they say is so."""

import runpy
from pathlib import Path

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def run(name: str) -> dict:
    return runpy.run_path(str(EXAMPLES[[file.stem for file in EXAMPLES].index(name)]))


def test_a_pipeline_on_a_table_is_explained_and_audited(capsys) -> None:
    made = run("scikit_learn_pipeline")
    said = capsys.readouterr().out
    for part in (made["explanation"], made["verdict"]):
        assert str(part) in said
    assert made["explanation"].plot().axes
    assert all(f"{row['tone']}" in made["explanation"].to_html() for _, row in made["test"].iloc[:1].iterrows())
    assert len(made["verdict"].metrics) == 4


def test_most_mislabelled_digits_are_found(capsys) -> None:
    made = run("mislabelled")
    assert made["wrong"].sum() == 60
    assert made["recall"](made["suspects"], 60) > 0.8
    assert made["recall"](made["suspects"], 120) > 0.95
    assert made["wrong"][made["blamed"]].mean() > 0.6
    assert "finds 88% of the wrong labels" in capsys.readouterr().out
