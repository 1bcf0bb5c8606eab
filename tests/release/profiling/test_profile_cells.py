"""Cells are cut at friendly places, follow from released counts only, and every value is in one of them."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.release.profiling.cells import (
    ListedCells,
    Presence,
    Ranges,
    ReleasedCells,
    declared_cells,
    ladder,
    narrowed,
    shown_cells,
    written,
)
from discreet.release.round_numbers import calendar_cuts, calendar_step, friendly_step, number_cuts, outwards
from discreet.schema.columns import Kind

numbers = st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=1000)


@given(low=numbers, width=st.fractions(min_value=Fraction(1, 1000), max_value=10**6), most=st.integers(2, 60))
def test_cuts_are_few_friendly_and_inside_for_all_bounds(low: Fraction, width: Fraction, most: int) -> None:
    cuts = number_cuts(low, low + width, most)
    step = friendly_step(width, most)
    assert len(cuts) <= most
    assert all(low < cut < low + width and (cut / step).denominator == 1 for cut in cuts)
    digits = str(step.numerator).rstrip("0") + str(step.denominator).rstrip("0")
    assert digits in {"11", "21", "51", "12", "15"}


@given(low=numbers, width=st.fractions(min_value=0, max_value=10**6))
def test_outwards_encloses_for_all_bounds(low: Fraction, width: Fraction) -> None:
    below, above = outwards(low, low + width)
    assert below <= low
    assert above >= low + width
    assert below < above


@given(first=st.dates(date(1900, 1, 1), date(2050, 1, 1)), days=st.integers(1, 20_000), most=st.integers(5, 60))
def test_calendar_cuts_are_few_and_inside_for_all_days(first: date, days: int, most: int) -> None:
    last = date.fromordinal(first.toordinal() + days)
    cuts = calendar_cuts(first, last, calendar_step(first, last, most))
    assert len(cuts) <= most + 1
    assert all(first < cut < last for cut in cuts)
    assert list(cuts) == sorted(set(cuts))


def test_the_ladder_is_the_same_for_every_column_of_a_kind() -> None:
    whole = ladder(Kind.INTEGER)
    assert Fraction(0) in whole.cuts
    assert whole.cuts[-1] == 5 * 10**12
    assert list(whole.cuts) == sorted(whole.cuts)
    assert ladder(Kind.DATE).cuts[0] == date(1900, 1, 1)
    assert ladder(Kind.TIMESTAMP).cuts[-1] == datetime(2100, 1, 1)


def _on_ladder(kind: Kind, filled: dict[Fraction, int]) -> ReleasedCells:
    cells = ladder(kind)
    counts = tuple(filled.get(cells.ends(cell)[0], 0) for cell in range(1, cells.cells + 1))  # type: ignore[arg-type]
    return ReleasedCells(cells, counts, 100)


def test_bounds_are_those_of_cells_that_are_not_noise() -> None:
    found = _on_ladder(Kind.INTEGER, {Fraction(1000): 5000, Fraction(2000): 9000, Fraction(10**9): 99})
    assert found.bounds == (1000, 5000)
    finer = narrowed(found, Kind.INTEGER)
    assert isinstance(finer, Ranges)
    assert finer.cuts[0] == 1000
    assert finer.cuts[-1] == 5000
    assert Fraction(1900) in finer.cuts


def test_nothing_found_leaves_one_cell() -> None:
    nothing = _on_ladder(Kind.REAL, {})
    assert nothing.bounds is None
    assert narrowed(nothing, Kind.REAL) == Presence()
    assert shown_cells(nothing, None, Kind.REAL) == Presence()


def test_very_unequal_values_are_shown_by_rungs() -> None:
    found = _on_ladder(Kind.REAL, {Fraction(rung): 1000 for rung in (1, 10, 100, 1000, 10_000)})
    finer = narrowed(found, Kind.REAL)
    assert isinstance(finer, Ranges)
    counted = ReleasedCells(finer, (0, 4000, *(20 for _ in range(finer.cells - 3)), 0), 100)
    shown = shown_cells(found, counted, Kind.REAL)
    assert isinstance(shown, Ranges)
    assert Fraction(20) in shown.cuts
    even = ReleasedCells(finer, tuple(200 for _ in range(finer.cells)), 100)
    assert Fraction(20) not in shown_cells(found, even, Kind.REAL).cuts


def test_labels_tell_what_is_in_a_cell() -> None:
    whole = declared_cells(Fraction(0), Fraction(100), Kind.INTEGER)
    assert whole.label(1) == "0 to 4"
    assert whole.label(whole.cells) == "95 to 100"
    ages = Ranges(cuts=(Fraction(3), Fraction(4)), whole=True)
    assert [ages.label(cell) for cell in (1, 2, 3)] == ["below 3", "3", "4 and above"]
    assert ListedCells(("a", "b")).label(3) == "other values"
    assert Ranges(cuts=()).label(1) == "everything"


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(2020), "2020"), (Fraction(25_000), "25,000"), (Fraction(1, 2), "0.5"), (True, "true"), ("x", "x")],
)
def test_values_are_written_as_people_read_them(value: object, text: str) -> None:
    assert written(value) == text
