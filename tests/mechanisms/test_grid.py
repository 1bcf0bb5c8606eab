"""The public grid: total, exact, one value at a time, the same in any order."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.frames.column import Column
from discreet.mechanisms import Grid
from discreet.mechanisms.grid import exact_square_sum, exact_sum

CENTS = Grid(low=Fraction(-3), high=Fraction(10), step=Fraction(1, 100), default=Fraction(1))
EIGHTHS = Grid(low=Fraction(-3), high=Fraction(10), step=Fraction(1, 8), default=Fraction(1))
SEVENTHS = Grid(low=Fraction(-3), high=Fraction(10), step=Fraction(1, 7), default=Fraction(1))
TENS = Grid(low=Fraction(-30), high=Fraction(100), step=Fraction(10), default=Fraction(10))
WIDE = Grid(low=-(Fraction(2) ** 52), high=Fraction(2) ** 52, step=Fraction(1), default=Fraction(0))
THIRDS = Grid(low=-(Fraction(2) ** 50), high=Fraction(2) ** 50, step=Fraction(1, 3), default=Fraction(0))
GRIDS = (CENTS, EIGHTHS, SEVENTHS, TENS, WIDE, THIRDS)

SPECIAL_FLOATS = (
    math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e308, -1e308,
    1.7976931348623157e308, 0.1, 0.125, 0.005, 0.015, -0.005, 2.5, 3.5, 2.0**53, 2.0**53 + 2, -(2.0**52), 1e22,
    15.0, 25.0, 35.0,
)  # fmt: skip


def naive(grid: Grid, value: float) -> int:
    """The rule in one line of rationals: clamp, divide, round half to even."""
    if math.isnan(value):
        return int(grid.default / grid.step)
    if math.isinf(value):
        return int((grid.high if value > 0 else grid.low) / grid.step)
    return round(min(max(Fraction(value), grid.low), grid.high) / grid.step)


@pytest.mark.parametrize("grid", GRIDS)
def test_floats_are_placed_by_their_exact_value(grid: Grid) -> None:
    near = [
        step
        for middle in range(-40, 40)
        for half in [float((middle + Fraction(1, 2)) * grid.step)]
        for step in (half, math.nextafter(half, math.inf), math.nextafter(half, -math.inf))
    ]
    values = [*SPECIAL_FLOATS, *near]
    expected = [naive(grid, value) for value in values]
    assert grid.indices(np.array(values)).tolist() == expected
    assert [grid.index(value) for value in values] == expected
    assert grid.indices(values).tolist() == expected


@given(st.lists(st.floats(), max_size=20), st.sampled_from(GRIDS))
def test_floats_are_placed_exactly_for_all_floats(values: list[float], grid: Grid) -> None:
    assert grid.indices(np.array(values, dtype=np.float64)).tolist() == [naive(grid, value) for value in values]


@given(st.lists(st.floats(min_value=-3, max_value=10), max_size=50), st.fractions(min_value="1/999", max_value=1))
def test_floats_are_placed_exactly_for_all_steps(values: list[float], step: Fraction) -> None:
    grid = Grid(low=-3000 * step, high=9999 * step, step=step, default=Fraction(0))
    assert grid.indices(np.array(values, dtype=np.float64)).tolist() == [naive(grid, value) for value in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.sampled_from(GRIDS))
def test_integers_are_placed_exactly_for_all_integers(values: list[int], grid: Grid) -> None:
    expected = [round(min(max(Fraction(value), grid.low), grid.high) / grid.step) for value in values]
    assert grid.indices(np.array(values, dtype=np.int64)).tolist() == expected
    assert grid.indices(values).tolist() == expected
    assert grid.indices(Column(values)).tolist() == expected


@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "longdouble"])
def test_all_numeric_types_agree_with_single_values(kind: str) -> None:
    values = np.array([0, 1, 1, 0, 100, 3]).astype(kind)
    for grid in GRIDS:
        assert grid.indices(values).tolist() == [grid.index(value) for value in values.tolist()]


def test_unsigned_integers_beyond_63_bits_are_clamped() -> None:
    values = np.array([2**64 - 1, 2**63, 5], dtype=np.uint64)
    assert CENTS.indices(values).tolist() == [1000, 1000, 500]
    huge = Grid(low=Fraction(0), high=Fraction(2) ** 66, step=Fraction(2) ** 20, default=Fraction(0))
    assert huge.indices(values).tolist() == [2**44, 2**43, 0]


@pytest.mark.parametrize(
    "value",
    [None, "", "x", "nan", "inf", "1e99999", b"1", Decimal("NaN"), Decimal("sNaN"), datetime.date.min,
     datetime.date.max, 1j, [], {}, object(), np.datetime64("NaT"), np.datetime64("2020-01-01"), math.nan],
)  # fmt: skip
def test_what_is_no_number_becomes_the_default(value: object) -> None:
    for grid in GRIDS:
        assert grid.index(value) == grid.default / grid.step
        assert grid.indices([value, 2]).tolist() == [grid.default / grid.step, grid.index(2)]


@pytest.mark.parametrize(
    ("value", "cents"),
    [("2.5", 250), (" 2.5 ", 250), ("5/2", 250), (Decimal("2.505"), 250), (Decimal("2.515"), 252), (True, 100),
     (np.bool_(True), 100), (np.float32(0.5), 50), (np.int8(-2), -200), (Fraction(1, 3), 33),
     (Decimal("Infinity"), 1000), (Decimal("-1e999999"), -300), (Decimal("1e-999999"), 0), ("9" * 1500, 1000),
     (10**400, 1000)],
)  # fmt: skip
def test_every_kind_of_number_is_read_exactly(value: Any, cents: int) -> None:
    assert CENTS.index(value) == cents


def test_dates_bytes_and_complex_arrays_become_the_default() -> None:
    for values in (np.array(["2020-01-01"], "M8[D]"), np.array([b"1"]), np.array([1j]), np.array([3], "m8[s]")):
        assert CENTS.indices(values).tolist() == [100]


def test_missing_rows_become_the_default() -> None:
    column = Column(np.array([2.0, 3.0]), np.array([False, True]))
    assert CENTS.indices(column).tolist() == [200, 100]


@given(st.lists(st.integers(-(2**52), 2**52), max_size=1500), st.randoms())
@settings(max_examples=30)
def test_sums_are_exact_and_the_same_in_any_order_for_all_indices(values: list[int], order: Any) -> None:
    array = np.array(values, dtype=np.int64)
    assert exact_sum(array) == sum(values)
    assert exact_square_sum(array) == sum(value**2 for value in values)
    order.shuffle(values)
    assert exact_sum(np.array(values, dtype=np.int64)) == exact_sum(array)


def test_sums_of_extreme_indices_do_not_overflow() -> None:
    worst = np.full(10_000, 2**52)
    assert exact_sum(worst) == 10_000 * 2**52
    assert exact_sum(-worst) == -10_000 * 2**52
    assert exact_square_sum(-worst) == 10_000 * 2**104


@pytest.mark.parametrize(
    "bad",
    [{"low": 10}, {"low": 11}, {"step": 0}, {"step": -1}, {"step": "2/3"}, {"default": 11}, {"default": "1/1000"},
     {"low": "-1/1000"}, {"high": math.inf}, {"low": math.nan}, {"step": Fraction(1, 2**600)}, {"high": 2**60},
     {"step": None}, {"low": True}],
)  # fmt: skip
def test_a_bad_grid_is_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"low": -3, "high": 10, "step": "1/100", "default": 1}
    with pytest.raises(InvalidParameter):
        Grid(**good | bad)


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(0, 1, "1e-6"), (0, 100, "1e-4"), (0, 120, "1e-4"), ("0.1", "0.9", "1e-7"), (-1, 1, "1e-6"),
     ("1/3", 1, "1/30000000"), (0, 10**9, 1000), (0.25, 0.75, "1e-7")],
)  # fmt: skip
def test_the_default_step_follows_from_the_bounds_alone(low: Any, high: Any, step: str) -> None:
    grid = Grid.between(low, high)
    assert grid.step == Fraction(step)
    assert grid.low <= grid.default <= grid.high


SHORT = st.fractions(min_value=-100, max_value=100, max_denominator=100)


@given(SHORT, SHORT)
def test_the_default_step_divides_the_bounds_for_all_short_bounds(one: Fraction, other: Fraction) -> None:
    low, high = sorted((one, other))
    if low == high:
        return
    grid = Grid.between(low, high)
    assert grid.width >= 10**6
    assert (grid.low, grid.high) == (low, high)
