"""What minima with a random slope and noisy sums spend together, and how much noise a budget needs.

Let each of m problems be solved with a slope b ~ N(0, sigma^2) added to its loss (`ObjectivePerturbation`), and let
other releases add Gaussian noise to bounded sums. The noise of any of them may depend on everything released before.

**One problem, one more row.** The minimum theta determines b, so the density of theta is that of b times a Jacobian.
The row adds to the gradient the vector t u, where u is a fixed direction (that of the row, its sign given by the
label) and t lies between 0 and 1 and depends on theta. It adds a matrix of rank one to the second derivative, which
is at least `ridge`, and so multiplies the Jacobian by a number between 1 and 1 + steepest / ridge. Under the data
whose law is drawn from, X = b u / sigma is a standard normal variable, and the logarithm of the ratio of the
densities is at most

    kappa + t^2 / (2 sigma^2) + t X / sigma,    kappa = log(1 + steepest / ridge),

in one direction, and the same without kappa in the other. It is convex in t: at most its value at t = 0 or at t = 1,
that is kappa, or kappa plus the loss of a Gaussian release with mu = 1 / sigma. Where the row is replaced, two
numbers t and t' in a square take part, with corners at which the gradient moves by 0, 1, 1 and at most 2.

**All together.** Conditionally on what was released before, each further release has such a bound, with a normal
variable that is independent of the past. So the loss of all is at most m kappa plus the largest of several Gaussian
losses, one for each choice of corners, whose squares of mu add up; and the part of the probability above e^epsilon is
at most the sum of theirs:

    delta(epsilon) <= sum over corners of delta_Gauss(epsilon - m kappa; mu^2 = of the sums + of the corners).

One corner dominates by far: everything costs hardly more than Gaussian noise of the same size on one gradient.
[KST12, RKW23, DRS22] have the parts; the corners are derived here, and compared with numbers on small worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, final

from discreet.balls import bounds
from discreet.errors import InvalidParameter
from discreet.exact import nonnegative, positive, positive_integer
from discreet.learn.convex.logistic_gradient import STEEPEST
from discreet.mechanisms.parameters import read_relation, read_share, settle
from discreet.privacy import events
from discreet.privacy.gaussian import gaussian_sigma, profile
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Calibration", "delta_bound", "ridge_for"]

_HALVINGS = 24
_COARSE = 1 << 40  # Of fractions that only set the size of noise.


def delta_bound(
    epsilon: Fraction, *, kappa: Fraction, sums: Fraction, each: Fraction, problems: int, relation: Relation
) -> Fraction:
    """Return a delta that all releases together keep at `epsilon`, rounded up.

    `sums` is the total mu^2 of the noisy sums, under the relation; `each` is 1 / sigma^2 of each problem, and `kappa`
    what its Jacobian costs.
    """
    left = epsilon - problems * kappa
    if left <= 0:
        return Fraction(1)
    total: arb | int = 0
    for weight, squares in _corners(problems, relation):
        mu_squared = sums + squares * each
        if mu_squared:
            total += weight * profile(mu_squared, left)
    return Fraction(0) if isinstance(total, int) else min(bounds(total)[1], Fraction(1))


def _corners(problems: int, relation: Relation) -> list[tuple[int, int]]:
    """List how many choices of corners there are, by the sum of squares of what they move."""
    if relation is Relation.ADD_REMOVE:
        return [(comb(problems, moved), moved) for moved in range(problems + 1)]
    return [
        (comb(problems, once) * comb(problems - once, twice) << once, once + 4 * twice)
        for once in range(problems + 1)
        for twice in range(problems - once + 1)
    ]


def ridge_for(kappa: Fraction) -> Fraction:
    """Return a ridge for which log(1 + steepest / ridge) <= kappa, exactly: e^k - 1 >= k + k^2 / 2."""
    return STEEPEST / (kappa + kappa**2 / 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Divide (epsilon, delta) between minima with random slopes, their Jacobians, and noisy sums.

    Guarantee   `event`, whatever the order of the releases, as long as their mu^2 stay within `sums` and `each`.
    Theorem     See this file.
    Utility     `each` is what one Gaussian sum of the same share would have, less a part in a thousand.
    """

    epsilon: Fraction
    delta: Fraction
    relation: Relation
    problems: int = 1
    jacobian_share: Fraction = Fraction(1, 10)  # of epsilon
    sums_share: Fraction = Fraction(1, 4)  # of the rest, in squares of mu

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=positive(self.delta, name="delta"),
            problems=positive_integer(self.problems, name="problems"),
            jacobian_share=read_share(self.jacobian_share, name="jacobian_share"),
            sums_share=nonnegative(self.sums_share, name="sums_share"),
        )
        if self.delta >= 1 or self.sums_share >= 1:
            raise InvalidParameter("delta and sums_share must be below 1")

    @property
    def event(self) -> events.ApproxDP:
        return events.ApproxDP(epsilon=self.epsilon, delta=self.delta)

    @property
    def kappa(self) -> Fraction:
        """What the Jacobian of each problem may cost."""
        return self.epsilon * self.jacobian_share / self.problems

    @property
    def ridge(self) -> Fraction:
        """The least ridge of each problem."""
        return ridge_for(self.kappa)

    @property
    def mu_squared(self) -> Fraction:
        """Of everything together, as if it were Gaussian."""
        return _total(self)

    @property
    def sums(self) -> Fraction:
        """The mu^2 that noisy sums may spend together."""
        return self.sums_share * self.mu_squared

    @property
    def each(self) -> Fraction:
        """1 / sigma^2 of each problem."""
        farthest = 1 if self.relation is Relation.ADD_REMOVE else 4
        return (1 - self.sums_share) * self.mu_squared / (farthest * self.problems)

    def holds(self, mu_squared: Fraction) -> bool:
        """Tell whether so large a mu^2 keeps the promise."""
        farthest = 1 if self.relation is Relation.ADD_REMOVE else 4
        return (
            delta_bound(
                self.epsilon,
                kappa=self.kappa,
                sums=self.sums_share * mu_squared,
                each=(1 - self.sums_share) * mu_squared / (farthest * self.problems),
                problems=self.problems,
                relation=self.relation,
            )
            <= self.delta
        )


@lru_cache(256)
def _total(calibration: Calibration) -> Fraction:
    """Find the largest mu^2, from below: the dominant corner alone gives a bound from above."""
    left = calibration.epsilon * (1 - calibration.jacobian_share)
    most = 1 / Fraction(gaussian_sigma(left, calibration.delta)) ** 2
    low, high = 0, 1 << _HALVINGS
    while high - low > 1:
        middle = (low + high) // 2
        found = (most * Fraction(middle, 1 << _HALVINGS)).limit_denominator(_COARSE**2)
        low, high = (middle, high) if calibration.holds(found) else (low, middle)
    if not low:
        raise InvalidParameter("epsilon and delta are too small for this method: no noise is large enough")
    return (most * Fraction(low, 1 << _HALVINGS)).limit_denominator(_COARSE**2)
