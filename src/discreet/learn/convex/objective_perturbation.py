"""Objective perturbation: a random linear term is added to the loss, and the minimum is certified exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, isqrt
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.balls import bounds
from discreet.errors import InvalidParameter
from discreet.exact import nonnegative, positive, positive_integer
from discreet.learn.convex.logistic_gradient import FINE, LARGEST, STEEPEST, WEIGHT
from discreet.mechanisms.parameters import read_share, settle
from discreet.noise.limits import check_noise_variance, finest_radius
from discreet.privacy import events
from discreet.privacy.gaussian import gaussian_sigma, profile
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "LOGISTIC_ROW",
    "Calibration",
    "LogisticProblem",
    "Losses",
    "ObjectivePerturbation",
    "RowLoss",
    "delta_bound",
    "minimum",
    "ridge_for",
]


class Losses(Protocol):
    """The losses of private rows, as a search for their minimum sees them."""

    def gradient(self, place: list[int], fine: int) -> tuple[int, ...]:
        """Return the gradient at place * 2^-fine, in units of 2^-(fine + 62)."""

    def doubt(self, fine: int) -> int:
        """Return how far, in l2, that may be from the gradient that the proof is about, in the same units."""

    def curvature(self, place: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return about the second derivative at place * 2^-42."""

    def smooth(self, place: NDArray[np.float64]) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return about the loss and its first and second derivatives."""


# --- objective ---
# Objective perturbation: a random slope is added to the loss, and the minimum is told, nearly exactly.


_RIDGES = (Fraction(1, 1 << 20), Fraction(1 << 30))
_FINEST = 60  # Bits of the slope's step.
_PREPARED = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation:
    """Release the minimum of sum l(x theta, y) + ridge |theta|^2 / 2 + b theta, with b ~ N(0, 1 / mu_squared).

    Rows are whole numbers in the unit ball; l is the logistic loss or that of Poisson, made of straight pieces, or the
    loss of softmax, for which theta has coefficients of each class.

    Guarantee   of the ideal minimum, what `Calibration` says for the `RowLoss` of these rows, if `mu_squared` is its
                `slope_mu_squared` and `ridge` at least its ridge; of what is told about where the search ended,
                Gaussian privacy with mu^2 = `output_mu_squared`, which counts among the sums.
    Theorem     Let b be continuous; the slope that is drawn is b rounded to a public grid, exactly. The gradient of the
                loss with that slope is at most `tolerance` long where the search ended, in exact arithmetic or with
                what it may be off added to it. The loss is convex with the ridge, so the end is at most `reach` from
                the ideal minimum, whatever the search did. Given the ideal minimum, the ends of two searches are
                therefore at most 2 `reach` apart, and Gaussian noise for that distance hides which of them it was.
                [INS19, KST12]
    Utility     the error of the minimum is that of one noisy gradient over the second derivative; the noise on the
                end is smaller by orders.
    """

    dimension: int
    mu_squared: Fraction  # 1 / variance of the slope, in units of the longest row
    ridge: Fraction  # in units of the squared longest row
    output_mu_squared: Fraction
    rows: int = _PREPARED  # how many rows are prepared for: more make the search slow, not wrong
    steepest: Fraction = STEEPEST  # second derivative of one row, in any direction
    row_doubt: Fraction = Fraction(0)  # how far the gradient of one row may be from what is computed

    def __post_init__(self) -> None:
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            ridge=positive(self.ridge, name="ridge"),
            output_mu_squared=positive(self.output_mu_squared, name="output_mu_squared"),
            rows=positive_integer(self.rows, name="rows"),
        )
        if not _RIDGES[0] <= self.ridge <= _RIDGES[1]:
            raise InvalidParameter("the ridge must lie between 2^-20 and 2^30, in units of the squared longest row")
        check_noise_variance(self.slope_variance)
        check_noise_variance(self.output_variance)

    @property
    def ridge_units(self) -> int:
        """The ridge in units of 2^-42, rounded up."""
        return -int(-self.ridge * (1 << FINE) // 1)

    @property
    def tolerance(self) -> Fraction:
        """How long the gradient may be where the search ends: twice what the nearest point of the grid may have.

        What the computed gradient may be off counts twice: at that point, and in its certificate.
        """
        root = Fraction(isqrt(self.dimension << 20) + 1, 1 << 10)
        return (self.rows * self.steepest + self.ridge) * root / (1 << FINE) + 2 * self.rows * self.row_doubt

    @property
    def bits(self) -> int:
        """The slope is a multiple of 2^-bits: rounding moves it by half the tolerance, or more if noise is too wide."""
        step = self.tolerance / (isqrt(self.dimension) + 1)
        finest = finest_radius(self.mu_squared, power=2, most=1 << _FINEST, least=2).bit_length() - 1
        return min(max(int(1 / step).bit_length(), 1), finest)

    @property
    def reach(self) -> Fraction:
        """How far the end of the search may be from the ideal minimum."""
        rounding = Fraction(isqrt(self.dimension) + 1, 1 << (self.bits + 1))
        return (self.tolerance + rounding) / Fraction(self.ridge_units, 1 << FINE)

    @property
    def slope_variance(self) -> Fraction:
        """In squared steps of 2^-bits."""
        return (1 << (2 * self.bits)) / self.mu_squared

    @property
    def output_variance(self) -> Fraction:
        """In squared steps of 2^-42; two ends of a search are at most twice the reach apart, rounded to a step each."""
        apart = 2 * self.reach * (1 << FINE) + isqrt(self.dimension) + 1
        return apart**2 / self.output_mu_squared

    def release(self, data: Losses) -> tuple[Fraction, ...]:
        """Draw a slope, search, and tell the end of the search with noise."""
        slope = noise.rounded_gaussian(size=self.dimension, variance=self.slope_variance)
        place = self.search(data, slope.tolist())
        drawn = noise.rounded_gaussian(size=self.dimension, variance=self.output_variance)
        return tuple(Fraction(at + extra, 1 << FINE) for at, extra in zip(place, drawn.tolist(), strict=True))

    def search(self, data: Losses, slope: list[int]) -> list[int]:
        """Return where the search ends for a slope, in steps of 2^-42. This is private."""
        allowed = int(self.tolerance * (1 << UNIT))
        whole = tuple(part << (UNIT - self.bits) for part in slope)
        place, fine = minimum(LogisticProblem(ridge=self.ridge_units, slope=whole, tolerance=allowed), data)
        return [round(Fraction(at, 1 << (fine - FINE))) for at in place]


# --- minimum ---
# The minimum of a sum of logistic losses plus a ridge and a slope, with a certificate in whole numbers.


Floats: TypeAlias = NDArray[np.float64]

UNIT: Final = 2 * FINE + WEIGHT  # Gradients are whole numbers of 2^-104.
_STEPS: Final = 100
_FINER: Final = 20  # Bits.
_SHARE: Final = 32  # Bits of a share of a move.
_ONE: Final = 1 << _SHARE
_HALVINGS: Final = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticProblem:
    """sum of losses + ridge |theta|^2 / 2 + slope theta, with numbers that are exact."""

    ridge: int  # in units of 2^-42
    slope: tuple[int, ...]  # in units of 2^-104
    tolerance: int  # l2 norm of the gradient, in units of 2^-104

    def derivative(self, data: Losses, place: list[int], fine: int = FINE) -> list[int]:
        """Return the gradient of the whole at place * 2^-fine, in units of 2^-(fine + 62). This is private."""
        losses, shift = data.gradient(place, fine), fine - FINE
        return [
            loss + (self.ridge * at << WEIGHT) + (slope << shift)
            for loss, at, slope in zip(losses, place, self.slope, strict=True)
        ]

    def certifies(self, derivative: list[int], fine: int = FINE, doubt: int = 0) -> bool:
        """Tell whether a gradient that may be off by `doubt` is no longer than the tolerance, whatever it is."""
        allowed = (self.tolerance << (fine - FINE)) - doubt
        return allowed >= 0 and sum(part * part for part in derivative) <= allowed**2


def minimum(problem: LogisticProblem, data: Losses) -> tuple[list[int], int]:
    """Return coefficients and the bits of their step, where the exact gradient is no longer than the tolerance.

    Floats only propose; each proposal is judged by the exact gradient. If the step of 2^-42 is too coarse, as it is for
    more rows than were prepared for, the same is done with finer ones and slower numbers.

    It always ends, and never in an error, which would tell of the rows: the loss falls with every move, and along
    Newton's direction on a convex loss with a ridge that leads to the minimum.
    """
    place, fine = [round(float(value) * 2.0**FINE) for value in _by_floats(problem, data)], FINE
    while True:
        for _ in range(_STEPS):
            derivative = problem.derivative(data, place, fine)
            if problem.certifies(derivative, fine, data.doubt(fine)):
                return place, fine
            before, place = place, _nearer(problem, data, place, derivative, fine)
            if place == before:
                break
        place, fine = [at << _FINER for at in place], fine + _FINER


def _nearer(problem: LogisticProblem, data: Losses, place: list[int], derivative: list[int], fine: int) -> list[int]:
    """Go along Newton's direction until the loss, on that line, falls at most half as steeply, and not beyond its end.

    The curve has pieces, some of them flat, and on the next one the second derivative may be many times that of this
    one or none at all: a full step may go too far or not far enough, over and over.
    """
    size = np.array([float(part) * 2.0 ** (FINE - UNIT - fine) for part in derivative])
    move = np.linalg.solve(_curvature(problem, data, [at >> (fine - FINE) for at in place]), size)
    way = [-round(float(part) * 2.0**fine) for part in move]
    steepness = -sum(a * b for a, b in zip(derivative, way, strict=True))
    high: int | None = None
    low, share, reached = 0, _ONE, place
    for _ in range(_HALVINGS):
        point = [at + (part * share >> _SHARE) for at, part in zip(place, way, strict=True)]
        there = problem.derivative(data, point, fine)
        rise = sum(a * b for a, b in zip(there, way, strict=True))
        if problem.certifies(there, fine, data.doubt(fine)) or -steepness <= 2 * rise <= 0:
            return point
        if rise < 0:
            low, reached = share, point
        else:
            high = share
        share = 2 * share if high is None else (low + high) // 2
    return reached


def _curvature(problem: LogisticProblem, data: Losses, place: list[int]) -> Floats:
    """Return the second derivative of the whole, in floats. This is private."""
    near = np.array([min(max(at, -LARGEST), LARGEST) for at in place], dtype=np.int64)
    return data.curvature(near) + problem.ridge * 2.0**-FINE * np.eye(len(place))


def _by_floats(problem: LogisticProblem, data: Losses) -> Floats:
    """Take Newton steps on the smooth loss, shortened until it falls."""
    ridge = problem.ridge * 2.0**-FINE
    slope = np.array([float(part) for part in problem.slope]) * 2.0**-UNIT
    place = np.zeros(len(slope))

    def look(at: Floats) -> tuple[float, Floats, Floats]:
        value, down, curvature = data.smooth(at)
        whole = value + ridge * float(at @ at) / 2 + float(slope @ at)
        return whole, down + ridge * at + slope, curvature + ridge * np.eye(len(at))

    value, down, curvature = look(place)
    for _ in range(_STEPS):
        move = np.linalg.solve(curvature, down)
        gain, length = float(down @ move), 1.0
        if gain <= 1e-13 * (1 + abs(value)):
            break
        there = look(place - move)
        while length > 1e-6 and there[0] > value - length * gain / 4:
            length /= 2
            there = look(place - length * move)
        place, (value, down, curvature) = place - length * move, there
    return place


# --- calibration: What minima with a random slope and noisy sums spend together, and how much noise a budget needs. ---
#
# Let each of m problems be solved with a slope b ~ N(0, sigma^2) added to its loss (`ObjectivePerturbation`), and let
# other releases add Gaussian noise to bounded sums. The noise of any of them may depend on everything released before.
#
# **One problem, one more row.** The minimum theta determines b, so the density of theta is that of b times a Jacobian.
# The row adds to the gradient the vector t u, where u is a fixed direction (that of the row, its sign given by the
# label) and t lies between 0 and 1 and depends on theta. It adds a matrix of rank one to the second derivative, which
# is at least `ridge`, and so multiplies the Jacobian by a number between 1 and 1 + steepest / ridge. Under the data
# whose law is drawn from, X = b u / sigma is a standard normal variable, and the logarithm of the ratio of the
# densities is at most
#
#     kappa + t^2 / (2 sigma^2) + t X / sigma,    kappa = log(1 + steepest / ridge),
#
# in one direction, and the same without kappa in the other. It is convex in t: at most its value at t = 0 or at t = 1,
# that is kappa, or kappa plus the loss of a Gaussian release with mu = 1 / sigma. Where the row is replaced, two
# numbers t and t' in a square take part, with corners at which the gradient moves by 0, 1, 1 and at most 2.
#
# **All together.** Conditionally on what was released before, each further release has such a bound, with a normal
# variable that is independent of the past. So the loss of all is at most m kappa plus the largest of several Gaussian
# losses, one for each choice of corners, whose squares of mu add up; and the part of the probability above e^epsilon is
# at most the sum of theirs:
#
#     delta(epsilon) <= sum over corners of delta_Gauss(epsilon - m kappa; mu^2 = of the sums + of the corners).
#
# One corner dominates by far: everything costs hardly more than Gaussian noise of the same size on one gradient.
#
# **One person more, with several rows.** A person fills k slots, each of which weighs 1 / k: their loss is the mean
# over these. It adds to the gradient the sum of t_i u_i / k, each t_i between 0 and 1 and each u_i fixed as above: a
# point of a zonotope, whose corners are the subsets of the slots, and the corner of j slots is at most j / k long. The
# loss is convex in that point, so the same bound holds with comb(k, j) corners that move the gradient by j / k. To the
# second derivative it adds a positive matrix of rank k, not one, but of trace at most `steepest`: its r eigenvalues,
# next to the ridge, multiply the Jacobian by at most (1 + steepest / (r ridge))^r < exp(steepest / ridge), by the
# inequality of arithmetic and geometric means. So kappa = steepest / ridge, whatever k is.
#
# **More than one number a row.** A loss may depend on several margins: that of softmax on one for each class. Let the
# gradient of a row lie in a polytope with the corner zero and `ends` others, each at most `squared_length` long when
# squared; which polytope it is, the row fixes. The loss is convex in the point of it, so there is one Gaussian loss for
# each corner: j slots that move have ends^j choices. Let the second derivative of a row have at most `rank` eigenvalues
# and the trace `trace`: as above, it multiplies the Jacobian by at most (1 + trace / (rank ridge))^rank.
#
# [KST12, RKW23, DRS22] have the parts; the corners are derived here, and compared with numbers on small worlds.


_SCALE_HALVINGS = 24
_COARSE = 1 << 40  # Of fractions that only set the size of noise.
_DIFFERENT = 1 << 9  # Squares of corners that are told apart.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowLoss:
    """What is known of the loss of every row: where its gradient lies, and how curved it is. All of it is public."""

    ends: int = 1  # corners of the polytope of gradients, but for zero
    squared_length: int = 1  # of each corner, at most, in units of the squared longest row
    rank: int = 1  # eigenvalues of the second derivative, at most
    trace: Fraction = STEEPEST  # of these, at most

    def __post_init__(self) -> None:
        for name in ("ends", "squared_length", "rank"):
            settle(self, **{name: positive_integer(getattr(self, name), name=name)})
        settle(self, trace=positive(self.trace, name="trace"))


LOGISTIC_ROW: Final = RowLoss()


def delta_bound(
    epsilon: Fraction,
    *,
    kappa: Fraction,
    sums: Fraction,
    each: Fraction,
    problems: int,
    relation: Relation,
    slots: int = 1,
    ends: int = 1,
) -> Fraction:
    """Return a delta that all releases together keep at `epsilon`, rounded up.

    `sums` is the total mu^2 of the noisy sums, under the relation; `each` is the squared length of the longest gradient
    over sigma^2, of each problem, and `kappa` what its Jacobian costs. Gradients have so many corners, or `ends`,
    beside zero. One row is added, or one person that fills so many `slots`, of which each weighs 1 / slots.
    """
    left = epsilon - problems * kappa
    if left <= 0:
        return Fraction(1)
    total: arb | int = 0
    one = slots == 1
    for weight, squares in (
        _corners(problems, relation, ends) if one else _unit_corners(problems, relation, slots, ends)
    ):
        mu_squared = sums + squares * each
        if mu_squared:
            total += weight * profile(mu_squared, left)
    return Fraction(0) if isinstance(total, int) else min(bounds(total)[1], Fraction(1))


def _corners(problems: int, relation: Relation, ends: int) -> list[tuple[int, Fraction]]:
    """List how many choices of corners there are, by the sum of squares of what they move."""
    if relation is Relation.ADD_REMOVE:
        return [(comb(problems, moved) * ends**moved, Fraction(moved)) for moved in range(problems + 1)]
    return [
        (
            comb(problems, once) * comb(problems - once, twice) * (2 * ends) ** once * ends ** (2 * twice),
            Fraction(once + 4 * twice),
        )
        for once in range(problems + 1)
        for twice in range(problems - once + 1)
    ]


def _unit_corners(problems: int, relation: Relation, slots: int, ends: int) -> list[tuple[int, Fraction]]:
    """List the same for one person that fills slots, with squares rounded up to so many different ones."""
    if relation is not Relation.ADD_REMOVE:
        raise InvalidParameter("people with several rows are protected under add-remove")
    found = {0: 1}
    for _ in range(problems):
        wider: dict[int, int] = {}
        for (squares, weight), moved in product(found.items(), range(slots + 1)):
            total = squares + moved**2
            wider[total] = wider.get(total, 0) + weight * comb(slots, moved) * ends**moved
        found = wider
    step = -(-problems * slots**2 // _DIFFERENT)
    rounded: dict[int, int] = {}
    for squares, weight in found.items():
        up = -(-squares // step) * step
        rounded[up] = rounded.get(up, 0) + weight
    return [(weight, Fraction(squares, slots**2)) for squares, weight in rounded.items()]


def ridge_for(kappa: Fraction, slots: int = 1, loss: RowLoss = LOGISTIC_ROW) -> Fraction:
    """Return a ridge for which the Jacobian costs at most kappa, exactly.

    For one row rank log(1 + trace / (rank ridge)) <= kappa: e^k - 1 >= k + k^2 / 2 for k = kappa / rank. For a person,
    of any rank, trace / ridge <= kappa.
    """
    each = kappa / loss.rank
    return loss.trace / (loss.rank * (each + each**2 / 2) if slots == 1 else kappa)


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
    slots: int = 1  # that one person fills with rows, of which each weighs 1 / slots
    loss: RowLoss = LOGISTIC_ROW

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=positive(self.delta, name="delta"),
            problems=positive_integer(self.problems, name="problems"),
            jacobian_share=read_share(self.jacobian_share, name="jacobian_share"),
            sums_share=nonnegative(self.sums_share, name="sums_share"),
            slots=positive_integer(self.slots, name="slots"),
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
        return ridge_for(self.kappa, self.slots, self.loss)

    @property
    def mu_squared(self) -> Fraction:
        """Of everything together, as if it were Gaussian."""
        return _total(self)

    @property
    def sums(self) -> Fraction:
        """The mu^2 that noisy sums may spend together."""
        return self.sums_share * self.mu_squared

    @property
    def slope_mu_squared(self) -> Fraction:
        """1 / sigma^2 of each problem, in units of the longest row."""
        return self.each / self.loss.squared_length

    @property
    def each(self) -> Fraction:
        """The squared length of the longest gradient over sigma^2, of each problem."""
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
                slots=self.slots,
                ends=self.loss.ends,
            )
            <= self.delta
        )


@lru_cache(256)
def _total(calibration: Calibration) -> Fraction:
    """Find the largest mu^2, from below: the dominant corner alone gives a bound from above."""
    left = calibration.epsilon * (1 - calibration.jacobian_share)
    most = 1 / Fraction(gaussian_sigma(left, calibration.delta)) ** 2
    low, high = 0, 1 << _SCALE_HALVINGS
    while high - low > 1:
        middle = (low + high) // 2
        found = (most * Fraction(middle, 1 << _SCALE_HALVINGS)).limit_denominator(_COARSE**2)
        low, high = (middle, high) if calibration.holds(found) else (low, middle)
    if not low:
        raise InvalidParameter("epsilon and delta are too small for this method: no noise is large enough")
    return (most * Fraction(low, 1 << _SCALE_HALVINGS)).limit_denominator(_COARSE**2)
