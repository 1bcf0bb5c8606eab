"""A robust location of a column: exact and not private, or private with what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, final, overload

import numpy as np

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact_or_none, integer, positive, positive_integer
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.parameters import declared_rows, read_flag, rows_if_public, settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation, read_relation_if_any
from discreet.robust.adaptive_queries import AdaptiveQueries, AdaptiveQuery
from discreet.robust.least_squares import NOT_ASKED, accuracy_of
from discreet.robust.loss_functions import Floats, Huber, Psi, Quantile
from discreet.robust.m_estimates import location_fit
from discreet.robust.named_bounds import noise_for, quoted, reader_of
from discreet.schema.columns import Bounds, pair_of

__all__ = [
    "GradientDescent",
    "GradientStep",
    "HalveCentre",
    "HalveScale",
    "LocationSchedule",
    "Newton",
    "NewtonStep",
    "Place",
    "PrivateLocation",
    "Slope",
    "Square",
    "location",
    "needs_bounds",
    "shares_of",
]

# --- location_queries ---
# The adaptive queries by which a location and its error are found, and what is spent on each. All of it is public.


# --- location_questions ---
# The questions by which a location and its error are found: signs, scores, slopes and squares of bounded rows.
#
# Every row becomes a whole number between public limits by itself, so the sensitivity of a sum is exact whatever floats
# do. `resolution` is the number of steps up to the largest size a row can have.


_NORMAL_MAD = 0.6744897501960817  # The median of |Z|.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known about a location so far. All of it is public."""

    low: float  # where the centre is looked for
    high: float
    centre: float
    scale: float
    least: float  # where the median distance from the centre is looked for
    most: float
    slope: float = math.nan  # the sum of the derivatives of psi
    square: float = math.nan  # the sum of its squares
    noise: float = math.nan  # the deviation of the noise on the last sum of psi


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalveCentre:
    """Ask on which side of the middle of the bracket the quantile lies, and keep that half."""

    share: Fraction
    quantile: Fraction = Fraction(1, 2)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        above, below = self._sizes
        return Sensitivity.scalar(max(above, below) if relation is Relation.ADD_REMOVE else above + below)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        below = int(np.count_nonzero(values < state.centre))
        return (self._sizes[0] * (values.size - below) - self._sizes[1] * below,)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        low, high = (state.centre, state.high) if answer[0] > 0 else (state.low, state.centre)
        return replace(state, low=low, high=high, centre=(low + high) / 2)

    @property
    def _sizes(self) -> tuple[int, int]:
        """What a row above and what a row below the quantile adds: whole numbers in the ratio q to 1 - q."""
        return self.quantile.numerator, self.quantile.denominator - self.quantile.numerator


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HalveScale:
    """Ask whether more than half of the rows lie farther from the centre than the middle of the bracket, in ratios."""

    share: Fraction

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return Sensitivity.scalar(1 if relation is Relation.ADD_REMOVE else 2)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        return (far_minus_near(values - state.centre, math.sqrt(state.least * state.most)),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        middle = math.sqrt(state.least * state.most)
        least, most = (middle, state.most) if answer[0] > 0 else (state.least, middle)
        return replace(state, least=least, most=most, scale=math.sqrt(least * most) / _NORMAL_MAD)


def far_minus_near(residuals: Floats, reach: float) -> int:
    """Count the residuals beyond `reach`, less those within."""
    far = int(np.count_nonzero(np.abs(residuals) > reach))
    return 2 * far - residuals.size


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonStep:
    """Ask for the sum of psi, and move by its ratio to the sum of slopes asked before."""

    share: Fraction
    psi: Psi
    resolution: int
    bounds: tuple[float, float]

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return _signed(self.resolution, relation)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        return (psi_steps(self.psi, (values - state.centre) / state.scale, self.resolution),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        unit = float(self.psi.bound) / self.resolution
        # A slope that drowned in noise must not throw the estimate out of its bracket: no step is above one scale.
        step = min(max(answer[0] * unit / state.slope, -1.0), 1.0) if state.slope > 0 else 0.0
        centre = min(max(state.centre + state.scale * step, self.bounds[0]), self.bounds[1])
        return replace(state, centre=centre, noise=deviation * unit)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientStep:
    """Ask for the sum of psi, and move by `rate` times it over a public divisor: up where psi is positive."""

    share: Fraction
    psi: Psi
    resolution: int
    bounds: tuple[float, float]
    rate: float
    divisor: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return _signed(self.resolution, relation)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        return (psi_steps(self.psi, (values - state.centre) / state.scale, self.resolution),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        unit = float(self.psi.bound) / self.resolution
        # The derivative of rho(x - m) in m is -psi, so the descent adds psi.
        moved = state.centre + state.scale * self.rate * answer[0] * unit / self.divisor
        return replace(state, centre=min(max(moved, self.bounds[0]), self.bounds[1]), noise=deviation * unit)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """Ask for the sum of the derivatives of psi."""

    share: Fraction
    psi: Psi
    resolution: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        low, high = self._limits
        return Sensitivity.scalar(max(-low, high) if relation is Relation.ADD_REMOVE else high - low)

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        slopes = self.psi.derivative((values - state.centre) / state.scale) / self._unit
        return (exact_sum(np.clip(np.rint(slopes).astype(np.int64), *self._limits)),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        return replace(state, slope=answer[0] * self._unit)

    @property
    def _unit(self) -> float:
        return float(max(map(abs, self.psi.slopes))) / self.resolution

    @property
    def _limits(self) -> tuple[int, int]:
        largest = max(map(abs, self.psi.slopes))
        low, high = self.psi.slopes
        return math.floor(low / largest * self.resolution), math.ceil(high / largest * self.resolution)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """Ask for the sum of the squares of psi."""

    share: Fraction
    psi: Psi
    resolution: int

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return Sensitivity.scalar(self.resolution)  # Squares lie on one side of zero.

    def evaluate(self, state: Place, values: Floats) -> tuple[int, ...]:
        parts = self.psi.psi((values - state.centre) / state.scale) / float(self.psi.bound)
        steps = np.rint(parts * parts * self.resolution).astype(np.int64)
        return (exact_sum(np.clip(steps, 0, self.resolution)),)

    def learn(self, state: Place, answer: tuple[int, ...], deviation: float) -> Place:
        return replace(state, square=max(answer[0], 0) * float(self.psi.bound) ** 2 / self.resolution)


def psi_steps(psi: Psi, u: Floats, resolution: int) -> int:
    """Add up psi, each row rounded to whole steps and held within its bound."""
    steps = np.rint(psi.psi(u) * (resolution / float(psi.bound))).astype(np.int64)
    return exact_sum(np.clip(steps, -resolution, resolution))


def _signed(size: int, relation: Relation) -> Sensitivity:
    """A row adds at most `size`; one that is replaced may go from one end to the other."""
    return Sensitivity.scalar(size if relation is Relation.ADD_REMOVE else 2 * size)


# --- schedules: In which order a location is asked for, and what is spent on each question. All of it is public. ---


Questions: TypeAlias = tuple[AdaptiveQuery[Place], ...]

_FINEST = 20  # Halvings of the bounds, and the logarithm of the least scale that is looked for.
_CLOSER = 2  # Halvings of a bracket that is one scale wide.


class LocationSchedule(Protocol):
    """A public plan of questions about a location."""

    @property
    def inference(self) -> bool:
        """Whether it asks for what an interval needs."""

    def questions(self, *, psi: Psi, grid: Grid, scale: Fraction | None, resolution: int) -> Questions: ...

    def begin(self, *, grid: Grid, scale: Fraction | None) -> Place: ...

    def standard_error(self, place: Place) -> float:
        """Return the error of sampling and of the noise, infinite if it cannot be told."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Newton:
    """Halve a bracket to get near, then take few long steps, the last of which gets the largest share. [ABL23]

    One Newton step from a good start is as accurate as the root itself, so the budget need not be spread over many.

    Args:
        halvings: How often a bracket is halved for the start; until it is as wide as a scale if not said.
        scale_halvings: How often the bracket of the scale is halved, where none is declared.
        steps: How many long steps follow.
        inference: Whether a part of the budget is spent on an interval.

    Examples:
        >>> release = dp.robust.location(
        ...     [20 + i % 40 for i in range(2000)], relation=dp.Relation.ADD_REMOVE, bounds=(0, 100), scale=10, rho=0.5,
        ...     schedule=dp.robust.Newton(steps=1),
        ... )
        >>> abs(release.value - 39.5) < 10
        True
    """

    halvings: int | None = None  # for the start; by default until the bracket is as wide as a scale
    scale_halvings: int = 11  # for the scale, where none is declared
    steps: int = 2
    inference: bool = True

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            halvings=None if self.halvings is None else _not_negative(self.halvings, name="halvings"),
            scale_halvings=positive_integer(self.scale_halvings, name="scale_halvings"),
            steps=positive_integer(self.steps, name="steps"),
            inference=read_flag(self.inference, name="inference"),
        )

    def questions(self, *, psi: Psi, grid: Grid, scale: Fraction | None, resolution: int) -> Questions:
        halvings = _halvings(self.halvings, grid, scale)
        bounds = (float(grid.low), float(grid.high))
        weights = [3 * bool(halvings), 3 * (scale is None), *[1, 2] * (self.steps - 1), 2, 8, 2 * self.inference]
        first, spread, *pairs, square = shares_of(weights)
        moves: list[AdaptiveQuery[Place]] = []
        for slope, score in zip(pairs[::2], pairs[1::2], strict=True):
            moves.append(Slope(share=slope, psi=psi, resolution=resolution))
            moves.append(NewtonStep(share=score, psi=psi, resolution=resolution, bounds=bounds))
        if square:
            moves.append(Square(share=square, psi=psi, resolution=resolution))
        return (*_start(psi, halvings, first), *_scales(self.scale_halvings, spread), *moves)

    def begin(self, *, grid: Grid, scale: Fraction | None) -> Place:
        return _begin(grid, scale, None)

    def standard_error(self, place: Place) -> float:
        if not place.slope > 0:
            return math.inf
        return place.scale * math.sqrt(place.square + place.noise**2) / place.slope


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent:
    """Equal steps along the mean of psi, each paid alike. [ABL23]

    For T steps and nothing else the noise on the mean has deviation (D / n) sqrt(T) / mu, or scale D T / (epsilon n)
    for Laplace noise, where D is the largest |psi| under add-remove and twice that under replace-one.

    Args:
        iterations: The number T of steps.
        divisor: The public number n of rows: the exact one under replace-one, a guess under add-remove.
        rate: How far a step goes, in units of the scale.
        start: A public place to start from; the middle of the bounds if not said.
        halvings: How often a bracket is halved before the first step; not together with `start`.
        scale_halvings: How often the bracket of the scale is halved, where none is declared.
        inference: Whether a part of the budget is spent on an interval.

    Raises:
        InvalidParameter: If both `start` and `halvings` are said.

    Examples:
        >>> release = dp.robust.location(
        ...     [40] * 1000, relation=dp.Relation.REPLACE_ONE, bounds=(0, 100), scale=10, rho=0.5,
        ...     schedule=dp.robust.GradientDescent(iterations=5, divisor=1000),
        ... )
        >>> release.cost
        'ρ = 0.5'
    """

    iterations: int
    divisor: int  # a public number of rows: the exact one under replace-one, a guess under add-remove
    rate: Number = Fraction(1)  # in units of the scale
    start: Number | None = None  # a public place, the middle of the bounds without one
    halvings: int = 0  # of a bracket, to get near before the first step
    scale_halvings: int = 11
    inference: bool = True

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            iterations=positive_integer(self.iterations, name="iterations"),
            divisor=positive_integer(self.divisor, name="divisor"),
            rate=positive(self.rate, name="rate"),
            start=exact_or_none(self.start, name="start"),
            halvings=_not_negative(self.halvings, name="halvings"),
            scale_halvings=positive_integer(self.scale_halvings, name="scale_halvings"),
            inference=read_flag(self.inference, name="inference"),
        )
        if self.start is not None and self.halvings:
            raise InvalidParameter("say either start or halvings: halving starts in the middle of the bounds")

    def questions(self, *, psi: Psi, grid: Grid, scale: Fraction | None, resolution: int) -> Questions:
        start = Fraction(self.iterations, 4)
        weights = [start * bool(self.halvings), start * (scale is None), *[Fraction(1)] * self.iterations]
        first, spread, *steps, slope, square = shares_of([*weights, *[Fraction(self.inference)] * 2])
        moves: list[AdaptiveQuery[Place]] = [self._move(psi, grid, resolution, part) for part in steps]
        if self.inference:
            moves.append(Slope(share=slope, psi=psi, resolution=resolution))
            moves.append(Square(share=square, psi=psi, resolution=resolution))
        return (*_start(psi, self.halvings, first), *_scales(self.scale_halvings, spread), *moves)

    def _move(self, psi: Psi, grid: Grid, resolution: int, share: Fraction) -> GradientStep:
        return GradientStep(
            share=share,
            psi=psi,
            resolution=resolution,
            bounds=(float(grid.low), float(grid.high)),
            rate=float(self.rate),
            divisor=self.divisor,
        )

    def begin(self, *, grid: Grid, scale: Fraction | None) -> Place:
        return _begin(grid, scale, None if self.start is None else Fraction(self.start))

    def standard_error(self, place: Place) -> float:
        """Add to the sandwich the stationary variance of the descent: v = (1 - rate * slope)^2 v + (rate * noise)^2."""
        pull = float(self.rate) * place.slope / self.divisor
        if not 0 < pull < 2:
            return math.inf
        jump = float(self.rate) * place.noise / self.divisor
        return place.scale * math.sqrt(place.square / place.slope**2 + jump**2 / (1 - (1 - pull) ** 2))


def shares_of(weights: Sequence[Fraction | int]) -> list[Fraction]:
    """Return weights as shares that add up to one."""
    total = sum(weights, Fraction(0))
    return [Fraction(weight) / total for weight in weights]


def _start(psi: Psi, halvings: int, share: Fraction) -> Questions:
    at = Fraction(psi.q) if isinstance(psi, Quantile) else Fraction(1, 2)
    return tuple(HalveCentre(share=share / halvings, quantile=at) for _ in range(halvings if share else 0))


def _scales(halvings: int, share: Fraction) -> Questions:
    return tuple(HalveScale(share=share / halvings) for _ in range(halvings if share else 0))


def _halvings(asked: int | None, grid: Grid, scale: Fraction | None) -> int:
    if asked is not None:
        return asked
    if scale is None:
        return _FINEST
    return max(0, math.ceil(math.log2((grid.high - grid.low) / scale)) + _CLOSER)


def _begin(grid: Grid, scale: Fraction | None, start: Fraction | None) -> Place:
    low, high = float(grid.low), float(grid.high)
    middle = (low + high) / 2 if start is None else min(max(float(start), low), high)
    width = high - low
    # A median distance of at most half the width, at least half a step of the grid or a part in 2^20.
    least = max(width / (1 << _FINEST), float(grid.step) / 2)
    known = width / 4 if scale is None else float(scale)
    return Place(low=low, high=high, centre=middle, scale=known, least=min(least, width / 4), most=width / 2)


def _not_negative(value: int, *, name: str) -> int:
    if integer(value, name=name) < 0:
        raise InvalidParameter(f"{name} must not be negative")
    return int(value)


_HUBER = Huber()
_NEWTON = Newton()


@overload
def location(values: Any, *, psi: Psi = ..., scale: Number | None = ...) -> NotPrivate[float]: ...
@overload
def location(
    values: Any,
    *,
    relation: Relation | str,
    bounds: Bounds | None = ...,
    psi: Psi = ...,
    scale: Number | None = ...,
    step: Number | None = ...,
    missing: Number | None = ...,
    epsilon: Number | None = ...,
    delta: Number | None = ...,
    rho: Number | None = ...,
    mu: Number | None = ...,
    public_rows: int | None = ...,
    allow_large_delta: bool = ...,
    schedule: LocationSchedule = ...,
    session: Payer | None = ...,
) -> Release[Fraction]: ...
def location(
    values: Any,
    *,
    relation: Relation | str | None = None,
    bounds: Bounds | None = None,
    psi: Psi = _HUBER,
    scale: Number | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    schedule: LocationSchedule = _NEWTON,
    session: Payer | None = None,
) -> Release[Fraction] | NotPrivate[float]:
    """Estimate the location of a column by an M-estimate.

    With a budget (epsilon, epsilon and delta, rho or mu) and a relation it is private, and its interval is for what
    the rows were sampled from. Without any, it is the exact estimate of the data, marked as not private. Residuals are
    measured in units of `scale`, or of the median absolute deviation.

    Args:
        values: The private values: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation; None asks for the exact estimate.
        bounds: The lower and the upper bound that values are clamped to, public.
        psi: The loss.
        scale: The scale of the residuals, public; without it a part of the budget is spent on finding it.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        missing: What a missing value counts as, within the bounds.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        mu: What to spend of Gaussian privacy, instead of epsilon.
        public_rows: The public number of rows, or a guess of it, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        schedule: Which questions are asked: `Newton()` or `GradientDescent(…)`.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy location, with an interval; or the exact one, marked as not private.

    Raises:
        Refused: If there is a relation but no bounds: they must not be read from the data.
        InvalidParameter: If a number is out of range, or there is a budget but no relation.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> values = [20 + i % 40 for i in range(4000)] + [9999] * 100
        >>> release = dp.robust.location(
        ...     values, relation=dp.Relation.ADD_REMOVE, bounds=(-10_000, 10_000), epsilon=1, delta=1e-6
        ... )
        >>> abs(release.value - 40) < 10
        True
        >>> round(dp.robust.location([1, 2, 3]).value, 6)
        2.0
    """
    relation = read_relation_if_any(relation)
    if relation is None:
        special = None if schedule is _NEWTON else schedule
        _refuse(bounds, step, missing, epsilon, delta, rho, mu, public_rows, session, special)
        return NotPrivate(location_fit(values, psi=psi, scale=scale).value.estimates[0])
    noise = noise_for(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        public_rows=declared_rows(public_rows, rows_if_public(values, relation)),
        allow_large_delta=allow_large_delta,
    )
    mechanism = PrivateLocation(
        psi=psi,
        grid=Grid.between(*needs_bounds(bounds), step=step, default=missing),
        relation=relation,
        noise=noise,
        schedule=schedule,
        scale=exact_or_none(scale, name="scale"),
    )
    read = reader_of(values)
    with paid(session, mechanism, purpose="robust location"):
        return quoted(mechanism.release(read(values)), noise)


def needs_bounds(bounds: Bounds | None, *, name: str = "bounds") -> tuple[Number, Number]:
    """Refuse to guess bounds from the data."""
    if bounds is None:
        raise Refused(
            f"this needs {name}=(low, high), which must not be read from the data: take them from what is publicly "
            "known. A robust estimate loses almost nothing by bounds that are far too wide"
        )
    return pair_of(bounds, name=name)


def _refuse(*named: object) -> None:
    if any(value is not None for value in named):
        raise InvalidParameter(
            "a private estimate needs relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE, bounds and a budget; "
            "without any of these the exact estimate is returned, marked as not private"
        )


# --- private_location: A robust location of a bounded column, found by questions with noise. ---


_FINEST_LOCATION = 1 << 30  # Steps; sums of 2^22 rows of them stay exact in blocks.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateLocation:
    """Release an M-estimate of location: the root of the sum of psi((x - t) / scale).

    Guarantee   what the noise spends, in the shares of the schedule.
    Theorem     Every question is a sum of whole numbers that one row makes by itself, between public limits; later
                ones depend on the data through noisy answers only. [ABL23, DRS22]
    Utility     for many rows from one law the estimate is normal around its location with the variance of the
                M-estimate and of the noise together; the interval is made of both, and paid for.
    """

    psi: Psi
    grid: Grid
    relation: Relation
    noise: Noise
    schedule: LocationSchedule
    scale: Fraction | None = None  # of the residuals, public; asked for without one
    resolution: int = 1 << 20  # steps up to the largest psi

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            scale=exact_or_none(self.scale, name="scale"),
            resolution=positive_integer(self.resolution, name="resolution"),
        )
        if self.scale is not None and self.scale <= 0:
            raise InvalidParameter("scale must be above 0")
        if self.resolution > _FINEST_LOCATION:
            raise InvalidParameter("resolution must be at most 2^30")
        _ = self.dialogue  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def dialogue(self) -> AdaptiveQueries[Place]:
        """The questions, with the noise that pays for each."""
        questions = self.schedule.questions(psi=self.psi, grid=self.grid, scale=self.scale, resolution=self.resolution)
        start = self.schedule.begin(grid=self.grid, scale=self.scale)
        return AdaptiveQueries(questions=questions, start=start, relation=self.relation, noise=self.noise)

    @property
    def event(self) -> Event:
        return self.dialogue.event

    def release(self, data: Data, *, session: Payer | None = None) -> Release[Fraction]:
        """Charge, then ask everything."""
        with paid(session, self, purpose="robust location"):
            dialogue, known = self.dialogue, self.schedule.inference
            place = dialogue.run(self.values(data))
            return Release(
                value=Fraction(place.centre),
                event=dialogue.event,
                relation=self.relation,
                accuracy=accuracy_of(self.schedule.standard_error(place)) if known else NOT_ASKED,
                limits=(self.grid.low, self.grid.high),
            )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of all noisy answers, from which everything released follows."""
        return self.dialogue.distribution(self.values(data))

    def values(self, data: Data) -> Floats:
        """Return the rows, clamped and on the grid. This is private."""
        return self.grid.indices(data).astype(np.float64) * float(self.grid.step)
