"""Audit: what was found of all metrics on one model; a value that prints, exports and reads itself back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Any

from precedents.adapters._subject import Subject
from precedents.audit.instances import Case
from precedents.audit.profile import Profile
from precedents.audit.recommendation import Recommendation
from precedents.audit.scope import Scope
from precedents.audit.wording import recommended, rough
from precedents.classifier.behaviour import logits, summarised_alike, summary, tolerance
from precedents.criteria import CRITERIA
from precedents.criteria._judgement import Inapplicable, Judgement
from precedents.criteria._result import Result
from precedents.data.ids import Id, shown_id
from precedents.errors import NotApplicable, StaleError, UnknownNameError
from precedents.explain.cautions import Finding, hubs
from precedents.explain.shares import Shares
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.paper import name_of
from precedents.seen import boxed, clipped, escaped, visible
from precedents.views.instance import Shown
from precedents.views.table import NONE, Entry, Table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, ConsoleOptions, RenderResult

    from precedents.views.report import Report

NO_ROOM = "as the memory budget has no room for"
COLUMNS = ["metric", "criterion", "value", "low", "high", "chance", "verdict", "reason"]
WIDEST = 10_000  # letters of a line, to see how many the table needs


@dataclass(frozen=True, eq=False)
class Audit:
    """All metrics by all criteria on one model, what they select besides, and which to use."""

    scope: Scope
    judgement: Judgement  # metrics by criteria
    profiles: Mapping[str, Profile | Inapplicable]  # by metric
    norms: Mapping[str, Sequence[float]]  # by kernel: of all training instances; none if it is indefinite
    agreement: Mapping[str, Mapping[tuple[str, str], float]]  # by measure and pair of metrics
    duplicates: Sequence[tuple[int, int]]  # cases and training instances with equal inputs
    examples: Sequence[Case]
    recommendation: Recommendation
    costs: Mapping[str, float] = field(default_factory=dict)  # measured seconds for one more case, by metric
    pictures: Mapping[tuple[str, int], Shown] = field(default_factory=dict, repr=False)  # of "case" or "train"
    shares: Mapping[tuple[int, int], Shares] = field(
        default_factory=dict, repr=False
    )  # by the recommended metric
    spread: Mapping[str, float] = field(default_factory=dict, repr=False)  # of a table's columns
    ids: Mapping[tuple[str, int], Id] = field(default_factory=dict, repr=False)  # of those that are named

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics, in the order of the table."""
        return list(self.profiles)

    @property
    def portraits(self) -> Mapping[str, Profile | Inapplicable]:
        """The profiles, by the name that they had before and have in JSON."""
        return self.profiles

    @property
    def criteria(self) -> list[str]:
        """The texts of the criteria, in the order of the table."""
        return list(dict.fromkeys(criterion for _, criterion in self.judgement.outcomes))

    def __repr__(self) -> str:
        count = f"{len(self.metrics)} metrics, {len(self.criteria)} criteria, {self.scope.cases} cases"
        return clipped(f"Audit({count}, recommended: {self.recommendation.metric})", 200)

    def __getitem__(self, key: tuple[str, str]) -> Result | Inapplicable:
        """The outcome of a metric by a criterion, both by name."""
        return self.judgement[key]

    def rate(self, metric: str) -> float:
        """The least of a metric's success rates by the criteria that count: identical class and subclass."""
        return self.least(metric).mean

    def least(self, metric: str) -> Result:
        """The result of a `metric` whose success rate is `rate`; refused where one that counts is lacking."""
        name = self._known(metric)
        every, criterion = self.judgement.outcomes.items(), self.judgement.criterion
        counting = {text: o for (own, text), o in every if own == name and criterion(text).counts}
        for text, lack in counting.items():
            if isinstance(lack, Inapplicable) and lack.kind != "not applicable":
                why = f"{text} has no result ({lack.kind}). {lack.reason}"
                raise NotApplicable(f"The success rate of {name} is not known: {why}")
        found = [each for each in counting.values() if isinstance(each, Result)]
        if not found:
            known = [each for each in CRITERIA.names() if CRITERIA.get(each).counts]
            raise NotApplicable(f"Neither {' nor '.join(known)} has a result for {name}.")
        return min(found, key=lambda each: each.mean)

    def failed(self, metric: str) -> list[str]:
        """The texts of the criteria that a metric failed."""
        name = self._known(metric)
        every = self.judgement.outcomes.items()
        return [c for (own, c), o in every if own == name and isinstance(o, Result) and o.verdict == "failed"]

    def hubs(self, metric: str) -> dict[int, float]:
        """The training instances that are hubs by a metric, with the share of the cases that they answer."""
        profile = self.profiles[self._known(metric)]
        if isinstance(profile, Inapplicable):
            return {}
        counts = {first.index: first.count for first in profile.firsts}
        return hubs(counts, self.scope.cases, self.scope.classes)

    def about(self, metric: str, subject: Subject) -> Finding:
        """What an explainer of a `subject` should know of its metric; refuses another model or training set."""
        parts = {"model": subject.classifier.fingerprint(), "training set": subject.train.fingerprint()}
        for part, here in parts.items():
            there = self.scope.facts[f"{part} fingerprint"]
            if here != there:
                raise StaleError(
                    f"The audit is of another {part} ({there[:8]}, not {here[:8]}). "
                    "Audit this one: precedents.audit(model, train, test)."
                )
        self._same_logits(subject)
        return Finding(self.hubs(metric), self.failed(metric))

    def _same_logits(self, subject: Subject) -> None:
        """Refuses a model with the same weights that gives other logits; older audits do not know them."""
        then = self.scope.facts.get("logits")
        now = summary(logits(subject.classifier, subject.train)) if then else ""
        if then and not summarised_alike(then, now, tolerance(subject.classifier)):
            raise StaleError(
                "The audit is of a model that gives other logits on the training set, though its weights are "
                "the same. Audit this one: precedents.audit(model, train, test)."
            )

    def called(self, kind: str, place: int) -> str:
        """What a person sees a place of a `kind`, "case" or "train", called: its id, or else the `place`."""
        own = self.ids.get((kind, place), place)
        return shown_id(own) if kind == "train" else clipped(str(own))

    @property
    def _has_hessian(self) -> bool:
        """Whether a metric of the Hessian was not left out."""
        found = (each for each in self.profiles.values() if isinstance(each, Profile))
        return any("hessian" in each.kernel for each in found)

    @property
    def cautions(self) -> list[str]:
        """Sentences about what the criteria do not see."""
        told = []
        best = self.recommendation.metric
        if best is not None and (found := self.hubs(best)):
            index, share = next(iter(found.items()))
            told.append(
                f"Training instance {self.called('train', index)} is the first precedent of {share:.0%} of the "
                "cases: a hub."
            )
        if NO_ROOM in (curvature := self.scope.facts.get("curvature", "")) and self._has_hessian:
            told.append(f"The Hessian is {curvature}: another memory= gives other numbers.")
        if copies := {case for case, _ in self.duplicates}:
            told.append(
                f"{len(copies)} of {self.scope.cases} cases are copies of training instances, "
                "whose precedents say little."
            )
        if failing := [name for name in self.metrics if self.failed(name)]:
            which = "all metrics" if len(failing) == len(self.metrics) else ", ".join(failing)
            told.append(f"Failing at least one criterion: {which}.")
        if self.scope.facts.get("rule") == "paper":
            told.append("Verdicts are by the paper's rule, which does not ask whether the cases are enough.")
        return told

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame, one row per metric and criterion."""
        return self.judgement.to_frame()[COLUMNS]

    def _table(self, costs: bool) -> Table:
        """Metrics by criteria; with `costs`, a column of what explaining one case took."""
        told = {name: rough(seconds) for name, seconds in self.costs.items()} if costs else {}
        beside = {(name, "one case"): Entry(told.get(name, NONE)) for name in self.metrics} if told else {}
        return self.judgement.table(beside)

    def _sentences(self) -> list[str]:
        """Why results are not there, the recommendation, what it costs, and what the criteria do not see."""
        best = self.recommendation
        said = [*best.sentences, *recommended(best.metric, self.costs, roughly=True), *self.cautions]
        return [*self.judgement.reasons, "", *said] if self.judgement.reasons else said

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """The table, with a column of costs where there is room for it, and sentences below."""
        from rich.measure import Measurement
        from rich.text import Text

        tables = self._table(True).compact(), self._table(False).compact()
        wide = Measurement.get(console, options.update(max_width=WIDEST), tables[0]).maximum
        yield tables[0] if wide <= options.max_width else tables[1]
        yield Text("")
        yield from (Text(visible(sentence)) for sentence in self._sentences())

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=StringIO(), width=100, no_color=True)
        console.print(self)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        """What notebooks show: the table, and the recommendation in words."""
        return self._table(True).html() + boxed("\n".join(filter(None, self._sentences())))

    def to_dict(self) -> dict[str, Any]:
        """What was found as plain values, for JSON; nothing in them depends on time."""
        from precedents.audit.json import plain

        return plain(self)

    def to_json(self) -> str:
        """What was found as JSON, valid against `audit/schema.json`; the same audit gives the same bytes."""
        return escaped(json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False))

    @classmethod
    def from_json(cls, text: str) -> "Audit":
        """The audit whose `text` `to_json` wrote; pictures, shares and costs are not kept."""
        from precedents.audit.json import read

        return read(text)

    def report(self, command: str = "", name: str = "") -> "Report":
        """What the report page shows; `command` is what reproduces it, `name` its model's name."""
        from precedents.audit.report import report

        return report(self, command, name)

    def to_html(self, command: str = "", name: str = "") -> str:
        """The report as one self-contained page; `command` is what reproduces it, `name` its model's name."""
        from precedents.views.report import html

        return html(self.report(command, name))

    def _known(self, metric: str) -> str:
        name = metric if metric in self.profiles else name_of(metric_of(metric))
        if name not in self.profiles:
            raise UnknownNameError("metric of this audit", metric, self.metrics)
        return name
