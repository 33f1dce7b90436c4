"""Where a verdict (passed, weak, failed, undecided) is decided, by one of two rules.

`interval`, unless another is named: a verdict is earned. What a rate or a correlation would deserve if it were
known follows from thresholds that are plain numbers (`rate_deserves`, `correlation_deserves`). A verdict is
earned when every value within the 95% interval of the mean deserves it; otherwise the cases do not decide, and
how many of them would is computed. Fewer cases of the same mean and spread have a wider interval before the
same thresholds, so less evidence never makes a verdict better.

`paper`: the rule that reproduces the paper's overview, by the mean alone (`rate_by_paper`,
`correlation_by_paper`). Its thresholds for correlations widen as the cases become fewer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from precedents.criteria._interval import Interval
from precedents.errors import UnknownNameError

Verdict = Literal["passed", "weak", "failed", "undecided"]
VerdictRule = Literal["interval", "paper"]
Deserves = Callable[[float], Verdict]

RANKS: tuple[Verdict, ...] = ("failed", "weak", "passed")  # worst first
HALF = 0.5  # a metric fails that succeeds less often
MOST = 10**6  # cases that are thought of


def checked_rule(name: str) -> VerdictRule:
    """The rule of this name; another is refused.

    >>> checked_rule("paper")
    'paper'
    """
    for rule in get_args(VerdictRule):
        if name == rule:
            return rule
    raise UnknownNameError("rule of verdicts", str(name), get_args(VerdictRule))


def rate_deserves(rate: float, chance: float, demand: float) -> Verdict:
    """What a known success rate deserves.

    It passes from the `demand` on, above `chance`; it fails below one half and where a metric that ranks at
    random (with the rate `chance`) is as good, unless no metric can be better.

    >>> [rate_deserves(rate, chance=0.6, demand=0.95) for rate in (0.95, 0.94, 0.6)]
    ['passed', 'weak', 'failed']
    """
    if rate <= chance and rate < 1:
        return "failed"
    if rate >= demand:
        return "passed"
    return "weak" if rate >= HALF else "failed"


def correlation_deserves(correlation: float, near: float, fail: float) -> Verdict:
    """What a known correlation deserves, of which zero is best: passes within `near`, fails above `fail`.

    >>> [correlation_deserves(value, near=0.1, fail=0.7) for value in (-0.1, 0.11, 0.71)]
    ['passed', 'weak', 'failed']
    """
    if correlation > fail:
        return "failed"
    return "passed" if abs(correlation) <= near else "weak"


def rate_by_paper(mean: float, low: float, chance: float, demand: float) -> Verdict:
    """The verdict on a success rate by the rule `paper`.

    `low` is the lower end of Wilson's 95% interval, `chance` the rate of a metric that ranks at random, and
    `demand` the rate at which a metric passes.

    >>> rate_by_paper(0.99, low=0.95, chance=0.1, demand=0.95), rate_by_paper(0.4, 0.3, 0.1, 0.95)
    ('passed', 'failed')
    """
    if mean >= demand:
        return "passed" if low > chance else "weak"
    return "failed" if mean < HALF or low <= chance else "weak"


def correlation_by_paper(mean: float, null: float, fail: float) -> Verdict:
    """The verdict on a mean rank correlation with the ranks under a random model, by the rule `paper`.

    `null` is half the 95% interval of independent ranks around zero, `fail` the correlation above which a
    metric fails.

    >>> [correlation_by_paper(mean, null=0.1, fail=0.7) for mean in (-0.05, 0.3, 0.9)]
    ['passed', 'weak', 'failed']
    """
    if mean > fail:
        return "failed"
    return "passed" if abs(mean) <= null else "weak"


@dataclass(frozen=True)
class Decision:
    """A verdict; of one that is undecided, what is open and how many cases would decide."""

    verdict: Verdict
    between: tuple[Verdict, ...] = ()  # what the interval leaves open, worst first
    enough: int | None = None  # the least number of cases that would do; none if a million would not

    @classmethod
    def of(
        cls, interval: Callable[[int], Interval], count: int, deserves: Deserves, null: float = 0.0
    ) -> "Decision":
        """What `count` cases decide, whose mean and spread would have this `interval` over any number of them.

        `deserves` is the verdict on a known value. A value within `null` of zero is not told from zero. One
        case decides nothing.

        >>> from precedents.criteria._interval import exact
        >>> passing = lambda rate: rate_deserves(rate, chance=0.1, demand=0.95)
        >>> Decision.of(lambda count: exact(count, count), 20, passing)
        Decision(verdict='undecided', between=('weak', 'passed'), enough=72)
        """

        def open_at(number: int) -> tuple[Verdict, ...]:
            return _touched(interval(number), deserves, null)

        found = open_at(count)
        if count > 1 and len(found) == 1:
            return cls(found[0])
        return cls("undecided", RANKS if count < 2 else found, _enough(open_at, max(count, 1)))


def _touched(interval: Interval, deserves: Deserves, null: float) -> tuple[Verdict, ...]:
    """The verdicts that an interval leaves open, worst first: from its ends and what is nearest to zero."""
    low, high = interval
    nearest = 0.0 if low <= null and high >= -null else min(low, high, key=abs)
    places = [RANKS.index(deserves(value)) for value in (low, high, nearest)]
    return RANKS[min(places) : max(places) + 1]


def _enough(open_at: Callable[[int], tuple[Verdict, ...]], count: int) -> int | None:
    """The least number above `count` at which one verdict is left; more cases leave no more of them open."""
    below, above = count, 2 * count
    while len(open_at(above)) > 1:
        if above >= MOST:
            return None
        below, above = above, min(2 * above, MOST)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if len(open_at(middle)) == 1 else (middle, above)
    return above
