"""Smooth sensitivity as its wrong authors wrote it: verification refutes each version and passes its right twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from smooth_worlds import GRID, REPLACE_ONE, VALUES, LowerMedian, Table, bounded, local_sensitivity, steps, worst_pair

from discreet.adaptive.approximate_recipes import laplace
from discreet.adaptive.noise_recipes import Recipe, polynomial, power
from discreet.adaptive.smooth_mechanisms import (
    SmoothlyBoundedVectorQuery,
    SmoothSensitivityMechanism,
    VectorSmoothSensitivityMechanism,
    noise_scale,
)
from discreet.adaptive.smooth_noise_laws import LaplaceLaw, PowerLaw
from discreet.adaptive.smooth_query import Peak, SmoothlyBoundedQuery
from discreet.balls import ball, ball_down
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Event, PureDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

MEDIAN = LowerMedian()
SMALL = worlds(VALUES, [3, 5])
POLYNOMIAL = polynomial(1, beta="0.05", alpha="0.05")


def with_bound(bound: Callable[[Any, Fraction], Any]) -> SmoothSensitivityMechanism:
    """A median with another bound on its sensitivity, charged as if that were smooth."""
    return SmoothSensitivityMechanism(query=bounded(MEDIAN.value, bound), recipe=POLYNOMIAL)


def local(data: Any, beta: Fraction) -> Peak:
    return Peak(local_sensitivity(data, 0), 0)


@dataclass(frozen=True)
class OnALadder:
    """A bound rounded up to a power of two, in units of seven steps."""

    peak: Peak

    def enclose(self, beta: Fraction) -> Any:
        power = math.ceil(math.log2(self.peak.approximate(float(beta)) / 7))
        return ball(7 * Fraction(2) ** power)


def on_a_ladder(data: Any, beta: Fraction) -> OnALadder:
    return OnALadder(MEDIAN.smooth_bound(data, beta))


def halved(data: Any, beta: Fraction) -> Peak:
    peak = MEDIAN.smooth_bound(data, beta)
    return Peak(peak.height / 2, peak.distance)


@dataclass(frozen=True)
class TellsItsScale:
    """Releases how wide the noise was as well."""

    honest: SmoothSensitivityMechanism

    @property
    def event(self) -> Event:
        return self.honest.event

    @property
    def relation(self) -> Relation:
        return self.honest.relation

    def distribution(self, data: Any) -> Outcomes:
        query, recipe = self.honest.query, self.honest.recipe
        scale = ball_down(noise_scale(query, recipe, query.smooth_bound(data, recipe.beta)))
        return outcomes.map(self.honest.distribution(data), lambda value: (scale, value))


@dataclass(frozen=True)
class FarOrNear:
    """Independent noise in several coordinates, of which only is told whether it was far out, and where."""

    recipe: Recipe
    dimension: int
    far: int
    relation: Relation = REPLACE_ONE

    @property
    def event(self) -> Event:
        return self.recipe.event

    def distribution(self, data: Any) -> Outcomes:
        # In all coordinates the value is the same; the bound is 8 steps, or 8 e^-beta.
        query = Table({"a": (8, Peak(Fraction(8), 0)), "b": (8, Peak(Fraction(8), 1))}, steps(16))
        one = Recipe(law=self.recipe.law, alpha=self.recipe.alpha, beta=self.recipe.beta, event=self.event)
        listed = SmoothSensitivityMechanism(query=query, recipe=one).distribution(data)
        return outcomes.product(*[outcomes.map(listed, self._side)] * self.dimension)

    def _side(self, outcome: Any) -> int:
        first, last = outcome if isinstance(outcome, tuple) else (outcome, outcome)
        return -1 if last < 8 - self.far else int(first > 8 + self.far)


def wrong_recipe(law: Any, *, alpha: Any, beta: Any, event: Event, dimension: int = 1) -> Recipe:
    return Recipe(law=law, alpha=Fraction(alpha), beta=Fraction(beta), event=event, dimension=dimension)


def mirrored(height: int) -> VectorSmoothSensitivityMechanism:
    """Two numbers that move by up to 8 steps in opposite ways, with a bound of `height`, charged as one in l1."""
    query = SmoothlyBoundedVectorQuery(
        evaluate=lambda data: [Fraction(data[0]), Fraction(8 - data[0])],
        bound=lambda data, beta: Peak(Fraction(height), 0),
        grid=steps(8),
        dimension=2,
        norm=1,
        relation=REPLACE_ONE,
    )
    return VectorSmoothSensitivityMechanism(query=query, recipe=laplace(2, "1e-6", alpha="1.9", dimension=2))


@dataclass(frozen=True)
class Bug:
    """A wrong mechanism, its right twin, and worlds in which the difference shows."""

    name: str
    wrong: Any
    right: Any
    worlds: Worlds
    twin_worlds: Worlds


def pair(name: str, wrong: Recipe, right: Recipe, **reach: int) -> Bug:
    """Two recipes, each on its own worst pair."""
    first, small = worst_pair(wrong, **reach)
    second, other = worst_pair(right, **reach)
    return Bug(name, first, second, small, other)


def medians(name: str, wrong: Any) -> Bug:
    right = SmoothSensitivityMechanism(query=MEDIAN, recipe=POLYNOMIAL)
    return Bug(name, wrong, right, SMALL, SMALL)


BETA_OF_P_DIMENSIONS = Fraction(1 / (4 * (1 + 2 * math.log(2e6))))
BETA_AT_15 = Fraction(15 / (2 * math.log(200)))
BUGS = [
    pair(
        "p-dimensional Laplace noise without the 2",
        wrong_recipe(LaplaceLaw(), alpha=1, beta=BETA_OF_P_DIMENSIONS, event=ApproxDP(1, "1e-6")),
        laplace(1, "1e-6", beta=BETA_OF_P_DIMENSIONS),
        height=120,
    ),
    pair(
        "Laplace noise as for small epsilon at 15",
        wrong_recipe(LaplaceLaw(), alpha="7.5", beta=BETA_AT_15, event=ApproxDP(15, "0.01")),
        laplace(15, "0.01", alpha="7.5"),
        height=400,
        reach=2,
    ),
    pair(
        "a quarter and a whole of epsilon over gamma, at gamma 10",
        wrong_recipe(PowerLaw(Fraction(10)), alpha="1/40", beta="1/10", event=PureDP(1)),
        power(1, beta="1/10", gamma=10),
        height=4,
        reach=90,
    ),
    Bug(
        "noise in five dimensions with the constants of one",
        FarOrNear(wrong_recipe(PowerLaw(Fraction(4)), alpha="1/9", beta="1/9", event=PureDP(1)), 5, 10**5),
        FarOrNear(power(1, beta="1/18", gamma=4, dimension=5), 5, 10**5),
        worlds("ab", [1]),
        worlds("ab", [1]),
    ),
    Bug("Laplace noise for the l2 sensitivity", mirrored(12), mirrored(16), worlds([0, 8], [1]), worlds([0, 8], [1])),
    medians("a bound rounded to powers of two", with_bound(on_a_ladder)),
    medians("the local sensitivity itself", with_bound(local)),
    medians("half of a smooth bound", with_bound(halved)),
    medians(
        "publishing the scale", TellsItsScale(SmoothSensitivityMechanism(query=MEDIAN, recipe=POLYNOMIAL))
    ),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_verification_refutes_the_bug(bug: Bug) -> None:
    result = verify.check(bug.wrong, bug.worlds)
    assert result.violated
    assert result.lower > result.claimed


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.twin_worlds is not SMALL], ids=lambda bug: bug.name)
def test_verification_passes_the_right_twin(bug: Bug) -> None:
    assert verify.check(bug.right, bug.twin_worlds).holds


def test_verification_passes_the_smooth_sensitivity_of_the_median() -> None:
    assert verify.check(SmoothSensitivityMechanism(query=MEDIAN, recipe=POLYNOMIAL), SMALL).holds


def test_laplace_noise_without_the_2_has_a_delta_of_a_thousand_times_its_claim() -> None:
    result = verify.check(BUGS[0].wrong, BUGS[0].worlds)
    assert 1.2e-3 < float(result.lower) < 1.54e-3


def test_a_ladder_of_ratio_two_turns_one_into_thirteen() -> None:
    """Two neighbours on two steps of the ladder, looked at far out in the tail."""
    query = SmoothlyBoundedQuery(
        evaluate=lambda data: Fraction(4),
        bound=lambda data, beta: Peak(Fraction(data[0]), 0),
        grid=GRID,
        relation=REPLACE_ONE,
    )
    mechanism = SmoothSensitivityMechanism(query=query, recipe=POLYNOMIAL)
    result = verify.check(mechanism, worlds([1, 2], [1]))
    assert result.violated
    assert float(result.lower) > 11
