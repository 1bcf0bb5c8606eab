"""Types that a library inferred from rows are as private as the rows: none is shown before it is declared."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.schema.columns import Kind

MOMENT, EARLY = pd.Timestamp("2024-01-01 23:59:59.9999996"), pd.Timestamp("1969-12-31 23:59:59.9999996")
ZONED = pd.Timestamp("2024-01-01 23:30:00-02:00")
UNIT = dp.Unit("uid", max_groups=1, max_rows_per_group=1)
# By name: what is in column x if a person is there as others are, and if one value of theirs is unlike the others.
PAIRS: dict[str, tuple[list[Any], list[Any]]] = {
    "a missing number": ([1, 2, 3], [1, 2, None]),
    "a text among numbers": ([1, 2, 3], [1, 2, "X"]),
    "a fraction among numbers": ([1, 2, 3], [1, 2, 3.5]),
    "a number beyond 64 bits": ([1, 2, 3], [1, 2, 2**70]),
    "a missing truth": ([True, False, True], [True, False, None]),
    "a bad moment": ([datetime(2024, 1, 1)] * 3, [datetime(2024, 1, 1), datetime(2024, 1, 2), "soon"]),
    "a missing text": (["a", "b", "c"], ["a", "b", None]),
    "all missing": ([None, None, 1], [None, None, None]),
}
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM frames",
    "SELECT COUNT(x) AS n FROM frames",
    "SELECT COUNT(*) AS n FROM frames WHERE x > 1",
    "SELECT COUNT(*) AS n FROM frames WHERE x = 'X'",
    "SELECT COUNT(*) AS n FROM frames WHERE x IS NULL",
    "SELECT SUM(x % 2) AS n FROM frames",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM frames) AS t WHERE x > 1",
    "SELECT COUNT(DISTINCT uid) AS n FROM frames",
    "SELECT COUNT(*) AS n FROM frames WHERE uid = 1",
    "SELECT COUNT(*) AS n FROM frames WHERE uid = 'X'",
    "SELECT COUNT(*) AS n FROM frames WHERE CAST(uid AS VARCHAR) = '1'",
    "SELECT SUM(k) AS n FROM (SELECT uid, COUNT(*) AS k FROM frames GROUP BY uid) AS t WHERE k < 5",
    "SELECT COUNT(*) AS n FROM frames AS a JOIN frames AS b ON a.uid = b.uid",
    "SELECT x, COUNT(*) AS n FROM frames GROUP BY x",
)


def opened(frame: Any, unit: Any = "row", **declared: Any) -> dp.Session:
    return dp.Session(
        frame,
        unit=unit,
        budget=dp.Budget(epsilon=10_000, delta="1e-6"),
        ledger="memory",
        dataset="frames",
        principal="ana",
        columns=declared,
    )


def told(session: dp.Session, query: str) -> str:
    """What an analyst is told for free: the explanation of a price, or the words of a refusal."""
    try:
        return str(session.sql(query, epsilon=1, delta="1e-6").explain())
    except Refused as refused:
        return str(refused)


def frames(values: list[Any]) -> list[Any]:
    """The frames that pandas makes of a column: by itself, as what it calls best, and as labels."""
    plain = pd.DataFrame({"uid": range(len(values)), "x": values})
    return [plain, plain.convert_dtypes(), plain.astype({"x": "category"}), pd.DataFrame(plain.to_dict("records"))]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("unit", ["row", UNIT], ids=["rows", "units"])
def test_a_frame_tells_nothing_about_one_value_before_it_is_declared(pair: str, unit: Any) -> None:
    for one, other in zip(*map(frames, PAIRS[pair]), strict=True):
        with opened(one, unit) as mine, opened(other, unit) as theirs:
            assert mine.describe() == theirs.describe()
            assert "x    not declared" in mine.describe()
            assert [told(mine, query) for query in QUESTIONS] == [told(theirs, query) for query in QUESTIONS]


def test_a_frame_tells_nothing_about_one_unit_by_the_type_of_its_column() -> None:
    whole, missing, texts = ([1, 2, 3], pd.array([1, 2, None], "Int64"), [1, 2, "X"])
    sessions = [opened(pd.DataFrame({"uid": ids, "x": [1, 2, 3]}), UNIT) for ids in (whole, missing, texts)]
    assert len({session.describe() for session in sessions}) == 1
    for query in QUESTIONS:
        assert len({told(session, query) for session in sessions}) == 1
    for session in sessions:
        session.close()


def test_a_unit_is_of_no_kind_in_any_table_beside_a_frame() -> None:
    """It is one and the same in all tables, and rows of the frame decided which."""
    rows = {"uid": [1, 2, 3]}
    with opened({"data": pd.DataFrame(rows), "stored": pa.table(rows)}, UNIT) as session:
        assert {table.columns["uid"].facts.kind for table in session.catalogue.tables.values()} == {Kind.IDENTITY}
        with pytest.raises(Refused, match="of a pandas frame"):
            session.sql("SELECT COUNT(*) AS n FROM stored WHERE uid = 1", epsilon=1)


@pytest.mark.some(3)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_declared_column_is_of_the_declared_kind_whatever_the_frame_holds(pair: str) -> None:
    for declared in (dp.text(), dp.between(0, 5), dp.between(0, 5, whole=True), dp.boolean(), dp.categories(["a"])):
        seen = set()
        for frame in (frame for values in PAIRS[pair] for frame in frames(values)):
            # What is refused is refused to the custodian, who declares it.
            with suppress(InvalidParameter), opened(frame, x=declared) as session:
                seen.add((session.describe(), *(told(session, query) for query in QUESTIONS[:6])))
        assert len(seen) <= 1


# By name: a value that fifty people have, one that changes the type of the column, a declaration, and a condition.
READ: dict[str, tuple[Any, Any, Any, str]] = {
    "a text of whole numbers, one missing": (1, None, dp.categories(["1"]), "x = '1'"),
    "a text of truth values, one missing": (True, None, dp.text(), "x = 'true'"),
    "a text of moments": (datetime(2024, 1, 1, 0, 0, 0, 500_000), "X", dp.text(), "x = '2024-01-01 00:00:00.5'"),
    "a truth value of numbers": (2, "X", dp.boolean(), "x"),
    "a truth value of real numbers": (2.5, "X", dp.boolean(), "x"),
    "a number of truth values": (True, "X", dp.between(0, 9), "x = 1"),
    "a whole number beyond 2^53, one missing": (2**53 + 1, None, dp.between(0, 2**60, whole=True), "x % 2 = 1"),
    "a real number beyond 2^53, one missing": (2**53 + 1, None, dp.between(0, 2**60), "x > 9007199254740992"),
    "a category beyond 2^53, one missing": (2**53 + 1, None, dp.categories([1, 2**53, 2**53 + 1]), "x > 1"),
    "a whole number of a half": (0.5, "X", dp.between(0, 9, whole=True), "x = 0"),
    "a whole number of a huge one": (1e300, "X", dp.between(0, 9, whole=True), "x = 9"),
    "a whole number of a huge negative one": (-1e300, "X", dp.between(0, 9, whole=True), "x = 0"),
    "a whole number of one beyond 64 bits": (2**70, 1.5, dp.between(0, 9, whole=True), "x = 9"),
    "a huge real number": (1e300, "X", dp.between(0, 9), "x = 9"),
    "a small real number": (1e-300, "X", dp.between(0, 9), "x > 0"),
    "an infinite one": (float("inf"), "X", dp.between(0, 9), "x IS NULL"),
    "a moment of nanoseconds": (
        MOMENT,
        "X",
        dp.between(datetime(2023, 1, 1), datetime(2025, 1, 1)),
        "x < '2024-01-02'",
    ),
    "a day of nanoseconds": (MOMENT, "X", dp.between(date(2023, 1, 1), date(2025, 1, 1)), "x < '2024-01-02'"),
    "a moment before 1970": (EARLY, "X", dp.between(datetime(1960, 1, 1), datetime(2025, 1, 1)), "x < '1970-01-01'"),
    "a moment of a zone": (ZONED, "X", dp.between(datetime(2023, 1, 1), datetime(2025, 1, 1)), "x >= '2024-01-02'"),
}


@pytest.mark.parametrize("case", READ)
def test_one_value_does_not_change_how_the_others_of_a_frame_are_read(case: str) -> None:
    value, other, declared, condition = READ[case]
    counted = set()
    for values in ([value] * 50, [value] * 50 + [other]):
        # What is refused is refused to the custodian, who declares it.
        with suppress(InvalidParameter), opened(pd.DataFrame({"x": values}), x=declared) as session:
            query = f"SELECT COUNT(*) AS n FROM frames WHERE {condition}"
            counted.add(round(float(session.sql(query, epsilon=90).release()["n"][0].value) / 50))
    assert len(counted) <= 1  # Without noise it is 50 or 0, and one more or less.


@pytest.mark.parametrize("first", [0, 2**60])
@pytest.mark.parametrize("other", [None, "X", 1.5])
def test_one_unit_does_not_make_others_one(first: int, other: Any) -> None:
    ids = [first + n for n in range(50)]
    for units in (ids, [*ids, other], pd.array([*ids, None], "Int64"), pd.Series([*ids, other], dtype=object)):
        # What is refused is refused to the custodian.
        with suppress(InvalidParameter), opened(pd.DataFrame({"uid": units}), UNIT) as session:
            counted = session.sql("SELECT COUNT(*) AS n FROM frames", epsilon=90).release()["n"][0].value
            assert round(float(counted)) in (50, 51)


def test_a_number_is_one_unit_however_it_is_written() -> None:
    ids = [*range(25), *map(float, range(25)), "X"]
    with opened(pd.DataFrame({"uid": ids}), UNIT) as session:
        assert round(float(session.sql("SELECT COUNT(*) AS n FROM frames", epsilon=90).release()["n"][0].value)) == 26


def test_units_in_real_numbers_of_a_frame_are_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidParameter, match="tells units apart") as refused:
        opened(pd.DataFrame({"uid": [1, 2, None]}), UNIT)
    assert "Int64" in str(refused.value)


def test_a_declaration_that_a_missing_value_would_change_is_refused_with_the_way_out() -> None:
    for declared, text in (
        (dp.text(), "stored as a number"),
        (dp.between(0, 2**60, whole=True), "whole numbers beyond"),
    ):
        with pytest.raises(InvalidParameter, match=text) as refused:
            opened(pd.DataFrame({"x": [1, 2, 3]}), x=declared)
        assert "Arrow or polars" in str(refused.value)
    with opened(pd.DataFrame({"x": [1, 2, 3]}).astype("string"), x=dp.text()) as session:
        assert " text" in session.describe()


def test_an_undeclared_column_is_refused_with_the_way_out() -> None:
    with opened(pd.DataFrame({"x": [1, 2, 3]})) as session, pytest.raises(Refused) as refused:
        session.sql("SELECT AVG(x) AS a FROM frames", epsilon=1)
    assert "nothing is declared of the column x" in str(refused.value)
    assert "dp.between(low, high)" in str(refused.value)


def test_answers_about_declared_columns_and_units_of_a_frame_are_right() -> None:
    frame = pd.DataFrame({"uid": pd.array([1, 1, 2, 3, None], "Int64"), "x": [1, 2, 3, 4, 5], "y": list("abcde")})
    people = pd.DataFrame({"uid": [1, 2, 9], "z": [1, 1, 1]})
    with opened(
        {"frames": frame, "people": people}, dp.Unit("uid", max_rows_per_group=2), x=dp.between(0, 9)
    ) as session:
        for query, exact in (
            ("SELECT COUNT(*) AS n FROM frames", 4),
            ("SELECT COUNT(DISTINCT uid) AS n FROM frames", 3),
            ("SELECT SUM(x) AS n FROM frames WHERE x > 1.5", 9),
            ("SELECT COUNT(*) AS n FROM frames JOIN people ON frames.uid = people.uid", 3),
            ("SELECT COUNT(*) AS n FROM (SELECT uid, SUM(x) AS s FROM frames GROUP BY uid) AS t WHERE s = 3", 2),
        ):
            answer = session.sql(query, epsilon=90).release()
            # The scale of noise is at most 2 / 90 of a row, and 18 / 90 of the sum: a chance below 1e-10 to be off.
            assert abs(float(answer["n"][0].value) - exact) < (5 if "SUM(x) AS n" in query else 1)
            assert session.sql(query, epsilon=90).dummy() is not None


@pytest.mark.parametrize("library", ["polars", "arrow"])
def test_the_schema_of_polars_and_arrow_is_declared(library: str) -> None:
    import polars as pl
    import pyarrow as pa

    make = pl.DataFrame if library == "polars" else pa.table
    with opened(make({"x": [1, 2, 3]})) as session:
        assert "x  integer" in session.describe()


def test_nothing_is_guessed_from_the_rows_of_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for rows in ("1,2\n3,4\n", "1,2\nX,\n", "true,2024-01-01\n", ""):
        path.write_text(f"x,y\n{rows}")
        with opened(path) as session:
            assert "  x  text\n  y  text" in session.describe()
