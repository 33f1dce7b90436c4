"""95% confidence intervals of a mean over cases, right for few cases as well.

Of a rate: Clopper and Pearson's, by the binomial distribution itself: a true rate lies below it, and above it,
with a chance of 2.5% at most, however few the cases. Of a mean between bounds: Student's, and wider by what
kinds of cases that were not met leave open (`student`). For one mean and one spread, the interval of more cases
lies within that of fewer.
"""

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi, sqrt, tan

Interval = tuple[float, float]

Z = 1.96  # two-sided 95%
TAIL = 0.025  # on either side
TINY = 1e-300  # in place of a zero that something is divided by


def exact(successes: float, count: int) -> Interval:
    """Clopper and Pearson's interval of a rate of `successes` in `count`; of no cases, all rates.

    Shares between 0 and 1 may be among the successes: they vary less than successes and failures do.

    >>> [round(end, 3) for end in exact(8, 10)]
    [0.444, 0.975]
    """
    return _least(successes, count), 1 - _least(count - successes, count)


def student(mean: float, std: float, count: int, bounds: Interval = (-1.0, 1.0)) -> Interval:
    """The interval of the mean of values between `bounds`, of which `count` were seen with this mean and std.

    Cases like those that were seen have Student's interval, mean ± t std / sqrt(count - 1). Values that are all
    alike have no spread and yet prove little: a kind of case that none of them is may be a share of up to
    1 - 0.025^(1 / count) of all, and have any value. The interval is that of both kinds together.

    >>> [round(end, 3) for end in student(0.0, 0.1, 50)], [round(end, 3) for end in student(1.0, 0.0, 50)]
    ([-0.098, 0.098], [0.858, 1.0])
    """
    least, most = bounds
    if count < 2:
        return bounds
    half, unmet = student_quantile(count - 1) * std / sqrt(count - 1), 1 - TAIL ** (1 / count)
    low, high = max(least, mean - half), min(most, mean + half)
    return low - unmet * (low - least), high + unmet * (most - high)


def wilson(successes: float, count: int) -> Interval:
    """Wilson's 95% interval of a rate of `successes` in `count`; too narrow for few cases near 0 and 1.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, z2 = successes / count, Z * Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z * (share * (1 - share) / count + z2 / (4 * count**2)) ** 0.5 / (1 + z2 / count)
    low = 0.0 if successes == 0 else min(share, middle - half)
    high = 1.0 if successes == count else max(share, middle + half)
    return max(0.0, low), min(1.0, high)


def student_quantile(freedom: int) -> float:
    """The 97.5% quantile of Student's distribution with so many degrees of freedom.

    In closed form for one and two; beyond by the expansion around the normal quantile, to one in 800.

    >>> [round(student_quantile(freedom), 2) for freedom in (1, 2, 3, 10, 1000)]
    [12.71, 4.3, 3.18, 2.23, 1.96]
    """
    if freedom == 1:
        return tan(pi * (0.5 - TAIL))
    if freedom == 2:
        return (1 - 2 * TAIL) * sqrt(2 / (1 - (1 - 2 * TAIL) ** 2))
    z, z3, z5, z7, z9 = (1.959964**power for power in (1, 3, 5, 7, 9))
    terms = (
        (z3 + z) / 4,
        (5 * z5 + 16 * z3 + 3 * z) / 96,
        (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384,
        (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


@lru_cache(maxsize=4096)
def _least(successes: float, count: int) -> float:
    """The rate at which so many successes or more have a chance of 2.5%: a quantile of a Beta distribution."""
    if successes < 0.05:  # of shares: below 1e-30
        return 0.0
    a, b = successes, count - successes + 1
    below, above, rate = 0.0, 1.0, successes / (count + 1)
    for _ in range(100):
        over = _beta(rate, a, b) - TAIL
        below, above = (below, rate) if over > 0 else (rate, above)
        newton = rate - over / max(_density(rate, a, b), TINY)
        step = newton if below < newton < above else (below + above) / 2
        if abs(step - rate) < 1e-13:
            break
        rate = step
    return rate


def _density(x: float, a: float, b: float) -> float:
    """Of the Beta distribution."""
    return exp(lgamma(a + b) - lgamma(a) - lgamma(b) + (a - 1) * log(x) + (b - 1) * log1p(-x))


def _beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, from the side on which its continued fraction is short."""
    front = x * (1 - x) * _density(x, a, b)
    if x < (a + 1) / (a + b + 2):
        return front / (a * _fraction(x, a, b))
    return 1 - front / (b * _fraction(1 - x, b, a))


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)) of the incomplete beta function, by Lentz's method."""
    value, numerator, denominator = 1.0, 1.0, 0.0
    for i in range(1, 100_000):
        m = i // 2
        if i % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / (1 + term * denominator or TINY)
        numerator = 1 + term / numerator or TINY
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return value
