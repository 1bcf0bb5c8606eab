"""Least squares from noisy moments, with confidence intervals for sampling and noise together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise as exact_noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative
from discreet.formatting import record
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.mean import check_size
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Accuracy, EachCell, Interval, NoInterval, Release
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation, read_relation
from discreet.robust import functionals
from discreet.robust.noisy_moments import Moments, NoisyMoments, best_weight
from discreet.robust.regression_design import Design, Integers, Records, Triangle
from discreet.robust.reweighting import EACH_ROW, Lens, SharedWeights, bounded, shares_of

__all__ = [
    "CAUTION",
    "DROWNED",
    "NOT_ASKED",
    "NO_INTERVAL",
    "EstimateAccuracy",
    "Floats",
    "NoisyStatistics",
    "ResidualSquares",
    "Seen",
    "Solved",
    "accuracy_of",
    "check_rows",
    "coefficients_release",
    "labels",
    "predict",
    "read_inference",
    "read_penalties",
    "residual_squares",
    "shrunken",
    "solved",
    "whitening",
]

# --- coefficients: Coefficients of a private fit as they are released, and what they predict. ---


NO_INTERVAL = NoInterval(
    reason="how noise on the moments moves the coefficients depends on the data: no interval follows from public "
    "facts. A part of the budget pays for one: inference_share, inference=True, or `robust.regression`"
)


class Regression(Protocol):
    """What a fit says about itself."""

    @property
    def design(self) -> Design: ...

    @property
    def relation(self) -> Relation: ...

    @property
    def noise(self) -> GaussianNoise: ...

    @property
    def event(self) -> Event: ...


def coefficients_release(
    mechanism: Regression, fit: Sequence[float], accuracy: Accuracy = NO_INTERVAL
) -> Release[tuple[Fraction, ...]]:
    """Release a fit within the frame in the units of the data."""
    return Release(
        value=mechanism.design.original(fit),
        event=mechanism.event,
        relation=mechanism.relation,
        accuracy=accuracy,
        labels=labels(mechanism.design),
        delta=mechanism.noise.delta,
    )


def labels(design: Design) -> tuple[str, ...]:
    """Return the public names of the coefficients."""
    return "intercept", *(f"x{number}" for number in range(1, design.dimension))


def check_rows(rows: Integers, size: int | None) -> None:
    """Refuse data whose length is not the one that was declared public."""
    if size is not None and len(rows) != size:
        raise InvalidParameter("the data do not have the declared number of rows")


def predict(coefficients: Sequence[Number], features: Any) -> NDArray[np.float64]:
    """Return what released coefficients, the intercept first, predict for a table of features.

    Args:
        coefficients: The coefficients of a release, the intercept first.
        features: Rows of features, one column for each slope. What is predicted for private rows is private.

    Returns:
        One prediction a row.

    Raises:
        InvalidParameter: If there is not one column for each slope.

    Examples:
        >>> dp.robust.predict([1, 2, 3], [[1, 0], [0, 1]])
        array([3., 4.])
    """
    first, *slopes = (float(exact(value, name="a coefficient")) for value in coefficients)
    table = np.asarray(features.to_numpy() if hasattr(features, "to_numpy") else features, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(slopes):
        raise InvalidParameter("features must be a table with a column for each slope")
    found: NDArray[np.float64] = first + table @ np.array(slopes)
    return found


# --- accuracy: How far an estimate may be from what it estimates: sampling and noise together. ---


NOT_ASKED = NoInterval(reason="no budget was kept for the error of the estimate: say inference=True for an interval")
DROWNED = NoInterval(
    reason="the slope of the scores is lost in noise, so there is no confidence interval: use more rows or more budget"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateAccuracy:
    """An interval for what the rows were sampled from, not for the exact estimate of the data at hand.

    Its standard error was itself released with noise and paid for, so it may be told. The interval covers as often as
    it says for many rows.
    """

    standard_error: float  # of sampling and of the noise
    shift: float = 0.0  # from the estimate to the middle of the interval, where the estimate was shrunk

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        reach = Fraction(functionals.quantile((1 + float(confidence)) / 2) * self.standard_error)
        middle = value + Fraction(self.shift)
        return middle - reach, middle + reach


def accuracy_of(standard_error: float, shift: float = 0.0) -> Accuracy:
    """Return the accuracy of an estimate, or that none can be told."""
    if not math.isfinite(standard_error) or not math.isfinite(shift):
        return DROWNED
    return EstimateAccuracy(standard_error=standard_error, shift=shift)


# --- inference ---
# Intervals for least squares from noisy moments: how far coefficients may be off, by sampling and by noise.


_BLOCK = 1 << 16  # Rows at a time, so that their triangles need little memory.
_RESOLUTION = 1 << 20
_SPECTRAL = 2**0.5  # Times the root of the dimension: how long such noise on a symmetric matrix usually is.
CAUTION = 0.4  # Of the usual length of the noise, by which X'X is taken as smaller and Q as larger than they look.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualSquares:
    """Measure Q, the sum of r^2 x x' over rows of whole numbers with |x| <= radius and |r| <= radius.

    Where units have several rows, it is the sum of s s' over units, with s the sum of r x over their rows.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for one unit.
    Theorem     See `Triangle`: each row adds the upper triangle of a positive matrix of at most unit length, and so
                does each unit, whose s is at most as long as the longest r x of one row; see `SharedWeights`. [DRS22]
    Utility     the middle of a sandwich: it makes intervals hold also where residuals vary with the features, and
                where those of one unit are alike. [LZ86]
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        check_noise_variance(self.variance)

    @property
    def triangle(self) -> Triangle:
        return Triangle(size=self.dimension, limit=1.0, resolution=_RESOLUTION, is_positive=True)

    @property
    def variance(self) -> Fraction:
        return self.triangle.sensitivity(self.relation).squared_l2 / self.mu_squared

    @property
    def deviation(self) -> float:
        """Of the noise on each entry, in units of the largest row."""
        return math.sqrt(self.variance) * self.triangle.unit

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.triangle.sensitivity(self.relation).squared_l2 / self.variance)

    def measure(self, rows: Integers, residuals: Integers, radius: int, shares: SharedWeights = EACH_ROW) -> Floats:
        """Add noise to Q; the caller answers for the bounds of every row, and of the rows of a unit together."""
        scores = shares.scores(rows, residuals)
        if scores is not None:
            rows, residuals, radius = scores, np.full(len(scores), radius**2), radius**2
        total = np.zeros(self.triangle.dimension, dtype=object)
        for start in range(0, len(rows), _BLOCK):
            near = rows[start : start + _BLOCK] / radius
            factors = (residuals[start : start + _BLOCK] / radius) ** 2
            total += np.array(self.triangle.add_up(near, factors), dtype=object)
        drawn = exact_noise.rounded_gaussian(size=len(total), variance=self.variance)
        return self.triangle.matrix(tuple((total + drawn).tolist()))


class Solved(NamedTuple):
    """The solution of noisy normal equations as they are, and its covariance around what sampling aims at."""

    solution: Floats
    covariance: Floats


def solved(measured: NoisyMoments, squares: Floats, deviation: float) -> Solved | None:
    """Solve without shrinking, with H^-1 (Q + noise^2) H^-1 as the covariance; None where noise hides it.

    Noise on X'y adds its variance to Q; noise on X'X adds half of its own times |u|^2 (1 + the direction of u) for the
    solution u. Where X'X is not clearly longer than its noise nothing can be told; where it is, it is taken as
    somewhat smaller than it looks, and Q as larger. [ABL23]
    """
    size = len(squares)
    one, usual = np.eye(size), measured.gram_deviation * size**0.5
    values, vectors = np.linalg.eigh(measured.gram)
    if values.min() < _SPECTRAL * usual:
        return None
    u = vectors @ ((vectors.T @ measured.cross) / values)
    bread = (vectors / (values - CAUTION * usual)) @ vectors.T
    by_gram = 0.5 * measured.gram_deviation**2 * (float(u @ u) * one + np.outer(u, u))
    meat = _positive(squares) + 2 * CAUTION * deviation * one + measured.cross_deviation**2 * one + by_gram
    return Solved(u, bread @ meat @ bread)


def _positive(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    found: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One look at the rows: in which coordinates, cut to which lengths, and what was measured, in units of these."""

    lens: Lens
    radius: float
    reach: float
    measured: NoisyMoments

    def penalised(self, penalties: tuple[Fraction, ...]) -> Seen:
        """Add the public gradient and curvature of a penalty on the squares of the coefficients."""
        if not any(penalties):
            return self
        weights, turn = np.array([float(part) for part in penalties]), self.lens.turn
        gram = self.measured.gram + turn.T @ (turn * weights[:, None]) / self.radius**2
        cross = self.measured.cross - turn.T @ (weights * self.lens.fit) / (self.radius * self.reach)
        return replace(self, measured=self.measured._replace(gram=gram, cross=cross))

    def errors(self, design: Design, fit: Floats, squares: Floats, deviation: float) -> Accuracy:
        """Return how far each coefficient of the fit that follows from this look may be off, in units of the data.

        Intervals are around the solution that is not shrunk: that one aims at what the rows were sampled from.
        """
        found = solved(self.measured, squares, deviation)
        if found is None:
            return accuracy_of(math.inf)
        unit, turn = self.reach / self.radius, _turn(design)
        shifts = turn @ (self.lens.fit + self.lens.turn @ found.solution * unit - fit)
        turned = turn @ self.lens.turn * unit
        errors = np.sqrt(np.maximum(np.diag(turned @ found.covariance @ turned.T), 0.0))
        cells = zip(errors.tolist(), shifts.tolist(), strict=True)
        return EachCell(cells=tuple(accuracy_of(error, shift) for error, shift in cells))


def read_inference(share: Number) -> Fraction:
    """Read the share of the budget for intervals: none, or a part."""
    found = exact(share, name="inference_share")
    if not 0 <= found < 1:
        raise InvalidParameter("inference_share must be at least 0 and below 1")
    return found


def read_penalties(penalties: Sequence[Number], dimension: int) -> tuple[Fraction, ...]:
    """Read one penalty for each coefficient, or none at all."""
    found = tuple(nonnegative(penalty, name="a penalty") for penalty in penalties)
    if found and len(found) != dimension:
        raise InvalidParameter("there must be one penalty for each coefficient, the intercept first")
    return found


def residual_squares(
    dimension: int, relation: Relation, noise: GaussianNoise, share: Fraction
) -> ResidualSquares | None:
    """Return what a share of the budget measures for intervals, nothing where there is none."""
    if not share:
        return None
    return ResidualSquares(dimension=dimension, relation=relation, mu_squared=share / noise.squared_multiplier)


def _turn(design: Design) -> Floats:
    """Return the linear part of `Design.original`."""
    low, high = design.response
    scales = [float((high - low) / (b - a)) for a, b in design.features]
    turn = np.diag([float(high - low) / 2, *scales])
    turn[0, 1:] = [-scale * float(a + b) / 2 for scale, (a, b) in zip(scales, design.features, strict=True)]
    return turn


# --- noisy_statistics: Least squares from noisy moments, measured once within the declared bounds. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyStatistics:
    """Fit a linear model from X'X and X'y with Gaussian noise.

    Guarantee   Gaussian privacy with the mu of `noise`: both moments are one release with one joint sensitivity.
    Theorem     See `Moments`, and `SharedWeights` where units have several records or records have weights. Solving
                afterwards is free, and so is shrinking by how noisy the moments are. [DRS22, Wan18]
    Utility     noise of about d / mu on X'X and X'y, in the frame in which the bounds are -1 and 1.

    Args:
        design: The public bounds of features and response.
        relation: The neighbouring relation.
        noise: What the moments, and the intervals if there are any, spend together.
        public_rows: The public number of records, under replace-one.
        coefficient_norm: A public guess of the norm of the coefficients where the bounds are -1 and 1; it divides the
            budget between the two moments.
        inference_share: The part of the budget for intervals, from 0 to below 1; with 0 there are none.
        penalties: On the square of each coefficient where the bounds are -1 and 1, the intercept first; or none.

    Raises:
        InvalidParameter: If a share is out of range, or there is not one penalty for each coefficient.

    Examples:
        >>> records = [(i % 10, 2 * (i % 10)) for i in range(2000)]
        >>> fit = dp.robust.NoisyStatistics(
        ...     design=dp.robust.Design.between([(0, 10)], (0, 30)), relation=dp.Relation.ADD_REMOVE,
        ...     noise=dp.mechanisms.GaussianNoise.for_rho(0.5),
        ... )
        >>> intercept, slope = fit.release(records).value
        >>> abs(slope - 2) < 1
        True
    """

    design: Design
    relation: Relation
    noise: GaussianNoise
    public_rows: int | None = None  # the public number of records, under replace-one
    coefficient_norm: Fraction = Fraction(1)  # a public guess, within the frame; it balances the two moments
    inference_share: Fraction = Fraction(0)  # of the budget, for intervals; without it there are none
    penalties: tuple[Fraction, ...] = ()  # on the square of each coefficient within the frame, the intercept first

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            public_rows=check_size(self.relation, self.public_rows),
            coefficient_norm=nonnegative(self.coefficient_norm, name="coefficient_norm"),
            inference_share=read_inference(self.inference_share),
            penalties=read_penalties(self.penalties, self.design.dimension),
        )
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def moments(self) -> Moments:
        return Moments(
            dimension=self.design.dimension,
            relation=self.relation,
            mu_squared=(1 - self.inference_share) / self.noise.squared_multiplier,
            weight=best_weight(self.coefficient_norm, self.relation),
        )

    @property
    def squares(self) -> ResidualSquares | None:
        """What is measured once there is a fit, for intervals."""
        return residual_squares(self.design.dimension, self.relation, self.noise, self.inference_share)

    @property
    def event(self) -> events.GDP:
        last = self.squares.event.mu_squared if self.squares is not None else 0
        return events.GDP(mu_squared=self.moments.event.mu_squared + last)

    def release(self, records: Records) -> Release[tuple[Fraction, ...]]:
        """Fit with noise; the intercept comes first, in the units of the data."""
        shares, rows = shares_of(records, self.relation), self.design.rows(records)
        check_rows(rows, self.public_rows)
        lens, radius, moments = Lens.plain(self.design.dimension), self.design.dimension**0.5, self.moments
        measured = moments.measure(*shares.divided(*bounded(*lens.look(rows), radius, 1.0, moments.radius)))
        seen = Seen(lens, radius, 1.0, measured).penalised(self.penalties)
        fit = shrunken(seen.measured) / radius
        return coefficients_release(self, fit.tolist(), self._accuracy(rows, shares, seen, fit))

    def _accuracy(self, rows: Integers, shares: SharedWeights, seen: Seen, fit: Floats) -> Accuracy:
        if self.squares is None:
            return NO_INTERVAL
        steps = self.moments.radius
        look = Lens(seen.lens.turn, fit).look(rows)
        near = shares.divided(*bounded(*look, seen.radius, seen.reach, steps))
        measured = self.squares.measure(*near, steps, shares)
        return seen.errors(self.design, fit, measured, self.squares.deviation)


# --- shrinking ---
# Solving noisy least squares: free, since noisy moments are public, and better for knowing how noisy they are.


Floats: TypeAlias = NDArray[np.float64]

_SPREADS = np.exp(np.linspace(-20.0, 12.0, 65))  # Variances that coefficients may have before they are seen.


def shrunken(measured: NoisyMoments) -> Floats:
    """Return the coefficients to expect, given noisy moments, for a normal prior of unknown spread.

    Along each eigenvector of X'X, its eigenvalue w and the entry c of X'y tell c = w theta + noise. The noise has the
    variance of X'y, plus that of X'X times |theta|^2 / 2. Every spread that theta may have counts by how likely it
    makes c: where moments tell nothing, most of them do, and the coefficients are near zero.
    """
    values, vectors = np.linalg.eigh(measured.gram)
    values = np.maximum(values, 0.0)
    seen = vectors.T @ measured.cross
    spreads = _SPREADS[:, None]
    noise = measured.cross_deviation**2 + 0.5 * measured.gram_deviation**2 * spreads * len(seen)
    variances = values**2 * spreads + noise
    fitness = -0.5 * (np.log(variances) + seen**2 / variances).sum(axis=1)
    likely = np.exp(fitness - fitness.max())
    found: Floats = vectors @ ((likely / likely.sum()) @ (values * seen * spreads / variances))
    return found


def whitening(measured: NoisyMoments, rows: float) -> Floats:
    """Return a map to coordinates in which X'X is about the identity times the number of rows, where noise allows."""
    values, vectors = np.linalg.eigh(measured.gram)
    # Half the length of the noise: what is shorter than that is not told from nothing.
    least = 0.5 * measured.gram_deviation * (2 * len(values)) ** 0.5
    turned: Floats = vectors * (rows / (np.maximum(values, 0.0) + least)) ** 0.5
    return turned
