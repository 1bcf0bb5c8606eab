"""Numbers stay what they are: only columns that are stored as whole numbers, or said to be whole, are read so."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from pathlib import Path
from statistics import fmean, pstdev, pvariance
from typing import Any

import pyarrow as pa
import pytest
from session_data import FORMS

import discreet as dp
from discreet.errors import InvalidParameter, Refused

ROWS = 1_010
HUNDREDTHS = [number * 7 % 101 for number in range(ROWS)]
TYPES = {
    "int64": (pa.int64(), 100),
    "double": (pa.float64(), 1),
    "float32": (pa.float32(), 1),
    "decimal": (pa.decimal128(5, 2), 1),
}
KNOWN_TYPES = ("polars", "arrow", "parquet", "duckdb")  # their schema is declared; pandas guesses, and CSV has none
MEASURES = (
    "COUNT(*) AS n, COUNT(x) AS c, COUNT(DISTINCT x) AS d, SUM(x) AS s, AVG(x) AS a, VAR_POP(x) AS v, "
    "STDDEV_POP(x) AS e"
)


def values_of(kind: str) -> list[float]:
    return [float(number) if kind == "int64" else number / 100 for number in HUNDREDTHS]


def table_of(kind: str) -> pa.Table:
    import pyarrow.compute as pc

    numbers = pa.array(HUNDREDTHS, pa.int64())
    scaled = numbers if kind == "int64" else pc.divide(numbers.cast(pa.float64()), 100.0)
    return pa.table({"x": scaled.cast(TYPES[kind][0], safe=False)})


def opened(tables: Any, **declared: Any) -> dp.Session:
    return dp.Session(
        {"orders": tables},
        unit="row",
        budget=dp.Budget(epsilon=1000),
        ledger="memory",
        dataset="numbers",
        principal="ana",
        columns=declared,
    )


def value(answer: Any, column: str) -> float:
    return float(answer[column][0].value)


@pytest.mark.parametrize("fractional", [False, True], ids=["whole bounds", "fractional bounds"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TYPES)
def test_every_aggregate_of_every_number_type_is_that_of_the_real_values(
    kind: str, form: str, fractional: bool, tmp_path: Path
) -> None:
    high = TYPES[kind][1]
    bounds = dp.between(0.0, float(high)) if fractional else dp.between(0, high)
    exact = values_of(kind)
    with opened(FORMS[form](table_of(kind), tmp_path), x=bounds) as session:
        whole = kind == "int64" and form in KNOWN_TYPES and not fractional
        assert f"x  {'integer' if whole else 'real'}, 0 … {high}" in session.describe()
        answer = session.sql(f"SELECT {MEASURES} FROM orders", epsilon=90).release()
        # Four shares of 90 at most with a scale of a twentieth of the width: a chance below 1e-20 to be farther off.
        assert abs(value(answer, "n") - ROWS) < 5
        assert abs(value(answer, "c") - ROWS) < 5
        assert abs(value(answer, "d") - 101) < 5
        assert abs(value(answer, "s") - sum(exact)) < 5 * high
        assert abs(value(answer, "a") - fmean(exact)) < 0.01 * high
        assert abs(value(answer, "v") - pvariance(exact)) < 0.01 * high**2
        assert abs(value(answer, "e") - pstdev(exact)) < 0.01 * high
        assert ("steps of" in str(answer.notes)) is not whole
        some = session.sql("SELECT MEDIAN(x) AS m, MIN(x) AS low, MAX(x) AS high FROM orders", epsilon=90).release()
        for column, share in (("m", 0.5), ("low", 0.0), ("high", 1.0)):
            ranks = bisect_left(sorted(exact), value(some, column)), bisect_right(sorted(exact), value(some, column))
            assert ranks[0] - 10 <= share * ROWS <= ranks[1] + 10, "a value of about that rank"
        limit = exact[ROWS // 3]
        kept = session.sql(
            f"SELECT COUNT(*) AS n, COUNT(CASE WHEN x > {limit} THEN 1 END) AS c FROM orders WHERE x > {limit}",
            epsilon=90,
        ).release()
        assert abs(value(kept, "n") - sum(number > limit for number in exact)) < 3
        assert abs(value(kept, "c") - sum(number > limit for number in exact)) < 3


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_single_precision_equal_what_they_are_written_as(form: str, tmp_path: Path) -> None:
    """In double precision 0.1 of single precision is 0.10000000149011612, and 0.9 is below 0.9."""
    tenths = pa.table({"x": pa.array([number % 10 / 10 for number in range(1000)], pa.float32())})
    with opened(FORMS[form](tenths, tmp_path), x=dp.between(0, 1)) as session:
        for condition, expected in (("x = 0.1", 100), ("x >= 0.9", 100), ("x IN (0.1, 0.3)", 200), ("x <= 0.7", 800)):
            answer = session.sql(f"SELECT COUNT(*) AS n FROM orders WHERE {condition}", epsilon=50).release()
            assert abs(value(answer, "n") - expected) < 5


@pytest.mark.parametrize("form", FORMS)
def test_a_column_that_is_said_to_be_whole_is_rounded_and_can_be_a_key(form: str, tmp_path: Path) -> None:
    table = pa.table({"x": [0.6, 1.0, 1.4, 2.5, 9.0]})
    with opened(FORMS[form](table, tmp_path), x=dp.between(0, 3, whole=True)) as session:
        assert "x  integer, 0 … 3" in session.describe()
        answer = session.sql("SELECT x % 4 AS x, COUNT(*) AS n FROM orders GROUP BY x % 4", epsilon=100).release()
        assert [round(cell.value) for cell in answer["n"]] == [0, 3, 1, 1]


@pytest.mark.parametrize("form", FORMS)
def test_whole_categories_never_take_in_numbers_that_lie_between(form: str, tmp_path: Path) -> None:
    table = pa.table({"x": [0.6, 1.0, 1.4, 2.0, 2.5, 9.0]})
    with opened(FORMS[form](table, tmp_path), x=dp.categories([1, 2])) as session:
        answer = session.sql("SELECT x, COUNT(*) AS n FROM orders GROUP BY x", epsilon=100).release()
        assert [round(cell.value) for cell in answer["n"]] == [1, 1]


def test_real_keys_say_how_to_declare_whole_ones(tmp_path: Path) -> None:
    with opened(FORMS["csv"](table_of("int64"), tmp_path), x=dp.between(0, 100)) as session:
        for query in ("SELECT x, COUNT(*) AS n FROM orders GROUP BY x", "SELECT SUM(x % 2) AS n FROM orders"):
            with pytest.raises(Refused, match="whole=True"):
                session.sql(query, epsilon=1)
        with pytest.raises(InvalidParameter, match="whole=True"):
            session.sql("SELECT x, COUNT(*) AS n FROM orders GROUP BY x", epsilon=1, keys={"x": [1, 2]})


def test_what_is_whole_has_whole_bounds() -> None:
    for wrong in ({"low": 0.5}, {"high": "9.5"}, {"step": 0.5}, {"missing": 0.5}):
        with pytest.raises(InvalidParameter, match="whole=True needs whole numbers"):
            dp.between(**({"low": 0, "high": 9, "whole": True} | wrong))


@pytest.mark.parametrize(("kind", "whole"), [("double", False), ("int64", True)])
def test_private_bounds_are_whole_where_the_column_is(kind: str, whole: bool) -> None:
    high = TYPES[kind][1]
    with opened(table_of(kind), x=dp.text()) as session:
        found = dp.private_bounds(session, "x", within=(0, high), epsilon=90)
        assert float(found.declared.facts.high) > 0.9 * high
        with opened(table_of(kind), x=found.declared) as narrowed:
            assert ("integer" in narrowed.describe()) is whole
            mean = narrowed.sql("SELECT AVG(x) AS a FROM orders", epsilon=90).release()
    assert abs(value(mean, "a") - fmean(values_of(kind))) < 0.02 * high


def test_the_notes_say_what_rounding_can_add_up_to() -> None:
    with opened(table_of("double"), x=dp.between(0, 1)) as session:
        notes = session.sql("SELECT SUM(x) AS s FROM orders", epsilon=1).explain().notes
        assert "counted in steps of 1e-13, which moves a sum of 10^9 rows by at most 5e-5" in str(notes)
        few = session.sql("SELECT SUM(x) AS s FROM orders", epsilon=1, expected=1000).explain().notes
        assert "a sum of 1,000 rows by at most 5e-11" in str(few)
        notes = session.sql("SELECT MEDIAN(x) AS m FROM orders", epsilon=1).explain().notes
        assert "counted in steps of 1e-6, which moves a value by at most 5e-7" in str(notes)
