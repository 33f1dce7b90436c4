"""Where a verdict is decided: the rules by which a success rate and a rank correlation pass, are weak or fail.

A rate, of which more is better, passes at the demand of its criterion (0.95) if its 95% interval lies above
chance. It fails below one half, and below the demand where its interval reaches down to chance. Between, it is
weak; and so is a rate at the demand over so few cases that chance is not excluded: they do not decide.

A correlation, of which zero is best, fails above the limit of its criterion (0.7, which reproduces the paper's
overview). It passes where its distance from zero is within what independent ranks show by chance, and is weak
between.
"""

from typing import Literal

Verdict = Literal["passed", "weak", "failed"]


def of_rate(mean: float, low: float, chance: float, demand: float) -> Verdict:
    """The verdict on a success rate.

    `low` is the lower end of its 95% interval, `chance` the rate of a metric that ranks at random, and
    `demand` the rate at which a metric passes.

    >>> of_rate(0.99, low=0.95, chance=0.1, demand=0.95), of_rate(0.99, low=0.05, chance=0.1, demand=0.95)
    ('passed', 'weak')
    >>> of_rate(0.8, low=0.7, chance=0.1, demand=0.95), of_rate(0.4, low=0.3, chance=0.1, demand=0.95)
    ('weak', 'failed')
    """
    if mean >= demand:
        return "passed" if low > chance else "weak"
    return "failed" if mean < 0.5 or low <= chance else "weak"


def of_correlation(mean: float, null: float, fail: float) -> Verdict:
    """The verdict on a mean rank correlation with the ranks under a random model.

    `null` is half the 95% interval of independent ranks around zero, `fail` the correlation above which a
    metric fails.

    >>> [of_correlation(mean, null=0.1, fail=0.7) for mean in (-0.05, 0.3, 0.9)]
    ['passed', 'weak', 'failed']
    """
    if mean > fail:
        return "failed"
    return "passed" if abs(mean) <= null else "weak"
