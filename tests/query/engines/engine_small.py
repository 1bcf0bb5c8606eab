"""A small world for the tests of engines: purchases, points and shops, some of everything missing."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from engine_trees import field, plain, stage, table
from recorded import replayed

from discreet.mechanisms.grid import Grid
from discreet.query.ast import Field, Table, UnitStatistic
from discreet.query.engine import Deadline, Engine, StageColumn, Wants
from discreet.query.policy import public
from discreet.schema.columns import Kind, time_number

ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
UNITS = tuple(f"person {number}" for number in range(23))
SMALL = {
    "who": field("who", Kind.TEXT),
    "city": field("city", Kind.TEXT),
    "shop": field("shop", Kind.INTEGER),
    "day": field("day", Kind.DATE),
    "open": field("open", Kind.BOOLEAN),
    "price": field("price", Kind.REAL),
    "amount": field("amount", Kind.INTEGER, -50, 50),
    "at": field("at", Kind.TIMESTAMP),
}
OTHER = [{"who": UNITS[number % 11], "points": number * 7 % 90 - 40} for number in range(60)]
SHOPS = [{"shop": number % 3, "region": "north" if number % 2 else "south"} for number in range(7)]
EMPTY = {"count": 0, "total": 0, "squares": 0, "distinct": 0, "values": []}
OF_ORDERED_ROWS = (UnitStatistic.FIRST, UnitStatistic.LAST, UnitStatistic.PLACE)  # of windows, never of whole units
REAL_STATISTICS = (UnitStatistic.SUM, UnitStatistic.MEAN, UnitStatistic.LEAST, UnitStatistic.GREATEST)


def small_rows() -> list[dict[str, Any]]:
    """Return the purchases; every seventh or so lacks something."""
    return [
        {
            "who": None if n % 29 == 0 else UNITS[n**3 % 23],
            "city": (None, "a", "b", "ü", "a", "c")[n * 5 % 6 if n % 4 else n % 3],
            "shop": None if n % 17 == 0 else n * 3 % 5,
            "day": None if n % 13 == 0 else date(1970, 1, 1) + timedelta(days=n % 9 - 3),
            "open": (True, False, None)[n % 3],
            "price": None if n % 11 == 0 else (n * 37 % 101 - 50) / 4 + (0.1 if n % 5 == 0 else 0),
            "amount": None if n % 19 == 0 else n * 31 % 97 - 48,
            "at": None if n % 23 == 0 else datetime(2000 + n % 40, 1 + n % 12, 1 + n % 28, n % 24, n % 60, n % 60, n),
        }
        for n in range(240)
    ]


def owned(unit: str | None) -> list[dict[str, Any]]:
    """Return the purchases that count: all of them, or those of somebody."""
    return [row for row in small_rows() if unit is None or row[unit] is not None]


def small_source(unit: str | None) -> Table:
    return table("small", *SMALL.values(), unit=unit)


def other_source(prefix: str = "other.") -> Table:
    who, points = field(f"{prefix}who", Kind.TEXT), field(f"{prefix}points", Kind.INTEGER, -50, 60)
    return table("other", who, points, unit=who.name, prefix=prefix)


def as_table(rows: list[dict[str, Any]], fields: dict[str, Field]) -> pa.Table:
    """Return rows as an Arrow table with the types of some fields."""
    return pa.table({n: pa.array([row[n] for row in rows], ARROW[f.facts.kind]) for n, f in fields.items()})


def small_world() -> dict[str, Any]:
    return {
        "small": as_table(small_rows(), SMALL),
        "other": pa.Table.from_pylist(OTHER),
        "shops": public(pa.Table.from_pylist(SHOPS)),
    }


def placed(value: Any, grid: Grid) -> int:
    """Place one value on a grid, by the rule that all engines share."""
    number = time_number(value) if isinstance(value, date) else value
    if isinstance(number, float) or 1 not in (grid.step.numerator, grid.step.denominator):
        over = 1 / grid.step
        ratio = float(number) * float(over) if over.denominator == 1 else float(number) / float(grid.step)
    else:
        ratio = Fraction(number) / grid.step
    return min(max(round(ratio), grid.first), grid.last)


def of_unit(statistic: UnitStatistic, values: list[float | None]) -> Any:
    """Compute a statistic of one unit on a grid of quarters."""
    known = [value for value in values if value is not None]
    quarters = [round(value * 4) for value in known]
    match statistic:
        case UnitStatistic.ROWS:
            return len(values)
        case UnitStatistic.COUNT:
            return len(known)
        case UnitStatistic.DISTINCT:
            return len(set(known))
        case UnitStatistic.SUM:
            return sum(quarters) / 4 if known else None
        case UnitStatistic.MEAN:
            return sum(quarters) / len(known) / 4 if known else None
        case UnitStatistic.LEAST:
            return min(known, default=None)
        case UnitStatistic.GREATEST:
            return max(known, default=None)


def check_share(without: Any, having: Any, *, groups: int, rows: int, ends: list[int]) -> None:
    """Check that two tallies differ by no more than one unit's share."""
    changed = (having.units != without.units) | (having.rows != without.rows)
    assert 0 < changed.sum() <= groups
    assert abs(having.units - without.units).max() <= 1
    assert abs(having.rows - without.rows).max() <= rows
    for one, other, end in zip(without.measures, having.measures, ends, strict=True):
        assert abs(other.counts - one.counts).max() <= rows
        assert abs(other.total - one.total).max() <= rows * end
        assert abs(other.squares - one.squares).max() <= rows * end * end
        assert abs(other.distinct - one.distinct).max() <= rows
        for group in range(len(one.counts)):
            mine, theirs = one.values.of(group).tolist(), other.values.of(group).tolist()
            assert (mine == theirs) or changed[group]
            assert abs(len(mine) - len(theirs)) <= rows


MANY = 10_000_000
LARGE = (2**63 - 1, -(2**63), 2**62)


def many_rows() -> pa.Table:
    """Return ten million rows of a thousand people, with the largest numbers that there are, in turn."""
    numbers = np.arange(MANY)
    return pa.table({"who": numbers % 1000, "x": np.array(LARGE)[numbers % 3]})


def check_many(engine: Engine, unit: str | None) -> None:
    """Check that sums and squares of ten million rows are exact, where 64 and 128 bits are too few (check C09)."""
    who, x, end = field("who", Kind.INTEGER), field("x", Kind.INTEGER), 1 << 52
    grid = Grid(low=Fraction(-end), high=Fraction(end), step=Fraction(1), default=Fraction(0))
    wanted = StageColumn(expression=x, wants=Wants(total=True, squares=True), grid=grid, centre=-end)
    asked = stage(table("many", who, x, unit=unit), unit=unit, columns=[wanted], max_rows=MANY // 1000)
    with replayed("many"):
        tallied = engine.run(asked, deadline=Deadline.after(600))
    (found,) = plain(tallied)[()]["columns"]
    clamped = [min(max(value, -end), end) + end for value in LARGE]
    times = [len(range(place, MANY, 3)) for place in range(3)]
    total, squares = (sum(n * value**power for n, value in zip(times, clamped, strict=True)) for power in (1, 2))
    assert total.bit_length() > 64
    assert squares.bit_length() > 128
    assert found == {"count": MANY, "total": total, "squares": squares}
