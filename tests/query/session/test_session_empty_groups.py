"""What is picked of a group that may be empty is never shown as an answer without saying so."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp

GROUPS = ["full", "empty"]
PICKS = ("MEDIAN(x)", "QUANTILE(x, 0.9)", "MIN(x)", "MAX(x)", "MODE(k)", "MEDIAN(day)")


def released(measure: str, count: str, unit: Any, epsilon: int = 50) -> Any:
    table = pa.table(
        {
            "u": range(400),
            "g": ["full"] * 400,
            "x": [float(number % 50) for number in range(400)],
            "k": ["a", "b"] * 200,
            "day": pa.array([20_000] * 400, pa.int32()).cast(pa.date32()),
        }
    )
    from datetime import date

    columns = {
        "g": dp.categories(GROUPS),
        "x": dp.between(0, 50),
        "k": dp.categories(["a", "b"]),
        "day": dp.between(date(2020, 1, 1), date(2030, 1, 1)),
    }
    with dp.Session(
        table, unit=unit, budget=dp.Budget(epsilon=200), ledger="memory", dataset="d", principal="a", columns=columns
    ) as session:
        query = f"SELECT g, {measure} AS v{count} FROM d GROUP BY g ORDER BY g DESC"
        return session.sql(query, epsilon=epsilon).release()


def tells(measure: str, count: str, unit: Any) -> bool:
    """Say whether a count tells that a pick has no values: of units by a column of theirs, of values of that column."""
    return not ((unit == "row" and "DISTINCT" in count) or ("AVG(x)" in count and "x" not in measure))


COUNTS = [", COUNT(*) AS n", ", AVG(x) AS a", ", COUNT(DISTINCT u) AS n"]
COUNTED = [row for row in product(PICKS, COUNTS, ["row", dp.Unit("u")]) if tells(*row)]


@pytest.mark.parametrize(("measure", "count", "unit"), COUNTED)
def test_a_pick_of_a_group_that_may_be_empty_is_null(measure: str, count: str, unit: Any) -> None:
    table = released(measure, count, unit)
    # Counts of 400 and of 0 with noise of a scale below a tenth: a chance below 1e-9 that one is taken for the other.
    full, empty = (table["v"][row].value for row in range(2))
    assert full is not None
    assert empty is None
    assert "NULL" in str(table)
    assert dp.query.ReleaseTable.from_json(table.to_json())["v"][1].value is None
    assert table.to_arrow().column("v").to_pylist()[1] is None
    assert "it is NULL where the count beside it" in str(table)


@pytest.mark.parametrize("measure", ["FIVE_NUMBERS(x)", "QUANTILE(day, [0.25, 0.75])"])
@pytest.mark.parametrize("count", ["", *COUNTS[::2]])
def test_every_quantile_of_a_list_says_that_a_group_may_be_empty(measure: str, count: str) -> None:
    table = released(measure, count, dp.Unit("u"))
    columns = [name for name in table.names if name.startswith("v_q")]
    assert len(columns) == (5 if "FIVE" in measure else 2)
    full, empty = ([table[name][row].value for name in columns] for row in range(2))
    assert full == sorted(full)
    assert all((value is None) == bool(count) for value in empty)
    said = "it is NULL where the count beside it" if count else "of a group without values it is arbitrary"
    assert said in str(table)
    assert str(table).count(": no ±:") == 1  # Said once of all of them.


@pytest.mark.parametrize("measure", PICKS)
def test_a_pick_without_a_count_says_that_it_may_be_arbitrary(measure: str) -> None:
    table = released(measure, "", "row")
    assert table["v"][1].value is not None
    for written in (str(table), table.to_json(), table._repr_html_()):
        assert "of a group without values it is arbitrary" in written
    assert any("arbitrary value: ask for a COUNT" in note for note in table.notes)


@pytest.mark.parametrize(
    ("measure", "count", "arbitrary"),
    [
        ("MEDIAN(CASE WHEN x > 60 THEN x END)", "COUNT(*)", True),
        ("MODE(k)", "COUNT(*)", True),
        ("MEDIAN(x)", "COUNT(x)", False),
        ("MEDIAN(COALESCE(x, 0))", "COUNT(*)", False),
    ],
)
def test_a_count_of_rows_does_not_tell_whether_they_have_values(measure: str, count: str, arbitrary: bool) -> None:
    table = released(measure, f", {count} AS n", "row")
    assert ("where all values of its rows are NULL it is arbitrary" in str(table)) is arbitrary
    assert any("COUNT the same values" in note for note in table.notes) is arbitrary


@pytest.mark.parametrize(
    "measure",
    [
        "AVG(x)",
        "STDDEV(x)",
        "VAR_POP(x)",
        "COVAR_POP(x, x)",
        "CORR(x, x)",
        "AVG(x) + 1",
        "AVG(CASE WHEN k = 'a' THEN 1 ELSE 0 END)",
    ],
)
@pytest.mark.parametrize("unit", ["row", dp.Unit("u")])
def test_a_mean_of_a_group_that_may_be_empty_is_null_and_comes_last(measure: str, unit: Any) -> None:
    # A third of ε = 100 or more is for the count: a chance below 1e-13 that an empty group is not counted as empty.
    table = released(measure, "", unit, epsilon=100)
    full, empty = (table["v"][row] for row in range(2))
    assert full.plus_minus is not None
    assert (empty.value, empty.plus_minus, str(empty)) == (None, None, "NULL")
    if measure == "AVG(x)":
        assert (empty.low, empty.high) == (0, 50)
    assert "NULL where its ± is all that the bounds allow" in str(table)
    assert [row["g"] for row in table.sort_by("v", descending=True)] == GROUPS
    again = dp.query.ReleaseTable.from_json(table.to_json())
    assert again.to_json() == table.to_json()
    assert again.to_arrow().column("v").to_pylist()[1] is None
    assert again["v"][1] == empty
    assert [row["g"] for row in again.tidy] == GROUPS
    assert '"empty"' not in table.plot("v").to_json()


def test_an_explanation_promises_no_error_beyond_the_bounds() -> None:
    with dp.Session(
        pa.table({"x": [3.0] * 5}),
        unit="row",
        budget=dp.Budget(epsilon=1),
        ledger="memory",
        dataset="d",
        principal="a",
        columns={"x": dp.between(1, 5)},
    ) as session:
        for measure in ("AVG(x)", "STDDEV(x)"):
            few, many = (str(session.sql(f"SELECT {measure} AS m FROM d", epsilon=e).explain()) for e in ("0.0001", 1))
            assert "no information if a group has 1,000 rows" in few
            assert "up to ± 0." in many
