"""Smooth sensitivity: noise calibrated to a smooth bound, for one number and for several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, final

from discreet.adaptive.noise_recipes import Norm, Recipe
from discreet.adaptive.smooth_noise_laws import AdmissibleLaw
from discreet.adaptive.smooth_query import Bound, ReadsOnce, SmoothlyBounded, SmoothQuery, clamped
from discreet.balls import ball, bounds
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive_integer
from discreet.formatting import record
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.rounding import round_ideal
from discreet.privacy import outcomes
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes, negligible
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, check_member, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "PRIVATE_SCALE",
    "Outcome",
    "SmoothSensitivityMechanism",
    "SmoothlyBoundedVectorQuery",
    "VectorSmoothQuery",
    "VectorSmoothSensitivityMechanism",
    "check_fit",
    "computed_beta",
    "noise_scale",
    "rounded_outcomes",
]

# --- smooth: Noise calibrated to the data at hand, through a bound on its sensitivity that changes smoothly. ---


PRIVATE_SCALE = NoInterval(
    reason="the scale of the noise depends on the data and is private, so there is no confidence interval; "
    "`predicted_half_width` tells what to expect for a public guess of the smooth bound"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothSensitivityMechanism:
    """Add noise in proportion to a smooth bound on the local sensitivity, and round to the public grid.

    Guarantee   that of the recipe.
    Theorem     The ideal release f + (S / alpha) Z has it for a beta-smooth S; rounding, done exactly, is
                post-processing. [NRS07] If S is known up to a factor 1 + h, it is computed for beta - 2 log(1 + h)
                and raised by that factor: then it is a bound again, and beta-smooth. If f is known up to e, two
                values are farther apart by 2 e at most, and S + 2 e is as smooth as S.
    Utility     the noise exceeds `recipe.half_width(c)` times the smooth bound with probability 1 - c at most.

    Args:
        query: What is asked, with a smooth bound on its local sensitivity.
        recipe: The noise, such as `polynomial(1, beta="0.1")`.

    Examples:
        >>> query = dp.adaptive.median_query(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), relation=dp.Relation.REPLACE_ONE, public_rows=1001
        ... )
        >>> recipe = dp.adaptive.polynomial(1, beta=0.1)
        >>> release = dp.adaptive.SmoothSensitivityMechanism(query=query, recipe=recipe).release([40] * 1001)
        >>> release.cost
        'ε = 1'
    """

    query: SmoothQuery
    recipe: Recipe

    __repr__ = record

    def __post_init__(self) -> None:
        check_fit(self.query, self.recipe, dimension=1)

    @property
    def event(self) -> Event:
        return self.recipe.event

    @property
    def relation(self) -> Relation:
        return self.query.relation

    def predicted_half_width(self, bound: Number, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return a half-width of the noise if the smooth bound were this public guess, both in units of the data."""
        guess = nonnegative(bound, name="bound")
        return guess * Fraction(self.recipe.half_width(confidence)) + self.query.grid.step / 2

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Fraction]:
        """Charge, then release the value with noise."""
        with paid(session, self, purpose="smooth sensitivity"):
            centre, bound = self._read(data)
            law, grid = self.recipe.law, self.query.grid
            steps = round_ideal(law, centre=centre, scale=lambda bits: self._scale(bound), step=Fraction(1))
            return Release(
                value=steps * grid.step,
                event=self.event,
                relation=self.relation,
                accuracy=PRIVATE_SCALE,
                limits=(grid.low, grid.high),
            )

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the release, in grid steps; far outside of the bounds, in ranges of them."""
        centre, bound = self._read(data)
        grid = self.query.grid
        window = grid.first - grid.width, grid.last + grid.width
        return rounded_outcomes(self.recipe.law, centre=centre, scale=self._scale(bound), window=window)

    def _read(self, data: Any) -> tuple[Fraction, Bound]:
        once = self.query.read(data) if isinstance(self.query, ReadsOnce) else data
        return self.query.value(once), self.query.smooth_bound(once, computed_beta(self.query, self.recipe))

    def _scale(self, bound: Bound) -> arb:
        return noise_scale(self.query, self.recipe, bound)


def check_fit(query: SmoothlyBounded, recipe: Recipe, *, dimension: int) -> None:
    """Refuse a query and a recipe that do not belong together."""
    check_member(query.relation)
    if not isinstance(recipe, Recipe):
        raise InvalidParameter("recipe must be made by one of the functions for it, such as `polynomial`")
    if recipe.dimension != dimension:
        raise InvalidParameter(f"this query needs a recipe for dimension {dimension}, not {recipe.dimension}")
    if computed_beta(query, recipe) <= 0:
        raise InvalidParameter("the smooth bound is not known closely enough for so small a beta: choose a larger one")


def computed_beta(query: SmoothlyBounded, recipe: Recipe) -> Fraction:
    """Return the beta to compute the smooth bound with: log(1 + h) is at most h."""
    return recipe.beta - 2 * query.relative_error


def noise_scale(query: SmoothlyBounded, recipe: Recipe, bound: Bound) -> arb:
    """Enclose the scale of the noise, in grid steps."""
    exact = bound.enclose(computed_beta(query, recipe)) * ball(1 + query.relative_error)
    return (exact + ball(2 * query.value_error)) * ball(recipe.ratio)


# --- vector_smooth ---
# Smooth sensitivity of several numbers at once: one bound, in the norm of the recipe, for all of them.


class VectorSmoothQuery(SmoothlyBounded, Protocol):
    """A smooth query with several values on one grid; its bound and its value error are meant in `norm`."""

    @property
    def dimension(self) -> int: ...

    @property
    def norm(self) -> Norm: ...

    def values(self, data: Any, /) -> Sequence[Fraction]:
        """Return the answers, in grid steps. They are private."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothlyBoundedVectorQuery:
    """Several numbers with a beta-smooth bound, in a norm, that their author has proved.

    What `evaluate` returns is clamped to the grid, which moves no two answers apart.
    """

    evaluate: Callable[[Any], Sequence[Fraction]]  # in grid steps
    bound: Callable[[Any, Fraction], Bound]  # of the data and of beta, in grid steps
    grid: Grid  # of every coordinate
    dimension: int
    norm: Norm
    relation: Relation
    relative_error: Fraction = Fraction(0)  # of the bound
    value_error: Fraction = Fraction(0)  # of the values, in grid steps and in the norm

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, dimension=positive_integer(self.dimension, name="dimension"))
        if self.norm not in (1, 2):
            raise InvalidParameter("norm must be 1 or 2")
        settle(
            self,
            relative_error=nonnegative(self.relative_error, name="relative_error"),
            value_error=nonnegative(self.value_error, name="value_error"),
        )

    def values(self, data: Any) -> list[Fraction]:
        return [clamped(value, self.grid) for value in self.evaluate(data)]

    def smooth_bound(self, data: Any, beta: Fraction) -> Bound:
        return self.bound(data, beta)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSmoothSensitivityMechanism:
    """Add independent noise to each number, in proportion to one smooth bound, and round to the public grid.

    Guarantee   that of the recipe.
    Theorem     As for one number; shifts are measured, and the smooth bound is meant, in the norm of the recipe.
                Stretching all coordinates at once is what a recipe for this dimension has paid for. [NRS07]
    Utility     each number's noise exceeds `recipe.half_width(c)` times the smooth bound with probability 1 - c
                at most.
    """

    query: VectorSmoothQuery
    recipe: Recipe

    def __post_init__(self) -> None:
        check_fit(self.query, self.recipe, dimension=self.query.dimension)
        # No vector is longer in l2 than in l1, so a bound in l1 serves both.
        if self.query.norm > self.recipe.norm:
            raise InvalidParameter("this recipe needs a smooth bound in the l1 norm, and the query has one in l2")

    @property
    def event(self) -> Event:
        return self.recipe.event

    @property
    def relation(self) -> Relation:
        return self.query.relation

    def release(self, data: Any, *, session: Payer | None = None) -> Release[tuple[Fraction, ...]]:
        """Charge, then release the values with noise."""
        with paid(session, self, purpose="smooth sensitivity"):
            centres, bound = self._read(data)
            law, grid = self.recipe.law, self.query.grid
            steps = [
                round_ideal(law, centre=centre, scale=lambda bits: self._scale(bound), step=Fraction(1))
                for centre in centres
            ]
            return Release(
                value=tuple(step * grid.step for step in steps),
                event=self.event,
                relation=self.relation,
                accuracy=PRIVATE_SCALE,
                limits=(grid.low, grid.high),
            )

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the release, in grid steps; far outside of the bounds, in ranges of them."""
        centres, bound = self._read(data)
        scale, grid = self._scale(bound), self.query.grid
        window = grid.first - grid.width, grid.last + grid.width
        law = self.recipe.law
        return outcomes.product(*(rounded_outcomes(law, centre=c, scale=scale, window=window) for c in centres))

    def _read(self, data: Any) -> tuple[Sequence[Fraction], Bound]:
        centres = self.query.values(data)
        if len(centres) != self.query.dimension:
            raise InvalidParameter("a query must return as many numbers as its dimension says")
        return centres, self.query.smooth_bound(data, computed_beta(self.query, self.recipe))

    def _scale(self, bound: Bound) -> arb:
        return noise_scale(self.query, self.recipe, bound)


# --- listing ---
# The law of a rounded ideal release, listed over a public window point by point and in growing ranges beyond.
#
# Noise that falls like a power has too many points to list. What lies outside the window is listed in ranges whose
# borders are public, so that the laws of two data sets can be compared; only inside a range nothing is seen.


Outcome = int | tuple[int, int]  # one grid point, or the first and the last of a range

_PARTS = 4  # A range is this part of its distance from the other end of the window.
_LONGEST = 1 << 16  # Points; a longer window does not fit a verification of small worlds.


def rounded_outcomes(law: AdmissibleLaw, *, centre: Fraction, scale: arb, window: tuple[int, int]) -> Outcomes:
    """List the whole number nearest to centre + scale * Z."""
    from flint import ctx

    low, high = window
    if high - low > _LONGEST:
        raise InvalidParameter(f"a window of {high - low} points is too long to list: verify on a coarser grid")
    if scale.is_zero():
        return _nearest(centre)
    return _listed(law, centre, bounds(scale), window, ctx.prec)


@lru_cache(maxsize=512)
def _listed(
    law: AdmissibleLaw, centre: Fraction, scale: tuple[Fraction, Fraction], window: tuple[int, int], bits: int
) -> Outcomes:
    """List one law once: many data sets of a small world share it. `bits` is the working precision."""
    low, high = window
    places = _BorderPlaces(law, centre, ball(scale[0]).union(ball(scale[1])))
    left = list(places.beyond(low, -1, high - low))
    right = list(places.beyond(high, 1, high - low))
    starts = [*reversed(left), *range(low, high + 1), *right]
    masses = {_named(one, other): places.mass(one, other) for one, other in pairwise(starts)}
    return Outcomes(masses, places.outside(starts[0], starts[-1]))


def _named(start: int, end: int) -> Outcome:
    """Name the points from `start` to just before `end`."""
    return start if end == start + 1 else (start, end - 1)


def _nearest(centre: Fraction) -> Outcomes:
    """List the rounding of a number without noise: a half goes either way, as the sign of the draw says."""
    up, down = (centre + Fraction(1, 2)).__floor__(), -(Fraction(1, 2) - centre).__floor__()
    half = ball(Fraction(1, 2))
    return Outcomes({up: ball(1)} if up == down else {up: half, down: half})


class _BorderPlaces:
    """Where the borders of grid points lie in a law."""

    __slots__ = ("_centre", "_law", "_scale")

    def __init__(self, law: AdmissibleLaw, centre: Fraction, scale: arb) -> None:
        self._law, self._centre, self._scale = law, centre, scale

    def beyond(self, edge: int, side: int, width: int) -> Iterator[int]:
        """Name the starts of ranges away from an edge, until next to nothing is left beyond them."""
        first = start = edge if side < 0 else edge + 1
        if side > 0:
            yield start
        while not self._tail(side * self._distance(start)) <= ball(negligible() / 2):
            start += side * max(1, (width + abs(start - first)) // _PARTS)
            yield start

    def mass(self, start: int, end: int) -> arb:
        """Enclose the probability of the points from `start` to just before `end`."""
        low, high = self._distance(start), self._distance(end)
        # Subtract the two smaller tails, those of the side on which the points lie.
        return self._tail(-high) - self._tail(-low) if low + high < 0 else self._tail(low) - self._tail(high)

    def outside(self, start: int, end: int) -> Fraction:
        """Bound the probability of what is not listed."""
        rest = self._tail(-self._distance(start)) + self._tail(self._distance(end))
        return min(Fraction(1), bounds(rest)[1])

    def _distance(self, start: int) -> Fraction:
        return start - Fraction(1, 2) - self._centre

    def _tail(self, distance: Fraction) -> arb:
        """Enclose P[scale * Z > distance]."""
        if distance < 0:
            return 1 - self._tail(-distance)
        return self._law.survival(ball(distance) / self._scale) / 2
