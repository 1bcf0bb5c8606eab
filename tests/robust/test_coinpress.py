"""Means without tight bounds: totals, sensitivities by all neighbours, bounds a million times too wide, and mutants."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from robust.regression_worlds import ADD_REMOVE, BOTH, REPLACE_ONE, small

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.lab.verify import sensitivity, squared_l2
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.measurement import Measurement
from discreet.privacy.relation import Relation
from discreet.robust import coinpress_mean, location_and_scale
from discreet.robust.means_without_bounds import CoinPressMean, LocationAndScale, _Window, as_floats

NOISE = GaussianNoise.for_rho(Fraction(1, 2))
FAR = (1e6, -1e6, float("nan"), 0.0, 0.5)
POINTS = (*product((0.0, 3.0, -4.0), (0.0, 4.0)), (float("inf"), 0.0), (-1e300, 1e300), (float("nan"), 1.0))


def pressed(relation: Relation, size: int | None = 2, **fields: Any) -> CoinPressMean:
    known: dict[str, Any] = {"centre": (0, 0), "radius": Fraction(1000), "deviation": Fraction(1), "noise": NOISE}
    return CoinPressMean(relation=relation, public_rows=None if relation is ADD_REMOVE else size, **(known | fields))


def located(relation: Relation, size: int | None = 2, **fields: Any) -> LocationAndScale:
    known: dict[str, Any] = {"grid": Grid.between(-1000, 1000, step=1), "noise": NOISE}
    return LocationAndScale(relation=relation, public_rows=None if relation is ADD_REMOVE else size, **(known | fields))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("reach", [0.7, 5.0, 1000.0])
def test_every_round_moves_by_its_sensitivity_at_most(reach: float, relation: Relation) -> None:
    """Rows around any centre, in a ball of any size: one of them moves the sum by the radius, or by two."""
    mechanism = pressed(relation)
    mean = mechanism._round(reach, Fraction(1, 2))
    world = small(range(len(POINTS)), relation, 2)
    for centre in ((0.0, 0.0), (1.5, -700.25)):

        def total(data: Any, centre: tuple[float, float] = centre) -> Any:
            shifted = as_floats([POINTS[place] for place in data], 2) - np.array(centre)
            return mean.measurements[0].query.evaluate(shifted)

        found = sensitivity(total, world, relation=relation, distance=squared_l2).value
        claimed = mean.measurements[0].query.sensitivity.squared_l2
        assert 0 < found <= claimed
        assert claimed == (mean.radius * (1 if relation is ADD_REMOVE else 2)) ** 2


def test_replacing_billed_as_adding_is_refuted() -> None:
    mean = pressed(REPLACE_ONE)._round(5.0, Fraction(1, 2))
    opposite = ((1e9, 0.0), (-1e9, 0.0))

    def total(data: Any) -> Any:
        return mean.measurements[0].query.evaluate(np.array([opposite[place] for place in data]))

    found = sensitivity(total, small(range(2), REPLACE_ONE, 2), relation=REPLACE_ONE, distance=squared_l2).value
    assert found > 3 * mean.radius**2


def test_bounds_taken_from_the_data_are_refuted() -> None:
    """A window around the data themselves: what one value moves grows with that value, the claim does not."""
    mechanism = located(REPLACE_ONE, 3, grid=Grid.between(-(10**6), 10**6, step=1))

    def spread(data: Any) -> int:
        values = np.array(data)
        window = _Window(int(np.median(values)), max(1, int(values.max() - values.min())))
        mean, _ = mechanism.measured(window)
        return int(mean.measurements[0].query.evaluate(values)[0])

    claimed = mechanism.measured(_Window(0, 1))[0].measurements[0].query.sensitivity.l1
    found = sensitivity(spread, small((0, 1, 10**5), REPLACE_ONE, 3), relation=REPLACE_ONE).value
    assert found > 1000 * claimed


@pytest.mark.parametrize("relation", BOTH)
def test_total_is_the_sum_of_all_rounds(relation: Relation) -> None:
    mechanism = pressed(relation)
    spent = sum(
        measurement.event.mu_squared
        for share in mechanism.shares
        for measurement in mechanism._round(3.0, share).measurements
    )
    assert spent == mechanism.event.mu_squared == 1
    scale = located(relation, 5)
    parts = [part for one in scale.measured(_Window(0, 7)) for part in one.measurements]
    measured = sum(part.event.mu_squared for part in parts)
    counted = scale.rounds * scale.zooms.event.mu_squared + scale.tails.event.mu_squared
    assert measured + counted == scale.event.mu_squared == 1


def drawn(size: int, dimension: int, place: float) -> Any:
    return np.random.default_rng(9).normal(size=(size, dimension)) + place


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("dimension", [1, 5])
def test_mean_is_found_within_a_million_deviations(dimension: int, relation: Relation) -> None:
    rows = drawn(5000, dimension, 300_000.0)
    release = coinpress_mean(
        rows, centre=[0] * dimension, radius=10**6, deviation=1, relation=relation, rho=Fraction(1, 2)
    )
    error = np.array([float(value) for value in release.value]) - rows.mean(axis=0)
    # The noise of the last round is below 0.004 in a coordinate; five such balls would still be half of this.
    assert np.linalg.norm(error) < 0.1 * math.sqrt(dimension)
    assert release.cost == "ρ = 0.5"


def test_one_round_with_such_bounds_is_useless() -> None:
    rows = drawn(5000, 1, 300_000.0)
    once = CoinPressMean(
        centre=(0,), radius=Fraction(10**6), deviation=Fraction(1), relation=ADD_REMOVE, noise=NOISE, shares=(1,)
    )
    assert max(abs(float(once.release(rows).value[0]) - 300_000) for _ in range(20)) > 10


@pytest.mark.parametrize("relation", BOTH)
def test_mean_and_deviation_are_found_within_a_million_deviations(relation: Relation) -> None:
    values = 3.0 * drawn(5000, 1, 0.0).ravel() - 123_456.0
    releases = [
        location_and_scale(values, bounds=(-(10**6), 10**6), relation=relation, rho=Fraction(1, 2)).as_dict()
        for _ in range(7)
    ]
    # One release in 300 stops at too wide a window; that four of seven do has a chance below 1e-8.
    mean, deviation = (sorted(float(found[name]) for found in releases)[3] for name in ("mean", "deviation"))
    assert mean == pytest.approx(values.mean(), abs=0.15)
    assert deviation == pytest.approx(values.std(), rel=0.1)


def test_a_column_of_one_value_is_found_too() -> None:
    release = location_and_scale([7] * 5000, bounds=(-(10**6), 10**6), relation=ADD_REMOVE, rho=1)
    assert float(release.value[0]) == pytest.approx(7, abs=1)
    assert float(release.value[1]) < 1


def test_windows_narrow_to_the_middle_half() -> None:
    counts = np.zeros(65, dtype=np.int64)
    counts[[10, 40]] = 500
    window = _Window(0, 6400).narrowed(counts)
    assert window.centre - window.half <= -6400 + 200 * 10
    assert window.centre + window.half >= -6400 + 200 * 41
    assert window.half < 6400
    assert _Window(5, 8).narrowed(np.zeros(65, dtype=np.int64)) == _Window(5, 8)
    assert _Window(0, 1).narrowed(counts).half == 1


def test_the_last_window_stays_within_the_bounds() -> None:
    mechanism = located(REPLACE_ONE)
    for centre, half in ((-1000, 400), (1000, 1), (0, 3000), (999, 5000)):
        mean, variance = mechanism.measured(_Window(centre, half))
        assert mean.grid == variance.grid
        assert -1000 <= mean.grid.low < mean.grid.high <= 1000
        assert mean.grid.low <= max(centre - half, -1000)
        assert mean.grid.high >= min(centre + half, 1000)


def test_a_number_alone_is_a_row_of_one() -> None:
    assert as_floats([1, 2.5, None], 1)[:2].tolist() == [[1.0], [2.5]]
    assert as_floats(np.array([1, 2]), 1).tolist() == [[1.0], [2.0]]


class _Broken:
    """A row that fails with a text of its own."""

    def __iter__(self) -> Any:
        raise ValueError("a secret")


def test_what_is_no_number_counts_as_the_centre() -> None:
    rows: list[Any] = [[1, "x"], None, [1, 2, 3], [10**400, -1], _Broken()]
    read = as_floats(rows, 2)
    assert np.isnan(read[4]).all()
    assert np.isnan(as_floats([_Broken()], 1)).all()
    assert read[0, 0] == 1.0
    assert np.isnan(read[0, 1])
    assert np.isnan(read[1:3]).all()
    assert read[3].tolist() == [math.inf, -1.0]
    assert len(pressed(ADD_REMOVE).release(rows).value) == 2
    assert len(located(ADD_REMOVE).release([None, "x", float("nan"), 10**400]).value) == 2


def test_they_are_paid_for_before_anything_is_read() -> None:
    class Purse:
        def charge(
            self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
        ) -> None:
            raise dp.BudgetExceeded(asked=event, left="nothing")

    class Unread(list[float]):
        def __iter__(self) -> Any:
            raise AssertionError("read before it was paid for")

    with pytest.raises(dp.BudgetExceeded):
        coinpress_mean("none", centre=[0], radius=1, deviation=1, relation=ADD_REMOVE, rho=1, session=Purse())
    with pytest.raises(dp.BudgetExceeded):
        location_and_scale(Unread([1.0]), bounds=(0, 1), relation=ADD_REMOVE, rho=1, session=Purse())


@pytest.mark.parametrize(
    "bad",
    [
        {"centre": ()},
        {"centre": (float("nan"),)},
        {"radius": 0},
        {"radius": float("inf")},
        {"deviation": 0},
        {"deviation": "-1"},
        {"shares": (Fraction(1, 2),) * 3},
        {"shares": ()},
        {"shares": (Fraction(1, 2), Fraction(3, 2), Fraction(-1))},
        {"relation": None},
        {"noise": GaussianNoise.for_rho(Fraction(1, 10**40))},
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        pressed(bad.pop("relation", ADD_REMOVE), **bad)


@pytest.mark.parametrize(
    "bad", [{"rounds": 0}, {"rounds": 65}, {"size": 1}, {"noise": GaussianNoise.for_rho(Fraction(1, 10**40))}]
)
def test_nonsense_scales_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        located(REPLACE_ONE, **bad)


def test_sizes_must_be_the_declared_ones() -> None:
    with pytest.raises(InvalidParameter):
        pressed(REPLACE_ONE, 3).release([[0, 0]])
    with pytest.raises(InvalidParameter):
        located(REPLACE_ONE, 3).release([0])
    with pytest.raises(InvalidParameter, match="Gaussian"):
        location_and_scale([1, 2], bounds=(0, 1), relation=ADD_REMOVE, epsilon=1)


@pytest.mark.parametrize("relation", BOTH)
def test_every_number_that_a_round_asks_for_gets_noise(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of rows too, where it is private."""
    asked: list[Measurement] = []

    def measure(one: Measurement, data: Any) -> tuple[int, ...]:
        asked.append(one)
        return plain(one, data)

    plain = Measurement.measure
    monkeypatch.setattr(Measurement, "measure", measure)
    subject = pressed(relation)
    subject.release(np.zeros((2, 2)))
    assert len(asked) == len(subject.shares) * (2 if relation is ADD_REMOVE else 1)
