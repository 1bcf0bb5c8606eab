"""Words of other SQL dialects are refused with what they are called here, and that is answered."""

from __future__ import annotations

import pytest
from reading_worlds import BY_UNIT

from discreet.errors import Refused
from discreet.query.parse.dialect_hints import function_hint
from discreet.query.parse.refusals import Script
from discreet.query.parse.scopes import unknown
from discreet.query.parse.select import read


def hint(sql: str) -> str:
    with pytest.raises(Refused) as refused:
        read(sql, BY_UNIT)
    return refused.value.way_out


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(`age`) AS m FROM people",
        "SELECT AVG([stay days]) AS m FROM people",
        "SELECT AVG(stay days) AS m FROM people",
        "SELECT stay days, COUNT(*) AS n FROM people GROUP BY stay days",
    ],
)
def test_names_of_two_words_stand_in_double_quotes(sql: str) -> None:
    assert 'double quotes: "stay days"' in hint(sql)


def test_the_word_unit_is_answered_with_the_column_that_it_is() -> None:
    told = hint("SELECT COUNT(DISTINCT unit) AS n FROM people")
    assert told == "the unit here is uid: COUNT(DISTINCT uid)"
    assert read("SELECT COUNT(DISTINCT uid) AS n FROM people", BY_UNIT)


def test_top_is_limit() -> None:
    assert "LIMIT 5" in hint("SELECT TOP 5 city, COUNT(*) AS n FROM people GROUP BY city")
    for first in ("FETCH FIRST 5 ROWS ONLY", "FETCH NEXT ROW ONLY", "OFFSET 2 ROWS FETCH FIRST 5 ROWS ONLY"):
        assert "LIMIT 5" in hint(f"SELECT city, COUNT(*) AS n FROM people GROUP BY city {first}"), first


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        ("VAR(age)", "VAR_SAMP"),
        ("STDEVP(age)", "STDDEV_POP"),
        ("AVERAGE(age)", "AVG"),
        ("PERCENTILE(age, 0.5)", "QUANTILE_CONT"),
        ("NDV(city)", "COUNT(DISTINCT x)"),
    ],
)
def test_an_aggregate_of_another_dialect_is_named_as_it_is_here(call: str, ours: str) -> None:
    assert ours in hint(f"SELECT {call} AS m FROM people")


def test_a_function_of_another_dialect_is_named_as_it_is_here() -> None:
    assert "3.141592653589793" in hint("SELECT COUNT(*) AS n FROM people WHERE age > PI()")
    assert "COALESCE" in hint("SELECT COUNT(*) AS n FROM people WHERE ISNULL(age, 0) > 1")
    assert "CASE x WHEN" in hint("SELECT COUNT(*) AS n FROM people WHERE DECODE(age, 1, 2, 3) = 2")
    assert "CASE x WHEN" in hint("SELECT COUNT(*) AS n FROM people WHERE DECODE(age, 1) = 2")
    assert function_hint("no_such_function") is None


def test_text_that_nobody_writes_gets_the_general_hint() -> None:
    assert "the dialect is that of DuckDB" in hint("SELECT (1 FROM people")


def test_an_unknown_name_brings_its_nearest_and_not_all_others() -> None:
    names = [f"column_{number}" for number in range(60)] + ["stay days", "age"]
    near = unknown(Script("SELECT agee"), "column", "agee", names, None)
    assert isinstance(near, Refused)
    assert near.way_out == "did you mean age?"
    assert "column_7" not in str(near)
    quoted = unknown(Script("SELECT staydays"), "column", "staydays", names, None)
    assert isinstance(quoted, Refused)
    assert '"stay days"' in quoted.way_out
    far = unknown(Script("SELECT zzz"), "column", "zzz", names, None)
    assert isinstance(far, Refused)
    assert "column_0, column_1" in far.reason
    assert "column_30" not in far.reason
