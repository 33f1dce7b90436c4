"""Recommendation: which metric to use on this model, by a stated rule.

Among the metrics that have a result, and that explain a case within what can be afforded if that is said, those
come first of which no criterion was left out or failed to run: what was not tried is not passed. Of them the
best has the fewest failed criteria, then the fewest weak ones, then the highest mean of its success rates, then
the least work (counted, not measured), then the first place in the list. So a metric that passes everything
comes before all others, and where none does, the least bad is named with what it fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from precedents.audit.profile import Profile
from precedents.criteria._judgement import Inapplicable, Judgement
from precedents.criteria._result import Result


@dataclass(frozen=True)
class Recommendation:
    """The metric to use, how it stands, and why, in words."""

    metric: str | None  # none if none has a result that can be afforded
    verdict: str  # passed, weak or failed: the worst of its criteria; "not applicable" without a metric
    sentences: Sequence[str]

    def __str__(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True)
class Standing:
    """How a metric stands before all criteria that ran."""

    metric: str
    failed: Mapping[str, float]  # criteria with their values
    weak: Mapping[str, float]
    ran: int
    rate: float  # the mean of the success rates
    work: float

    @property
    def key(self) -> tuple[float, ...]:
        """What metrics are ordered by: smaller is better."""
        return len(self.failed), len(self.weak), -self.rate, self.work

    @property
    def verdict(self) -> str:
        """The verdict of the worst criterion."""
        return "failed" if self.failed else "weak" if self.weak else "passed"


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
    standings = sorted(_complete(tried, judgement) or tried, key=lambda standing: standing.key)
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


def _complete(standings: Sequence[Standing], judgement: Judgement) -> list[Standing]:
    """Those of metrics that have gone through every criterion that has a meaning for them."""
    every = judgement.outcomes.items()
    short = {name for (name, _), o in every if isinstance(o, Inapplicable) and o.kind != "not applicable"}
    return [each for each in standings if each.metric not in short]


def _standings(judgement: Judgement, profiles: Mapping[str, Profile | Inapplicable]) -> list[Standing]:
    found = []
    for metric, profile in profiles.items():
        results = {
            criterion: outcome
            for (name, criterion), outcome in judgement.outcomes.items()
            if name == metric and isinstance(outcome, Result)
        }
        if isinstance(profile, Inapplicable) or not results:
            continue
        rates = [each.mean for text, each in results.items() if judgement.criterion(text).better == "higher"]
        failed, weak = (
            {criterion: result.mean for criterion, result in results.items() if result.verdict == verdict}
            for verdict in ("failed", "weak")
        )
        mean = sum(rates) / len(rates) if rates else 0.0
        found.append(Standing(metric, failed, weak, len(results), mean, profile.work))
    return found


def _verdict(best: Standing, within: Sequence[Standing]) -> list[str]:
    if not best.failed and not best.weak:
        passing = [each.metric for each in within if each.verdict == "passed"]
        others = f" So do {', '.join(passing[1:])}." if len(passing) > 1 else " No other metric does."
        return [f"Use {best.metric}: it passes every criterion ({best.ran} of {best.ran}).{others}"]
    none = "No metric passes every criterion."
    if not best.failed:
        care = f"Use {best.metric} with care: it fails none of {best.ran} and is weak in {_told(best.weak)}."
        return [none, care]
    weak = f", and is weak in {_told(best.weak)}" if best.weak else ""
    return [
        none,
        "No metric is free of failures either: do not rely on these explanations alone.",
        f"The least bad is {best.metric}: of {best.ran} criteria it fails {_told(best.failed)}{weak}.",
    ]


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
    return [f"Among those with as many failed and weak criteria, {why}."]


def _told(criteria: Mapping[str, float]) -> str:
    return ", ".join(f"{criterion} ({value:.3f})" for criterion, value in criteria.items())
