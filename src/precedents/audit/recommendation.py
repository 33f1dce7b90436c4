"""Recommendation: which metric to use on this model, by a stated rule.

Among the metrics that have a result, and that explain a case within what can be afforded if that is said, those
come first of which no criterion was left out or failed to run: what was not tried is not passed. Of them the
best has the fewest failed criteria, then the fewest weak ones, then the highest mean of its success rates, then
the least work (counted, not measured), then the first place in the list. What is undecided counts as the worst
that is open, and what was left out, or failed to run, or what only other metrics have a result of, as failed:
nothing is recommended for having less evidence. So a metric that passes everything comes before all others;
where none does, the least bad is named with what it fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from precedents.audit.profile import Profile
from precedents.criteria._judgement import Inapplicable, Judgement
from precedents.criteria._result import Result
from precedents.seen import boxed


@dataclass(frozen=True)
class Recommendation:
    """The metric to use, how it stands, and why, in words."""

    metric: str | None  # none if none has a result that can be afforded
    verdict: str  # passed, weak, undecided or failed, the worst is last; "not applicable" without a metric
    sentences: Sequence[str]

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _repr_html_(self) -> str:
        return boxed("\n".join(self.sentences))


@dataclass(frozen=True, eq=False)
class Standing:
    """How a metric stands before all criteria that ran."""

    metric: str
    results: Mapping[str, Result]  # by criterion
    missing: Mapping[str, str]  # criteria that have no result but a meaning, with the kind of the reason
    rate: float  # the mean of the success rates
    work: float
    why: Mapping[str, str]  # of criteria in which it is weak or failed, a sentence

    @property
    def key(self) -> tuple[float, ...]:
        """What metrics are ordered by: smaller is better."""
        worst = [each.worst for each in self.results.values()]
        return len(self.missing) + worst.count("failed"), worst.count("weak"), -self.rate, self.work

    @property
    def verdict(self) -> str:
        """The verdict on all criteria together."""
        found = {each.verdict for each in self.results.values()} | {"undecided" for _ in self.missing}
        return next(word for word in ("failed", "undecided", "weak", "passed") if word in found)

    def told(self, verdict: str) -> str:
        """The criteria with this verdict and their values, with a comma between; empty if there are none."""
        found = {text: each for text, each in self.results.items() if each.verdict == verdict}
        return ", ".join(f"{text} ({each.mean:.3f})" for text, each in found.items())

    @property
    def reasons(self) -> list[str]:
        """Why it is failed or weak, a sentence for each criterion, failed ones first."""
        failed = [text for text in self.why if self.results[text].verdict == "failed"]
        weak = [text for text in self.why if text not in failed]
        told = [f"It fails {text}: {self.why[text]}" for text in failed]
        return told + [f"It is weak in {text}: {self.why[text]}" for text in weak]


def recommend(
    judgement: Judgement,
    profiles: Mapping[str, Profile | Inapplicable],
    costs: Mapping[str, float],
    afford: float | None,
) -> Recommendation:
    """The recommendation, with its reason.

    `judgement` and `profiles` are what was found of the metrics, `costs` the seconds of explaining one case by
    each, `afford` how many of them there may be.
    """
    tried = _standings(judgement, profiles)
    standings = sorted(_complete(tried) or tried, key=lambda standing: standing.key)
    if not standings:
        dear = any(isinstance(each, Inapplicable) and each.kind == "left out" for each in profiles.values())
        told = (
            "No metric has a result that could be afforded."
            if dear
            else "No metric has a result on this model."
        )
        return Recommendation(None, "not applicable", [told])
    within = [each for each in standings if afford is None or costs.get(each.metric, 0.0) <= afford]
    if not within:
        fastest = min(standings, key=lambda each: costs[each.metric])
        reason = (
            f"No metric explains a case within {afford:g} seconds. The fastest is {fastest.metric} "
            f"with {costs[fastest.metric]:.2g} seconds."
        )
        return Recommendation(None, "not applicable", [reason])
    best = within[0]
    sentences = [*_verdict(best, within), *_reason(best, within)]
    if afford is not None:
        slow = [each.metric for each in standings if each not in within]
        left = f" Left out as too slow: {', '.join(slow)}." if slow else ""
        sentences.append(
            f"Explaining a case by it takes {costs[best.metric]:.2g} seconds; {afford:g} can be afforded.{left}"
        )
    return Recommendation(best.metric, best.verdict, sentences)


def _complete(standings: Sequence[Standing]) -> list[Standing]:
    """Those of metrics that have gone through every criterion that has a meaning for them."""
    return [each for each in standings if set(each.missing.values()) <= {"not applicable"}]


def _standings(judgement: Judgement, profiles: Mapping[str, Profile | Inapplicable]) -> list[Standing]:
    selecting = {name: each for name, each in profiles.items() if isinstance(each, Profile)}
    found = {key: o for key, o in judgement.outcomes.items() if key[0] in selecting}
    ran = {text for (_, text), outcome in found.items() if isinstance(outcome, Result)}
    standings = list[Standing]()
    for metric, profile in selecting.items():
        own = {text: outcome for (name, text), outcome in found.items() if name == metric}
        results = {text: each for text, each in own.items() if isinstance(each, Result)}
        lacks = {text: each.kind for text, each in own.items() if isinstance(each, Inapplicable)}
        missing = {text: kind for text, kind in lacks.items() if kind != "not applicable" or text in ran}
        why = {text: why for text in results if (why := judgement.explained(metric, text))}
        if results:
            standings.append(Standing(metric, results, missing, _rate(judgement, results), profile.work, why))
    return standings


def _rate(judgement: Judgement, results: Mapping[str, Result]) -> float:
    """The mean of the success rates; what is no number counts nothing."""
    rates = [each.mean for text, each in results.items() if judgement.criterion(text).better == "higher"]
    known = [rate for rate in rates if isfinite(rate)]
    return sum(known) / len(rates) if known else 0.0


def _verdict(best: Standing, within: Sequence[Standing]) -> list[str]:
    ran, weak = len(best.results), best.told("weak")
    if best.verdict == "passed":
        passing = [each.metric for each in within if each.verdict == "passed"]
        so = "So does" if len(passing) == 2 else "So do"
        others = f" {so} {', '.join(passing[1:])}." if len(passing) > 1 else " No other metric does."
        return [f"Use {best.metric}: it passes every criterion ({ran} of {ran}).{others}"]
    if best.verdict == "failed":
        return [
            "No metric passes every criterion.",
            "No metric is free of failures either: do not rely on these explanations alone.",
            f"The least bad is {best.metric}: of {ran} criteria it fails {best.told('failed')}"
            + (f", and is weak in {weak}." if weak else "."),
            *best.reasons,
            *_open(best),
        ]
    none = f"No metric {'is shown to pass' if best.verdict == 'undecided' else 'passes'} every criterion."
    also = f" and is weak in {weak}" if weak else ""
    if not best.key[0]:
        return [
            none,
            f"Use {best.metric} with care: it fails none of {ran}{also}.",
            *best.reasons,
            *_open(best),
        ]
    passed = sum(each.verdict == "passed" for each in best.results.values())
    return [
        none,
        "Nor is any shown to fail none: do not rely on these explanations before it is decided.",
        f"The best so far is {best.metric}: of {ran} criteria it passes {passed}{also}.",
        *best.reasons,
        *_open(best),
    ]


def _open(best: Standing) -> list[str]:
    """What is not known of a metric, and how many cases would tell."""
    undecided = {text: each for text, each in best.results.items() if each.verdict == "undecided"}
    told = [f"It is undecided in {text} ({each.mean:.3f}): {each.reason}." for text, each in undecided.items()]
    lacks = ", ".join(f"{text} ({kind})" for text, kind in best.missing.items())
    return told + [f"It has no result in {lacks}."] * bool(lacks)


def _reason(best: Standing, within: Sequence[Standing]) -> list[str]:
    rivals = [each for each in within if each.key[:2] == best.key[:2] and each is not best]
    if not rivals:
        return [f"The mean of its success rates is {best.rate:.3f}."] if best.rate else []
    nearest = rivals[0]
    if nearest.rate < best.rate:
        rates = f"{best.rate:.3f} against {nearest.rate:.3f} of {nearest.metric}, the next"
        why = f"it has the highest mean success rate, {rates}"
    elif nearest.work > best.work:
        why = f"it takes the least work at a mean success rate of {best.rate:.3f}"
    else:
        why = f"it comes first; {nearest.metric} is as good"
    open_ = any(each.told("undecided") for each in (best, *rivals))
    taken = " (what is undecided taken at its worst)" if open_ else ""
    return [f"Among those with as many failed and weak criteria{taken}, {why}."]
