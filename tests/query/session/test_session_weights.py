"""Survey weights in SQL: columns with declared bounds, clamped to them, whose bound is in the sensitivity."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet as dp

SURVEY = "SELECT SUM(w) AS people, SUM(w * x) AS total, SUM(w * x) / SUM(w) AS mean FROM t"
ROWS = [(place, place % 6, place % 101) for place in range(3_000)]


def opened(folder: Any, rows: list[tuple[int, float, float]], **unit: Any) -> dp.Session:
    who, weights, values = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"who": who, "w": [float(w) for w in weights], "x": [float(x) for x in values]})
    return dp.Session(
        {"t": table},
        unit=dp.Unit("who", **{"max_groups": 1, "max_rows_per_group": 1} | unit),
        budget=dp.Budget(epsilon=1000),
        columns={"w": dp.between(0, 5, step=1), "x": dp.between(0, 100, step=1)},
        ledger=folder / "t.ledger",
        dataset="t",
        principal="ana",
    )


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("relation", list(dp.Relation))
def test_the_bound_of_a_weight_is_in_the_sensitivity(tmp_path, relation, most) -> None:
    """A row adds up to 5 people and up to 5 * 100: noise is scaled to that, times the rows of a unit."""
    replaced = {"relation": relation, "units": 3_000} if relation is dp.Relation.REPLACE_ONE else {}
    with opened(tmp_path, ROWS, max_rows_per_group=most, **replaced) as session:
        event = session.sql("SELECT SUM(w) AS people, SUM(w * x) AS total FROM t", epsilon=1).event
    leaves = sorted(leaf.sensitivity for leaf in event.events)  # type: ignore[attr-defined]
    assert leaves == [5 * most, 500 * most]


def test_a_weight_beyond_its_bounds_is_clamped_as_declared(tmp_path) -> None:
    """One row with a weight and a value a thousand times too large moves what is asked by what the bounds allow."""
    (tmp_path / "with").mkdir()
    with opened(tmp_path, ROWS) as session:
        before = session.sql(SURVEY, epsilon=99).release()[0]
    with opened(tmp_path / "with", [*ROWS, (9_999, 5_000.0, 100_000.0)]) as session:
        after = session.sql(SURVEY, epsilon=99).release()[0]
    noise = 30  # scales of the noise on each of four numbers, which are passed with a chance below 1e-11
    assert abs(after["people"].value - before["people"].value - 5) <= noise * 5 / 49
    assert abs(after["total"].value - before["total"].value - 500) <= noise * 500 / 49
    exact = sum(w * x for _, w, x in ROWS) / sum(w for _, w, _ in ROWS)
    assert abs(before["mean"].value - exact) < 1
    assert before["mean"].low <= before["mean"].value <= before["mean"].high
