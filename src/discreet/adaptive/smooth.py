"""Noise calibrated to the data at hand, through a bound on its sensitivity that changes smoothly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.adaptive.charging import charge
from discreet.adaptive.listing import rounded_outcomes
from discreet.adaptive.recipe import Recipe
from discreet.adaptive.smooth_query import Bound, ReadsOnce, SmoothlyBounded, SmoothQuery
from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative
from discreet.mechanisms.accuracy import NoInterval
from discreet.mechanisms.fields import read_relation
from discreet.mechanisms.release import Release
from discreet.noise.ideal import round_ideal
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["PRIVATE_SCALE", "SmoothSensitivityMechanism", "check_fit", "computed_beta", "noise_scale"]

PRIVATE_SCALE = NoInterval(
    reason="the noise is as wide as this data asked for, and how wide that is, is private: no interval can be told. "
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
    """

    query: SmoothQuery
    recipe: Recipe

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
        charge(self, session, purpose="smooth sensitivity")
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
    read_relation(query.relation)
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
