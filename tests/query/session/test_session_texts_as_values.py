"""Texts are read as numbers, dates and truths by one rule; what it does not know is missing."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import Field
from discreet.query.functions.expressions import cast, compute
from discreet.schema.columns import ExpressionFacts, Kind

NUMBERS: dict[str, float | None] = {
    "5": 5, " 5 ": 5, "\t5\r\n": 5, "+4": 4, "-7.5": -7.5, ".5": 0.5, "5.": 5, "1e3": 1000, "1E-2": 0.01, "1e-400": 0,
    "1,5": None, "1e400": None, "1e4000": None, "0x10": None, "0b1": None, "1_000": None, "1 000": None,
    "infinity": None, "inf": None, "-inf": None, "nan": None, "NaN": None, "": None, "- 5": None, "1e": None,
    "٣": None, "5%": None,
}  # fmt: skip
TIMES: dict[str, datetime | None] = {
    "2024-02-29": datetime(2024, 2, 29),
    " 2024-02-29\t": datetime(2024, 2, 29),
    "2024-02-29 13:14": datetime(2024, 2, 29, 13, 14),
    "2024-02-29T13:14:15": datetime(2024, 2, 29, 13, 14, 15),
    "2024-02-29 13:14:15.5": datetime(2024, 2, 29, 13, 14, 15, 500000),
    "2024-02-29 13:14:15.123456789": datetime(2024, 2, 29, 13, 14, 15, 123456),
    "2024-02-29T13:14:15Z": datetime(2024, 2, 29, 13, 14, 15),
    "2024-03-01T00:30:00+09:00": datetime(2024, 2, 29, 15, 30),
    "2024-02-29 23:30:00-0130": datetime(2024, 3, 1, 1),
    "2024-02-29T13:14-05": datetime(2024, 2, 29, 18, 14),
    **dict.fromkeys(
        ("02/01/25", "2024-2-9", "24-02-29", "20240229", "2023-02-29", "2024-02-29 24:00:00", "2024-02-29 23:59:60"),
        None,
    ),
    **dict.fromkeys(
        ("0000-01-01", "2024-02-29 (BC)", "-2024-02-29", "12024-02-29", "29.02.2024", "today", "1709164800"), None
    ),
    **dict.fromkeys(
        ("2024-02-29 13", "13:14:15", "2024-02-29T13:14:15+99:00", "2024-02-29T13:14:15 UTC", "epoch"), None
    ),
    "0001-01-01T00:00:00+09:00": None,
}
TRUTHS: dict[str, bool | None] = {
    "true": True, "T": True, "1": True, " True ": True, "FALSE": False, "f": False, "0": False,
    "yes": None, "no": None, "y": None, "on": None, "2": None, "1.0": None, "": None,
}  # fmt: skip
RULES: dict[Kind, dict[str, Any]] = {
    Kind.REAL: NUMBERS,
    Kind.DATE: {text: None if moment is None else moment.date() for text, moment in TIMES.items()},
    Kind.TIMESTAMP: TIMES,
    Kind.BOOLEAN: TRUTHS,
}


def read_all(tmp_path: Path, kind: Kind, texts: list[str], **how: Any) -> list[Any]:
    """Read each text by itself as the engine reads a declared column of a CSV file, and as CAST reads it."""
    import duckdb
    import pyarrow as pa

    from discreet.query.ast import TableColumn
    from discreet.query.engines.clamped_columns import layers
    from discreet.query.engines.sql_expressions import write
    from discreet.query.engines.sql_writer import Writer

    text, field = Field("text", ExpressionFacts(kind=Kind.TEXT)), Field("x", ExpressionFacts(kind=kind))
    found = []
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"x": texts, "n": range(len(texts))}))
        writer = Writer()
        sql = "t"
        for layer in layers(TableColumn("x", field, **how), "VARCHAR", "x", writer):
            sql = f"(SELECT {layer} AS x, n FROM {sql})"
        found.append(connection.execute(f"SELECT x FROM {sql} ORDER BY n", writer.parameters or None).fetchall())
        if not how:
            writer = Writer()
            column = writer.column("text")
            cast_sql = write(cast(text, kind), writer)
            found.append(
                connection.execute(f"SELECT {cast_sql} FROM (SELECT x AS {column}, n FROM t) ORDER BY n").fetchall()
            )
    values = [[value for (value,) in column] for column in found]
    assert all(column == values[0] for column in values), "CAST obeys the rule of columns"
    return values[0]


@pytest.mark.parametrize("kind", RULES)
def test_texts_are_read_by_one_rule(kind: Kind, tmp_path: Path) -> None:
    rule = RULES[kind]
    assert read_all(tmp_path, kind, list(rule)) == list(rule.values())


@pytest.mark.parametrize("kind", RULES)
def test_the_planner_reads_constants_by_the_rule_of_the_engine(kind: Kind) -> None:
    for text, value in RULES[kind].items():
        assert compute(cast(Field("x", ExpressionFacts(kind=Kind.TEXT)), kind).operator, [text]) == value  # type: ignore[union-attr]


def test_whole_numbers_in_texts_are_rounded_half_to_even(tmp_path: Path) -> None:
    texts = {"2.5": 2, "3.5": 4, "9007199254740993": 2**53 + 1, "9223372036854775808": None, "1_0": None, " 7\n": 7}
    assert read_all(tmp_path, Kind.INTEGER, list(texts)) == list(texts.values())


def test_a_declared_format_reads_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    texts = {
        "02/01/25": date(2025, 1, 2),
        "2025-01-02": None,
        "31/02/25": None,
        "02/01/2025": None,
        "02/01/69": date(1969, 1, 2),
    }
    assert read_all(tmp_path, Kind.DATE, list(texts), format="%d/%m/%y") == list(texts.values())
    moments = {"01/02/2025 13:14": datetime(2025, 1, 2, 13, 14), "13:14": None, "01/02/25 13:14": None}
    assert read_all(tmp_path, Kind.TIMESTAMP, list(moments), format="%m/%d/%Y %H:%M") == list(moments.values())


@pytest.mark.parametrize(
    "wrong",
    ["", "%Y", "%Y-%m", "%Y-%m-%d %m", "%Y-%m-%d %Q", "%Y-%m-%d%", "%c", "%Y %y %m %d", "%Y-%m-%d %z", "ünd %Y%m%d", 7],
)
def test_a_format_names_a_day_and_nothing_twice(wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="format must"):
        dp.between(date(2025, 1, 1), date(2025, 12, 31), format=wrong)


def opened(path: Path, **declared: Any) -> dp.Session:
    return dp.Session(
        path,
        unit="row",
        budget=dp.Budget(epsilon=1000),
        ledger="memory",
        dataset="d",
        principal="ana",
        columns=declared,
    )


def test_what_does_not_parse_is_missing_and_never_clamped(tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("day,x\n" + "02/01/25,1e400\n" * 40 + "2025-03-01,7\n" * 30 + "1999-01-01,-7\n" * 20)
    year = (date(2025, 1, 1), date(2025, 12, 31))
    with opened(path, day=dp.between(*year), x=dp.between(0, 5)) as session:
        answer = session.sql(
            "SELECT COUNT(*) AS n, COUNT(day) AS days, COUNT(x) AS xs, SUM(x) AS s, "
            "COUNT(CASE WHEN day < DATE '2025-02-01' THEN 1 END) AS january FROM days",
            epsilon=90,
        ).release()
        found = {name: float(answer[name][0].value) for name in ("n", "days", "xs", "january", "s")}
    expected = {"n": 90, "days": 50, "xs": 50, "january": 20, "s": 150}
    assert all(abs(found[name] - expected[name]) < 9 for name in expected), found
    with opened(path, day=dp.between(*year, format="%d/%m/%y")) as session:
        assert "written as %d/%m/%y" in session.describe()
        answer = session.sql("SELECT COUNT(day) AS n FROM days WHERE day = DATE '2025-01-02'", epsilon=90).release()
        assert abs(float(answer["n"][0].value) - 40) < 1


def test_a_format_is_for_texts(tmp_path: Path) -> None:
    import pyarrow as pa

    declared = dp.between(date(2025, 1, 1), date(2025, 12, 31), format="%d/%m/%y")
    with pytest.raises(InvalidParameter, match="leave format out"):
        opened(pa.table({"day": [date(2025, 1, 1)]}), day=declared)  # type: ignore[arg-type]


NULLS = (
    "MODE(NULL)", "MODE(CASE WHEN n > 1 THEN NULL END)", "MODE(CAST(NULL AS VARCHAR))", "MODE(CAST(NULL AS BOOLEAN))",
    "MODE(CASE WHEN n > 9 THEN x END)", "MODE(CASE WHEN n > 9 THEN n END)", "MODE(NULLIF(x, x))",
    "MODE(COALESCE(NULL, NULL))", "MODE(x) FILTER (WHERE FALSE)", "MEDIAN(CAST(NULL AS BOOLEAN))", "AVG(NULL)",
    "MODE() WITHIN GROUP (ORDER BY NULL)", "SUM(CAST(NULL AS BOOLEAN))", "QUANTILE(NULL, 0.5)",
)  # fmt: skip


@pytest.mark.parametrize("measure", NULLS)
def test_an_aggregate_of_what_is_always_null_is_refused_before_it_is_paid(measure: str) -> None:
    import pyarrow as pa

    table: Any = pa.table({"x": ["a", "b"], "n": [1, 2]})
    with opened(table, x=dp.categories(["a", "b"]), n=dp.between(0, 5)) as session, pytest.raises(Refused):
        session.sql(f"SELECT {measure} AS v FROM d", epsilon=1)
