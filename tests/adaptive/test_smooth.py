"""The smooth-sensitivity mechanism: verified on all small data sets and on worst pairs, and silent about its scale."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from smooth_worlds import (
    ADD_REMOVE,
    GRID,
    HALVES,
    REPLACE_ONE,
    VALUES,
    LowerMedian,
    bounded,
    steps,
    worst_pair,
)
from statistical import expected_p_value, fits, rejects

from discreet.adaptive.approximate_recipes import gaussian, laplace, laplace_log_normal
from discreet.adaptive.noise_recipes import Recipe, polynomial, power, student
from discreet.adaptive.smooth_mechanisms import (
    SmoothlyBoundedVectorQuery,
    SmoothSensitivityMechanism,
    VectorSmoothSensitivityMechanism,
    computed_beta,
    noise_scale,
)
from discreet.adaptive.smooth_query import Peak, SmoothlyBoundedQuery
from discreet.adaptive.smoothness_check import check_smoothness
from discreet.balls import ball, precision
from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.privacy.events import ZCDP, Event, PureDP

RECIPES = {
    "polynomial": polynomial(1, beta="0.1"),
    "steep polynomial": polynomial(3, beta="0.01"),
    "power": power(1, beta="0.1"),
    "student": student(1, beta="0.1"),
    "laplace": laplace(1, "1e-6", alpha="0.5"),
    "gaussian": gaussian(1, "1e-6", beta="0.016"),
    "laplace log-normal": laplace_log_normal("0.5", beta="0.1"),
}
SIZES = {"polynomial": range(1, 7), "laplace": range(1, 6)}
LONG = {"power", "student", "laplace log-normal"}  # Each point of their laws is a sum or an incomplete integral.


def median(name: str, relation: Any = REPLACE_ONE, **fields: Any) -> SmoothSensitivityMechanism:
    return SmoothSensitivityMechanism(query=LowerMedian(relation, **fields), recipe=RECIPES[name])


@pytest.mark.parametrize("name", RECIPES)
def test_a_median_keeps_its_claim_on_all_small_data_sets_when_a_value_is_replaced(name: str) -> None:
    small = worlds(VALUES, [2] if name in LONG else SIZES.get(name, [5]))
    assert verify.check(median(name), small).holds


@pytest.mark.parametrize("name", RECIPES)
def test_a_median_keeps_its_claim_on_all_small_data_sets_when_a_value_comes_or_goes(name: str) -> None:
    small = worlds(VALUES, range(3) if name in LONG else range(5))
    assert verify.check(median(name, ADD_REMOVE), small).holds


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_median_keeps_its_claim_on_all_data_sets_of_up_to_six_values(name: str) -> None:
    assert verify.check(median(name), worlds(VALUES, range(1, 7))).holds
    assert verify.check(median(name, ADD_REMOVE), worlds(VALUES, range(6))).holds


# How high the bound is, how far the window reaches, and how much of the claim the worst pair shows at least.
WORST = {
    "polynomial": (20, 8, 0.999),
    "steep polynomial": (110, 8, 0.99),
    "power": (20, 8, 0.85),
    "student": (20, 8, 0.75),
    "laplace": (77, 16, 0.9),
    "gaussian": (63, 20, 0.9),
    "laplace log-normal": (20, 4, 0.3),
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_worst_pair_keeps_the_claim_and_shows_that_it_is_close(name: str) -> None:
    height, reach, share = WORST[name]
    mechanism, small = worst_pair(RECIPES[name], height=height, reach=reach)
    result = verify.check(mechanism, small)
    assert check_smoothness(mechanism.query, small, beta=mechanism.recipe.beta).holds
    assert result.holds, str(result)
    assert float(result.lower) > share * float(result.claimed)


def test_concentrated_noise_keeps_its_renyi_claim() -> None:
    mechanism, small = worst_pair(RECIPES["laplace log-normal"], height=20)
    assert mechanism.event == ZCDP("0.5")
    assert verify.check_renyi(mechanism, small, orders=[Fraction(3, 2), 2, 8]).holds
    assert verify.check_renyi(median("laplace log-normal"), worlds(VALUES, [3]), orders=[2, 8]).holds


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["polynomial", "laplace", "laplace log-normal"])
def test_a_release_follows_its_distribution(name: str) -> None:
    mechanism, data, draws = median(name, grid=HALVES), (0, 0, 1, 3, 3), 1000
    narrower = dataclasses.replace(mechanism.recipe, alpha=2 * mechanism.recipe.alpha)
    with precision(128):
        law = mechanism.distribution(data).masses
        other = dataclasses.replace(mechanism, recipe=narrower).distribution(data).masses
    places = {outcome: place for place, outcome in enumerate(law)}
    truth, wrong = (shares([listed.get(key, 0) for key in places]) for listed in (law, other))
    sample = [placed(mechanism.release(data).value / HALVES.step, places) for _ in range(draws)]
    assert fits(sample, truth)
    assert expected_p_value(truth, wrong, draws) < 1e-30
    assert rejects(sample, wrong)


def shares(masses: list[Any]) -> list[float]:
    floats = [max(0.0, float(mass)) for mass in masses]
    return [mass / math.fsum(floats) for mass in floats]


def placed(value: Any, places: dict[Any, int]) -> int:
    if value in places:
        return places[value]
    return next(place for key, place in places.items() if isinstance(key, tuple) and key[0] <= value <= key[1])


class Purse:
    """Pays, or refuses, and notes what it was asked."""

    def __init__(self, *, empty: bool = False) -> None:
        self.charged: list[tuple[Event, Any]] = []
        self._empty = empty

    def charge(
        self, event: Event, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if self._empty:
            raise BudgetExceeded(asked=event, left=0)
        self.charged.append((event, relation))


def test_a_release_is_paid_for_before_data_is_read() -> None:
    mechanism, purse = median("polynomial"), Purse()
    assert mechanism.release([1, 2, 3], session=purse).event == PureDP(1)
    assert purse.charged == [(PureDP(1), REPLACE_ONE)]

    def unread(data: Any) -> Fraction:
        raise AssertionError("data was read")

    query = bounded(unread, lambda data, beta: Peak(Fraction(1), 0))
    with pytest.raises(BudgetExceeded):
        SmoothSensitivityMechanism(query=query, recipe=RECIPES["polynomial"]).release([1], session=Purse(empty=True))


def test_a_release_tells_nothing_about_its_scale() -> None:
    release = median("polynomial").release([1, 2, 3])
    assert release.noise is None
    assert release.limits == (GRID.low, GRID.high)
    for ask in (release.interval, release.plus_minus):
        with pytest.raises(Refused, match="private"):
            ask()
    # Neighbours have other scales; all that is told but the value is the same.
    other = dataclasses.replace(median("polynomial").release([8, 8, 8, 8, 8]), value=release.value)
    assert repr(other) == repr(release)
    assert other.to_json() == release.to_json()
    assert other == release


def test_a_release_lies_on_the_grid_and_near_the_value() -> None:
    mechanism = median("polynomial", grid=HALVES)
    found = [mechanism.release([2] * 401).value for _ in range(20)]
    assert all((value / HALVES.step).denominator == 1 for value in found)
    assert all(abs(value - 2) <= 1 for value in found)  # The bound is 4 e^-20.


def test_the_prediction_comes_from_a_public_guess() -> None:
    mechanism = median("polynomial", grid=HALVES)
    assert mechanism.predicted_half_width(0) == HALVES.step / 2
    assert float(mechanism.predicted_half_width(2)) == pytest.approx(2 * RECIPES["polynomial"].half_width() + 0.25)
    with pytest.raises(InvalidParameter):
        mechanism.predicted_half_width(-1)


def test_a_bound_known_to_a_factor_is_raised_and_computed_for_less_beta() -> None:
    """Each data set gets the worst error of its own: the claim still holds, and not without the correction."""
    recipe, error = polynomial(1, beta="0.1"), Fraction(3, 100)
    heights = {"a": Fraction(40) * (1 + error), "b": Fraction(40) / (1 + error)}
    distances = {"a": 0, "b": 1}

    def query(told: Fraction) -> SmoothlyBoundedQuery:
        return SmoothlyBoundedQuery(
            evaluate=lambda data: Fraction(160 if data[0] == "a" else 196),
            bound=lambda data, beta: Peak(heights[data[0]], distances[data[0]]),
            grid=steps(320),
            relation=REPLACE_ONE,
            relative_error=told,
        )

    honest = SmoothSensitivityMechanism(query=query(error), recipe=recipe)
    assert computed_beta(honest.query, recipe) == Fraction("0.1") - 2 * error
    with precision(128):
        scale = noise_scale(honest.query, recipe, Peak(Fraction(40), 1))
        assert float(scale * ball(recipe.alpha)) == pytest.approx(40 * math.exp(-0.04) * 1.03, rel=1e-12)
    assert verify.check(honest, worlds("ab", [1])).holds
    assert verify.check(SmoothSensitivityMechanism(query=query(Fraction(0)), recipe=recipe), worlds("ab", [1])).violated


def test_an_error_of_the_value_adds_to_the_bound() -> None:
    """Values that are off by up to three steps, apart by six more than the bound says."""
    recipe = polynomial(1, beta="0.1")

    def query(told: int) -> SmoothlyBoundedQuery:
        return bounded(
            lambda data: Fraction(57 if data[0] == "a" else 103),
            lambda data, beta: Peak(Fraction(40), 0),
            grid=steps(160),
            value_error=Fraction(told),
        )

    assert verify.check(SmoothSensitivityMechanism(query=query(3), recipe=recipe), worlds("ab", [1])).holds
    assert verify.check(SmoothSensitivityMechanism(query=query(0), recipe=recipe), worlds("ab", [1])).violated


def test_a_query_and_a_recipe_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="dimension"):
        SmoothSensitivityMechanism(query=LowerMedian(), recipe=polynomial(1, beta="0.1", dimension=2))
    with pytest.raises(InvalidParameter, match="recipe"):
        SmoothSensitivityMechanism(query=LowerMedian(), recipe=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="larger one"):
        SmoothSensitivityMechanism(query=LowerMedian(relative_error=Fraction(1, 10)), recipe=polynomial(1, beta="0.1"))
    with pytest.raises(InvalidParameter, match="relation"):
        bounded(lambda data: Fraction(0), lambda data, beta: Peak(Fraction(1), 0), relation="replace one")
    with pytest.raises(InvalidParameter, match="negative"):
        bounded(lambda data: Fraction(0), lambda data, beta: Peak(Fraction(1), 0), value_error=-1)


def two_medians(**fields: Any) -> SmoothlyBoundedVectorQuery:
    """The median of a value and of its mirror image: both move by the same, the sum by twice the bound."""
    one = LowerMedian()

    def values(data: Any) -> list[Fraction]:
        return [one.value(data), GRID.last - one.value(data)]

    def bound(data: Any, beta: Fraction) -> Peak:
        peak = one.smooth_bound(data, beta)
        return Peak(2 * peak.height, peak.distance)

    given = {"dimension": 2, "norm": 1, "relative_error": one.relative_error} | fields
    return SmoothlyBoundedVectorQuery(evaluate=values, bound=bound, grid=GRID, relation=REPLACE_ONE, **given)


VECTOR_RECIPES = {
    "polynomial": polynomial(8, beta="0.1", dimension=2),
    "laplace": laplace(2, "1e-3", alpha=1, dimension=2),
    "gaussian": gaussian(2, "1e-3", beta="0.05", dimension=2),
}


@pytest.mark.parametrize("name", VECTOR_RECIPES)
def test_two_numbers_keep_their_claim_on_small_data_sets(name: str) -> None:
    mechanism = VectorSmoothSensitivityMechanism(query=two_medians(), recipe=VECTOR_RECIPES[name])
    assert verify.check(mechanism, worlds((0, 3, 8), [2])).holds


def test_two_numbers_are_released_on_the_grid_and_paid_for() -> None:
    mechanism, purse = VectorSmoothSensitivityMechanism(query=two_medians(), recipe=VECTOR_RECIPES["laplace"]), Purse()
    release = mechanism.release([1, 3, 6], session=purse)
    assert len(release.value) == 2
    assert all(part.denominator == 1 for part in release.value)
    assert purse.charged == [(mechanism.event, REPLACE_ONE)]
    with pytest.raises(Refused, match="private"):
        release.interval()


def test_the_norm_of_a_vector_query_must_be_that_of_the_recipe() -> None:
    gauss, lap = VECTOR_RECIPES["gaussian"], VECTOR_RECIPES["laplace"]
    assert VectorSmoothSensitivityMechanism(query=two_medians(), recipe=gauss).recipe.norm == 2
    assert VectorSmoothSensitivityMechanism(query=two_medians(norm=2), recipe=gauss).query.norm == 2
    with pytest.raises(InvalidParameter, match="l1"):
        VectorSmoothSensitivityMechanism(query=two_medians(norm=2), recipe=lap)
    with pytest.raises(InvalidParameter, match="dimension 3"):
        VectorSmoothSensitivityMechanism(query=two_medians(dimension=3), recipe=lap)
    with pytest.raises(InvalidParameter, match="norm"):
        two_medians(norm=3)


def test_a_vector_query_that_returns_another_length_is_refused() -> None:
    query = SmoothlyBoundedVectorQuery(
        evaluate=lambda data: [Fraction(0)],
        bound=lambda data, beta: Peak(Fraction(1), 0),
        grid=GRID,
        dimension=2,
        norm=1,
        relation=REPLACE_ONE,
    )
    with pytest.raises(InvalidParameter, match="as many numbers"):
        VectorSmoothSensitivityMechanism(query=query, recipe=VECTOR_RECIPES["laplace"]).release([1])


@dataclass(frozen=True)
class Untouched:
    """A bound of nothing at all, for a constant."""

    def enclose(self, beta: Fraction) -> Any:
        return ball(0)


def test_a_constant_is_released_as_it_is() -> None:
    query = bounded(lambda data: Fraction(5), lambda data, beta: Untouched())
    mechanism = SmoothSensitivityMechanism(query=query, recipe=RECIPES["gaussian"])
    assert {mechanism.release([1]).value for _ in range(8)} == {Fraction(5)}
    assert verify.check(mechanism, worlds([0, 1], [1])).holds


def test_recipes_differ_in_what_they_cost_and_how_wide_they_are() -> None:
    """At one beta the polynomial recipe is the narrowest of the pure ones."""
    widths = {name: RECIPES[name].half_width() for name in ("polynomial", "power", "student")}
    assert min(widths, key=widths.__getitem__) == "polynomial"
    assert all(isinstance(recipe, Recipe) for recipe in RECIPES.values())
