"""C01 and C08: whatever is in a column, numeric mechanisms stay on their grid, within their sensitivity, and quiet."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from subjects import ADD_REMOVE, BOTH, REPLACE_ONE, laplace

from discreet.balls import precision
from discreet.mechanisms import (
    Count,
    GaussianNoise,
    Grid,
    Histogram,
    Laplace,
    Mean,
    Proportion,
    Quantile,
    Sum,
    Variance,
    VectorGaussian,
    VectorLaplace,
    VectorMean,
)

SPECIALS = (
    math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 1.8e308, 1.7976931348623157e308, None, "", "x", "NaN", True,
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), datetime.date.min, datetime.date.max, 10**400, -(2**63),
    2**64, np.float32("nan"), np.datetime64("NaT"), b"\x00", 1j, [], "é" * 3000,
)  # fmt: skip
GRID = Grid(low=Fraction(-4), high=Fraction(11), step=Fraction(1, 4), default=Fraction(2))
USUAL: list[Any] = [1, 2.5, -3.0]


def numeric(relation: Any, noise: Any) -> list[Any]:
    """Every mechanism that reads a numeric column."""
    size = None if relation is ADD_REMOVE else len(USUAL) + 1
    return [
        Count(relation=relation, noise=noise),
        Sum(grid=GRID, relation=relation, noise=noise),
        Mean(grid=GRID, relation=relation, noise=noise, public_rows=size),
        Variance(grid=GRID, relation=relation, noise=noise, public_rows=size),
        Proportion(relation=relation, noise=noise, public_rows=size),
        Histogram(bins=(1, 2, None), relation=relation, noise=noise),
    ]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("special", SPECIALS, ids=lambda value: repr(value)[:12])
def test_a_special_value_moves_no_answer_by_more_than_its_sensitivity(special: Any, relation: Any) -> None:
    """Before noise, in exact arithmetic; as a list and, where NumPy takes it, as an array."""
    with_it, without = [*USUAL, special], USUAL if relation is ADD_REMOVE else [*USUAL, 3]
    for mechanism in numeric(relation, laplace(1)):
        for measurement in mechanism.measurements:
            before = measurement.query.evaluate(without)
            for column in (with_it, np.array(with_it, dtype=object)):
                after = measurement.query.evaluate(column)
                moved = sum(abs(a - b) for a, b in zip(before, after, strict=True))
                assert moved <= measurement.query.sensitivity.l1
                assert all(type(value) is int for value in after)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("special", SPECIALS, ids=lambda value: repr(value)[:12])
def test_a_special_value_is_answered_like_any_other(special: Any, relation: Any) -> None:
    """The same status and the same kind of answer: exact, finite, on the grid."""
    column = [*USUAL, special]
    for mechanism in numeric(relation, laplace(1)):
        usual, release = mechanism.release([*USUAL, 1]), mechanism.release(column)
        assert type(release.value) is type(usual.value)
        assert repr(release).count("±") == repr(usual).count("±")
        for value in release.value if isinstance(release.value, tuple) else (release.value,):
            assert math.isfinite(value)
    quantile = Quantile(quantile=Fraction(1, 3), epsilon=Fraction(1), grid=GRID, relation=relation).release(column)
    assert GRID.low <= quantile.value <= GRID.high
    rows = VectorMean(bound=Fraction(3), step=Fraction(1), dimension=2, relation=ADD_REMOVE, noise=laplace(1)).release(
        [[1, special], [2, 2]]
    )
    assert all(math.isfinite(value) for value in rows.value)


@pytest.mark.parametrize("noise", [laplace("1/2"), GaussianNoise.for_rho("1/8")])
def test_every_answer_is_a_multiple_of_the_public_step(noise: Any) -> None:
    """C01: for one row more or less and for a tiny change, all answers lie on one grid."""
    for data in ([0], [1], [2**-30], [1 / 3], [4 / 3], []):
        for mechanism, step in (
            (Sum(grid=GRID, relation=ADD_REMOVE, noise=noise), GRID.step),
            (Mean(grid=GRID, relation=REPLACE_ONE, noise=noise, public_rows=1), GRID.step),
            (Count(relation=ADD_REMOVE, noise=noise), Fraction(1)),
        ):
            if data or mechanism.relation is ADD_REMOVE:
                values = [mechanism.release(data).value for _ in range(40)]
                assert all((value / step).denominator == 1 for value in map(Fraction, values))


@pytest.mark.parametrize("noise", [laplace(1), GaussianNoise.for_rho("1/2")])
def test_what_one_neighbour_can_answer_the_other_can_too(noise: Any) -> None:
    """C01: by the exact law, every answer that is listed for one has a chance above zero for the other."""
    mechanism = Sum(grid=Grid(low=Fraction(0), high=Fraction(3), step=Fraction(1), default=Fraction(0)),
                    relation=ADD_REMOVE, noise=noise)  # fmt: skip
    with precision(256):
        one, other = mechanism.distribution([3, 1]), mechanism.distribution([1])
        law = mechanism.noise.law(mechanism.measurements[0].sensitivity)
        for (value,), mass in one.masses.items():
            assert mass > 0
            assert law.pmf(value - 1) > 0
        assert set(other.masses) & set(one.masses)


@pytest.mark.statistical
def test_outputs_of_neighbours_do_not_betray_their_origin() -> None:
    """C01 at test size: answers that only one of two neighbours gave are as rare as the tails."""
    mechanism = Laplace(sensitivity=1, scale=Fraction(1), relation=ADD_REMOVE)
    ones, others = ({mechanism.release(answer).value for _ in range(4000)} for answer in (0, 1))
    shared = ones & others
    assert {value for value in ones | others if -3 <= value <= 4} <= shared


@pytest.mark.slow
@pytest.mark.parametrize("pair", [(0, 1), (0, 2**-30), (1 / 3, 4 / 3)])
@pytest.mark.parametrize(
    ("kind", "noise"),
    [
        (VectorLaplace, {"scale": Fraction(1), "sensitivity": 1}),
        (VectorGaussian, {"variance": Fraction(16), "squared_sensitivity": Fraction(1)}),
    ],
)
def test_the_share_of_one_sided_outputs_is_tiny(kind: Any, noise: dict[str, Any], pair: tuple[float, float]) -> None:
    """C01 at full size: of 200,000 answers of each neighbour, none that the other gives too is given by one only.

    "Gives too" means with a chance of 2e-4 or more; such an answer is missed with a chance of e^-40. Float noise, the
    wrong neighbour, shares hardly an answer.
    """
    grid = Grid(low=Fraction(-4), high=Fraction(11), step=Fraction(1), default=Fraction(2))
    mechanism = kind(dimension=200_000, relation=ADD_REMOVE, **noise)
    releases = [mechanism.release([grid.index(x)] * 200_000) for x in pair]
    ones, others = (np.array(release.value) for release in releases)
    with precision(64):
        likely = [k for k in range(-40, 41) if releases[0].noise.pmf(k) > 2e-4]  # type: ignore[union-attr]
    for sample, other, centre in ((ones, others, grid.index(pair[1])), (others, ones, grid.index(pair[0]))):
        assert np.isin(np.array(likely) + centre, other).all()
        assert (~np.isin(sample, other)).mean() < 0.01
    floats = [np.random.default_rng(seed).laplace(x, size=200_000) for seed, x in enumerate(pair)]
    assert (~np.isin(floats[0], floats[1])).mean() > 0.99


def test_sums_are_the_same_in_any_order_and_split() -> None:
    """C13 of the catalogue: exact integers, so order and blocks cannot matter."""
    rng = np.random.default_rng(11)
    pool = np.array([-4.0, 11.0, np.nextafter(11, 12), 2.0**53 + 1, 1e308, 5e-324, -1e-300, 0.125, 0.375, np.nan])
    data = rng.choice(pool, 5000)
    query = Sum(grid=GRID, relation=ADD_REMOVE, noise=laplace(1)).measurements[0].query.evaluate
    total = query(data)
    for _ in range(20):
        assert query(rng.permutation(data)) == total
    assert query(data.tolist()) == total
    assert sum(query(part)[0] for part in np.array_split(data, 7)) == total[0]


def test_a_column_full_of_the_largest_integers_does_not_overflow() -> None:
    """C14 of the catalogue: bounds of 2^52 steps and a hundred thousand rows."""
    grid = Grid(low=-Fraction(2**52), high=Fraction(2**52), step=Fraction(1), default=Fraction(0))
    for fill in (2**63 - 1, -(2**63)):
        data = np.full(100_000, fill, dtype=np.int64)
        for mechanism in (
            Sum(grid=grid, relation=ADD_REMOVE, noise=laplace(1)),
            Variance(grid=grid, relation=REPLACE_ONE, noise=laplace(1), public_rows=100_000),
        ):
            exact = mechanism.measurements[0].query.evaluate(data)[0]
            assert exact in (100_000 * 2**52, -100_000 * 2**52, 0)
            assert math.isfinite(mechanism.release(data).value)
