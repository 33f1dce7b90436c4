"""The example of a text classifier runs, and what it says is so."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "hugging_face_text.py"


def test_a_text_classifier_is_explained_and_audited(capsys) -> None:
    made = runpy.run_path(str(EXAMPLE))
    said = capsys.readouterr().out
    assert str(made["explanation"]) in said
    assert str(made["audit"]) in said
    first = made["explanation"].precedents()[0]
    assert made["train"][first.index]["text"] in said
    assert made["explanation"].name(first.label) in made["explanation"].to_html()
