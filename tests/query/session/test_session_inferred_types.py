"""Types that a library inferred from rows are as private as the rows: none is shown before it is declared."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import Refused

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
    "SELECT COUNT(*) AS n FROM data",
    "SELECT COUNT(x) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE x > 1",
    "SELECT COUNT(*) AS n FROM data WHERE x = 'X'",
    "SELECT COUNT(*) AS n FROM data WHERE x IS NULL",
    "SELECT SUM(x % 2) AS n FROM data",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM data) AS t WHERE x > 1",
    "SELECT COUNT(DISTINCT uid) AS n FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE uid = 1",
    "SELECT COUNT(*) AS n FROM data WHERE uid = 'X'",
    "SELECT COUNT(*) AS n FROM data WHERE CAST(uid AS VARCHAR) = '1'",
    "SELECT SUM(k) AS n FROM (SELECT uid, COUNT(*) AS k FROM data GROUP BY uid) AS t WHERE k < 5",
    "SELECT COUNT(*) AS n FROM data AS a JOIN data AS b ON a.uid = b.uid",
    "SELECT x, COUNT(*) AS n FROM data GROUP BY x",
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
    import pandas as pd

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
    import pandas as pd

    whole, missing, texts = ([1, 2, 3], [1, 2, None], [1, 2, "X"])
    sessions = [opened(pd.DataFrame({"uid": ids, "x": [1, 2, 3]}), UNIT) for ids in (whole, missing, texts)]
    assert len({session.describe() for session in sessions}) == 1
    for query in QUESTIONS:
        assert len({told(session, query) for session in sessions}) == 1
    for session in sessions:
        session.close()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_declared_column_is_of_the_declared_kind_whatever_the_frame_holds(pair: str) -> None:
    for declared in (dp.text(), dp.between(0, 5), dp.between(0, 5, whole=True), dp.boolean(), dp.categories(["a"])):
        seen = set()
        for values in PAIRS[pair]:
            if pair == "a bad moment" and declared.facts.kind.value != "text":
                continue  # What is stored as moments is refused to the custodian, who declares it.
            for frame in frames(values):
                with opened(frame, x=declared) as session:
                    seen.add((session.describe(), *(told(session, query) for query in QUESTIONS[:6])))
        assert len(seen) <= 1


def test_an_undeclared_column_is_refused_with_the_way_out() -> None:
    import pandas as pd

    with opened(pd.DataFrame({"x": [1, 2, 3]})) as session, pytest.raises(Refused) as refused:
        session.sql("SELECT AVG(x) AS a FROM data", epsilon=1)
    assert "nothing is declared of the column x" in str(refused.value)
    assert "dp.between(low, high)" in str(refused.value)


def test_answers_about_declared_columns_and_units_of_a_frame_are_right() -> None:
    import pandas as pd

    frame = pd.DataFrame({"uid": [1, 1, 2, 3, None], "x": [1, 2, 3, 4, 5], "y": list("abcde")})
    people = pd.DataFrame({"uid": [1.0, 2.0, 9.0], "z": [1, 1, 1]})
    with opened({"data": frame, "people": people}, dp.Unit("uid", max_rows_per_group=2), x=dp.between(0, 9)) as session:
        for query, exact in (
            ("SELECT COUNT(*) AS n FROM data", 4),
            ("SELECT COUNT(DISTINCT uid) AS n FROM data", 3),
            ("SELECT SUM(x) AS n FROM data WHERE x > 1.5", 9),
            ("SELECT COUNT(*) AS n FROM data JOIN people ON data.uid = people.uid", 3),
            ("SELECT COUNT(*) AS n FROM (SELECT uid, SUM(x) AS s FROM data GROUP BY uid) AS t WHERE s = 3", 2),
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
