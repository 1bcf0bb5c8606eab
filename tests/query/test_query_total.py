"""No value makes a question fail: whether it fails would tell that somebody has that value, and for free."""

from __future__ import annotations

import pyarrow as pa
import pytest
from review_sql import ROW, counted

import discreet as dp

EDGE = [2**62, 2**62 - 1, -(2**62), 0, 1, 2**63 - 1, -(2**63), None]
BOUNDS = [(-(2**62), 2**62), (-(2**63), 2**63 - 1), (-(2**62) + 3, 2**61), (-(2**63), 0), (0, 2**63 - 1)]


@pytest.mark.parametrize("unit", [ROW, dp.Unit("u", 1, 9)], ids=["rows", "units"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_whole_numbers_at_the_edge_are_added_up(bounds: tuple[int, int], unit: dp.Unit) -> None:
    low, high = bounds
    tables = {"t": pa.table({"u": list(range(len(EDGE))), "x": pa.array(EDGE, pa.int64())})}
    found = counted("SELECT SUM(x) AS s FROM t", tables, unit=unit, columns={"x": dp.between(low, high)})
    step = found.priced.draft.columns[0].grid.step  # type: ignore[union-attr]
    exact = sum(max(low, min(high, value)) for value in EDGE if value is not None)
    assert abs(found.numbers[0][0] * step - exact) <= len(EDGE) * step


@pytest.mark.parametrize("unit", [ROW, dp.Unit("u", 1, 9)], ids=["rows", "units"])
@pytest.mark.parametrize(
    "argument", ["x // y", "(x + 0) // y", "CAST(x AS DOUBLE) * 2", "ABS(x // y)", "x % y", "-(x // y)"]
)
def test_quotients_at_the_edge_are_added_up(argument: str, unit: dp.Unit) -> None:
    rows = [(x, y) for x in EDGE for y in (-1, 0, 1, 7, None)]
    columns = {"x": dp.between(-(2**62), 2**62), "y": dp.between(-10, 10)}
    x, y = (pa.array(column, pa.int64()) for column in zip(*rows, strict=True))
    tables = {"t": pa.table({"u": list(range(len(rows))), "x": x, "y": y})}
    found = counted(f"SELECT SUM({argument}) AS s, MEDIAN({argument}) AS m FROM t", tables, unit=unit, columns=columns)
    assert len(found.numbers) == 1
