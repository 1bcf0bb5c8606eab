"""How well tracing works, by formula: from the number of people, of attributes, and the noise.

A released mean is the sum of everybody's rows. The inner product of a member's row with it has that member's own
square in it, about one n-th of the squared length of a row; a stranger's has not. That is lost in chance if there are
few attributes for each person, and found if there are many. [HSR08, DSSUV15]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.attacks.populations import Population, coins
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import altair as alt

__all__ = ["TracingPower", "least_deviation", "plot_power", "tracing_power"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracingPower:
    """The law of the centred inner product, nearly normal where there are many attributes."""

    members_mean: float
    members_variance: float
    strangers_variance: float  # their mean is 0

    @property
    def auc(self) -> float:
        """The chance that a member scores higher than a stranger."""
        return _phi(self.members_mean / math.sqrt(self.members_variance + self.strangers_variance))

    @property
    def mu(self) -> float:
        """How many deviations of a stranger's score members are ahead: µ of a Gaussian release that tells as much."""
        return self.members_mean / math.sqrt(self.strangers_variance)

    def tpr(self, fpr: float) -> float:
        """The share of members that is found where a share `fpr` of strangers is accused."""
        from scipy.special import ndtri

        if not 0 < fpr < 1:
            raise InvalidParameter("fpr must be above 0 and below 1")
        threshold = -float(ndtri(fpr)) * math.sqrt(self.strangers_variance)
        return _phi((self.members_mean - threshold) / math.sqrt(self.members_variance))


def tracing_power(people: int, population: Population, *, deviation: float = 0.0) -> TracingPower:
    """Return the law of <x - p, mean - p> for members and strangers.

    Theorem     With v the variance of an attribute and s the deviation of the noise on each count, a stranger's score
                has mean 0 and variance sum v (n v + s^2) / n^2; a member's has mean sum v / n, and of the variance the
                part of their own row is Var (x - p)^2 instead of v^2. [DSSUV15]
    """
    if people < 1 or deviation < 0:
        raise InvalidParameter("people must be at least 1 and the deviation not negative")
    v, one = population.variances, population.variances / population.copies
    # The fourth central moment of a binomial variable of k trials is k w (1 + 3 (k - 2) w), for w = p (1 - p).
    own = v * (1 + 3 * (population.copies - 2) * one) - v**2
    noisy = v * deviation**2
    return TracingPower(
        members_mean=float(v.sum()) / people,
        members_variance=float((own + (people - 1) * v**2 + noisy).sum()) / people**2,
        strangers_variance=float((people * v**2 + noisy).sum()) / people**2,
    )


def least_deviation(people: int, population: Population, *, mu: float) -> float:
    """Return the deviation of noise below which tracing alone refutes a claim of µ-Gaussian privacy.

    Theorem     Members are mu = sum v / sqrt(sum v (n v + s^2)) deviations ahead, so s^2 must be at least
                sum v / mu^2 - n sum v^2 / sum v: for fair coins d / (4 mu^2) - n / 4. Noise on each of d counts cannot
                stay below the order of sqrt(d) / epsilon, which is what the Gaussian mechanism adds. [BUV14]
    """
    if not mu > 0:
        raise InvalidParameter("mu must be positive")
    v = population.variances
    squared = float(v.sum()) / mu**2 - people * float((v**2).sum()) / float(v.sum())
    return math.sqrt(max(0.0, squared))


def plot_power(
    people: int, deviations: Sequence[float] = (0.0,), *, fpr: float = 0.05, most: float = 30.0
) -> alt.LayerChart:
    """Draw the share of members found against the number of attributes for each person, d / n, for some noises."""
    from discreet import plots

    ratios = [most * (step / 60) ** 2 for step in range(1, 61)]
    curves = {
        "exact" if deviation == 0 else f"noise ± {deviation:g}": (
            ratios,
            [tracing_power(people, coins(max(1, round(r * people))), deviation=deviation).tpr(fpr) for r in ratios],
        )
        for deviation in deviations
    }
    up = f"members found, of strangers {100 * fpr:g} % accused"
    return plots.lines(curves, across="attributes for each person, d / n", up=up, title="Tracing a mean")


def _phi(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))
