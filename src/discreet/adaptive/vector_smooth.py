"""Smooth sensitivity of several numbers at once: one bound, in the norm of the recipe, for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, final

from discreet.adaptive.charging import charge
from discreet.adaptive.listing import rounded_outcomes
from discreet.adaptive.recipe import Norm, Recipe
from discreet.adaptive.smooth import PRIVATE_SCALE, check_fit, computed_beta, noise_scale
from discreet.adaptive.smooth_query import Bound, SmoothlyBounded, clamped
from discreet.errors import InvalidParameter
from discreet.exact import nonnegative, positive_integer
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.noise.ideal import round_ideal
from discreet.privacy import outcomes
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["SmoothlyBoundedVectorQuery", "VectorSmoothQuery", "VectorSmoothSensitivityMechanism"]


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
        read_relation(self.relation)
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
        charge(self, session, purpose="smooth sensitivity")
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
