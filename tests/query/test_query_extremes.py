"""Expressions over values at every edge: no row fails, and rows as units are counted like units of one row each.

The two ways share nothing but the tree: one adds up inside the engine and clamps nothing again, the other bounds first.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from itertools import cycle, islice
from typing import Any

import pyarrow as pa
import pytest
from review_sql import ROW, Counted, counted

import discreet as dp

VALUES: dict[str, tuple[Any, list[Any]]] = {
    "i": (pa.int64(), [2**63 - 1, -(2**63), 2**62, 2**53 + 1, 0, -1, 7, None]),
    "j": (pa.int64(), [0, -1, 3, 10, 11, None, 2**31]),
    "r": (
        pa.float64(),
        [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7e308, -1e15, 0.5, 2.5, None, 99.99999999999999],
    ),
    "s": (pa.string(), ["", "5", " 1e400", "nan", "é", "e\u0301", "x" * 20_000, "9223372036854775808", "a\0b", None]),
    "d": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(2024, 1, 31), None]),
    "t": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024, 1, 31, 1)],
    ),
}
COLUMNS = {
    "i": dp.between(-(2**63), 2**63 - 1),
    "j": dp.between(-1, 10),
    "r": dp.between(-1e15, 100.0),
    "d": dp.between(date(1, 1, 1), date(9999, 12, 31)),
    "t": dp.between(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),
}
ROWS = 120
TABLE = pa.table(
    {"u": list(range(ROWS))}
    | {name: pa.array(list(islice(cycle(values), ROWS)), kind) for name, (kind, values) in VALUES.items()}
)
NUMBERS = [
    "i",
    "r",
    "i + i",
    "i * r",
    "CAST(r AS INTEGER) // j",
    "CAST(r AS INTEGER) % j",
    "-i",
    "ABS(i)",
    "ROUND(r, 9)",
    "ROUND(i, -15)",
    "POWER(r, 3)",
    "EXP(LEAST(r, 50))",
    "LEAST(GREATEST(1 / r, -3), 3)",
    "LEAST(GREATEST(CAST(s AS INTEGER), -3), 3)",
    "LEAST(GREATEST(CAST(s AS DOUBLE), -3), 3)",
    "LEAST(LENGTH(s || s), 30000)",
    "DATE_DIFF('day', d, CAST(t AS DATE))",
    "LEAST(YEAR(d + INTERVAL 1 MONTH), 9999)",
    "CASE WHEN r > j THEN i ELSE j END",
    "COALESCE(r, j)",
]
KEYS = ["j", "MONTH(d)", "CAST(r AS INTEGER) % 3", "s", "LOWER(s)", "r", "d", "DATE_TRUNC('year', t)", "s = '5'"]


def _both(sql: str) -> tuple[Counted, Counted]:
    how: dict[str, Any] = {"columns": COLUMNS}
    return counted(sql, {"t": TABLE}, unit=ROW, **how), counted(sql, {"t": TABLE}, unit=dp.Unit("u"), **how)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_at_the_edge_are_counted_alike(number: str) -> None:
    rows, units = _both(f"SELECT COUNT({number}) AS n, SUM({number}) AS s, VARIANCE({number}) AS v FROM t")
    assert rows.numbers == units.numbers
    draft = rows.priced.draft
    assert all(abs(total[0]) <= ROWS * change for total, change in zip(rows.numbers, draft.changes, strict=True))


@pytest.mark.parametrize("key", KEYS)
def test_keys_at_the_edge_are_counted_alike(key: str) -> None:
    rows, units = _both(f"SELECT {key} AS k, COUNT(*) AS n, COUNT(DISTINCT s) AS d FROM t GROUP BY {key}")
    groups = list(range(rows.tallied.groups))
    assert rows.numbers == units.numbers
    assert rows.tallied.keys(groups) == units.tallied.keys(groups)
    assert sum(rows.numbers[0]) <= ROWS
