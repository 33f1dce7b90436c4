"""Cases that a metric cannot rank for count nowhere, and every job says so."""

import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import precedents as pr

TEXTS = [
    "refund my money",
    "refund please",
    "the app crashes",
    "app crash on start",
    "crash of the app",
    "pay me",
]
LABELS = ["bill", "bill", "bug", "bug", "bug", "bill"]
UNKNOWN = ["quiero mi dinero", "hola", "se cierra", "nada funciona", "devuelve"]  # no word of which is known
SAID = "cases are not counted, as"


def of_texts(metric: str) -> tuple[pr.Explainer, list[str]]:
    """An explainer with texts no word of which it knows, and a few that it can rank for."""
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS * 5, LABELS * 5)
    return pr.Explainer(model, (TEXTS * 5, LABELS * 5), metric), [*TEXTS, *UNKNOWN * 5]


def saturated(metric: str, digits) -> tuple[pr.Explainer, torch.Tensor]:
    """An explainer of a model that is sure of most predictions, so that their losses have no gradient."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    linear[1].weight.data.mul_(10_000)
    return pr.Explainer(linear, digits.train, metric), digits.test[0][:60]


@pytest.fixture(params=["texts, cos_x", "texts, dot_x", "digits, cos_grad"])
def asked(request, digits):
    kind, metric = request.param.split(", ")
    explainer, others = of_texts(metric) if kind == "texts" else saturated(metric, digits)
    cautions = [explainer.explain(others[i : i + 1], k=2).remarks[0] for i in range(len(others))]
    lost = [any("cannot rank here" in said for said in each) for each in cautions]
    assert sum(lost) >= 20  # what `explain` says, each by itself
    return explainer, others, lost


def test_they_are_in_no_group(asked) -> None:
    explainer, cases, lost = asked
    found = explainer.groups(cases, ["all"] * len(cases), k=2)
    ranked = [case for case, each in enumerate(lost) if not each]
    assert [case for group in found.groups for case in group.cases] == ranked
    assert (
        f"{sum(lost)} of {len(lost)} {SAID} {explainer.name} cannot rank for them: explain says why."
        in found.notes
    )
    assert found.notes[-1] in str(found)


def test_they_make_no_hub_and_are_answered_by_nothing(asked) -> None:
    explainer, cases, lost = asked
    found = explainer.answers(None, cases, k=1)
    assert sum(found.counts.values()) == len(lost) - sum(lost)
    assert not [row for row in found.rows() if lost[row["case"]]]
    assert not [row for row in explainer.answers(0, cases, k=1).rows() if lost[row["case"]]]
    assert all(share * (len(lost) - sum(lost)) >= 3 for share in found.hubs.values())
    assert SAID in str(found)
    hubs = ["hub" in flags[0] for flags in explainer.explain(cases, k=1).flags]
    assert hubs == [int(i) in found.hubs for i in found.top.indices[:, 0]]
    assert found.plot() is not None


def test_they_accuse_nobody(asked) -> None:
    explainer, cases, lost = asked
    predicted = explainer.subject.predicted(explainer.subject.cases(cases)).labels
    names = explainer.classes
    other = (predicted + 1) % explainer.subject.classifier.classes
    truth = [names[int(label)] for label in other] if names else other  # every prediction is wrong
    found = explainer.suspects(3, (cases, truth))
    accusing = {case for each in found.evidence.accusers for case in each}
    assert accusing == {case for case, each in enumerate(lost) if not each}
    assert SAID in str(found)


def test_contrast_says_what_explain_says(asked) -> None:
    explainer, cases, lost = asked
    for case in (lost.index(True), lost.index(False)):
        one = cases[case : case + 1]
        label = int(explainer.subject.cases(one).labels)
        sides = (label, (label + 1) % explainer.subject.classifier.classes)
        names = explainer.classes or list(range(10))
        found = explainer.contrast(one, *(names[side] for side in sides))
        told = [list(explainer.explain(one, labels=[names[side]], k=1).remarks[0]) for side in sides]
        assert list(found.cautions) == [*dict.fromkeys([*told[0], *told[1]])]
        assert not lost[case] or not found.separating.traits
        assert lost[case] == any("cannot rank here" in said for said in str(found).splitlines())
    assert "The case is nearer" not in str(explainer.contrast(cases[-1:], *names[:2])) or not lost[-1]


def test_their_precedents_are_not_compared(asked) -> None:
    explainer, cases, lost = asked
    found = pr.compare(explainer, explainer, cases, k=2)
    assert found.overlap.isnan().tolist() == lost
    assert found.overlap[~torch.tensor(lost)].eq(1).all()
    rows = {row["case"]: row for row in found.rows()}
    for case, each in enumerate(lost):
        assert (rows[case]["overlap"] is None) == (rows[case]["one_first"] is None) == each
    assert SAID in str(found)


def test_cases_that_can_be_ranked_for_are_as_before() -> None:
    (explainer, _), known, unknown = of_texts("cos_x"), TEXTS * 5, UNKNOWN * 5
    for job in (
        lambda cases: explainer.groups(cases, k=2).rows(),
        lambda cases: explainer.answers(None, cases, k=2).rows(),
        lambda cases: pr.compare(explainer, explainer, cases, k=2).rows()[: len(known)],
    ):
        assert job(known) == job([*known, *unknown])
    assert not explainer.groups(known).left_out
