"""The examples run, and what they say is so."""

import contextlib
import io
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@cache
def ran(name: str) -> tuple[dict[str, Any], str]:
    """What an example defines, and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        made = runpy.run_path(str(EXAMPLES[[file.stem for file in EXAMPLES].index(name)]))
    return made, out.getvalue()


@pytest.mark.parametrize("name", [file.stem for file in EXAMPLES])
def test_every_example_explains_and_says_so(name) -> None:
    made, said = ran(name)
    explanation = made["explanation"]
    assert str(explanation[0]) in said
    assert explanation.plot().axes
    assert explanation.to_html()


def audited(name: str) -> Any:
    made, said = ran(name)
    assert str(made["audit"]) in said
    return made["audit"]


def test_a_network_of_digits_is_explained_and_audited() -> None:
    made, said = ran("digits")
    assert audited("digits").recommendation.metric == "cos_grad"
    assert len(made["mistakes"]) == len(made["wrong"]) > 0
    assert "Caution: dot_grad failed the audit of this model" in said


def test_a_network_of_questions_is_explained_in_words() -> None:
    made, _ = ran("text_classifier")
    seen = re.sub("<[^>]*>", "", made["explanation"].to_html())  # without the marks of words
    assert made["kept"][made["explanation"].precedents()[0].index][0] in seen
    assert made["asked"].split()[-1] in seen
    assert len(audited("text_classifier").metrics) == 4
    assert made["explanation"].name(made["explanation"].precedents()[0].label) == "person"


def test_a_pipeline_on_a_table_is_explained_and_audited() -> None:
    made, _ = ran("scikit_learn_pipeline")
    assert made["test"].iloc[0]["tone"] in made["explanation"].to_html()
    assert len(audited("scikit_learn_pipeline").metrics) == 4


def test_a_hugging_face_model_is_explained_and_audited() -> None:
    made, said = ran("hugging_face_text")
    audited("hugging_face_text")
    first = made["explanation"].precedents()[0]
    assert made["train"][first.index]["text"] in said
    assert made["explanation"].name(first.label) in made["explanation"].to_html()


def test_a_trainer_with_lora_is_explained_and_audited() -> None:
    made, said = ran("hugging_face_trainer")
    audited("hugging_face_trainer")
    assert 'predicted place for "Where is the first lake of his country?", because of' in said
    first = made["explanation"].precedents()[0]
    assert made["train"][first.index]["text"] in said
    assert made["explainer"].relevance.workspace.classifier.size == made["model"].num_parameters(
        only_trainable=True
    )


def test_texts_of_any_length_are_explained_and_audited() -> None:
    made, said = ran("collate_fn_text")
    audited("collate_fn_text")
    for explanation in (made["explanation"], made["of_bag"]):
        precedent = explanation.precedents()[0]
        topic, text = made["train"][precedent.index]
        assert text in said
        assert explanation.name(precedent.label) == topic
        assert str(explanation) in said


def test_most_mislabelled_digits_are_found() -> None:
    made, said = ran("mislabelled")
    assert made["wrong"].sum() == 60
    assert made["recall"](made["suspects"], 60) > 0.9
    assert made["recall"](made["suspects"], 120) > 0.95
    assert made["proposed"] > 0.9
    assert made["wrong"][made["blamed"]].mean() > 0.6
    assert "finds 92% of the wrong labels" in said
    assert "the 60 least likely labels hold 88% of them" in said


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_shortcut_shows_whatever_the_seed(seed) -> None:
    (file,) = (file for file in EXAMPLES if file.stem == "shortcut")
    source = file.read_text(encoding="utf-8").replace("SEED = 0", f"SEED = {seed}")
    made: dict[str, Any] = {"__name__": "shortcut"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, str(file), "exec"), made)
    assert len(made["turned"]) >= 20
    assert made["share"]["cos_grad"] >= 0.8


def test_a_shortcut_is_what_the_precedents_of_turned_cases_share() -> None:
    made, said = ran("shortcut")
    assert made["share"]["cos_grad"] >= 0.8
    assert made["share"]["dot_grad"] <= made["share"]["cos_grad"] / 2
    assert f"cos_grad: {made['share']['cos_grad']:.0%} of the first precedents carry the patch" in said
    for group in made["groups"].groups[:2]:
        row, column = divmod(int(group.shared.picture.argmax()), 8)
        assert min(row, column) >= 8 - made["PATCH"]
