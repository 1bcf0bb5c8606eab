"""No row makes a question fail, on any engine, and nothing tells what is in it (check C29).

Sixty questions, for each of which one row has the value that would raise in a database: with that row and without it
everything that can be seen is the same, and no text that anybody can see has the value.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engines_agree import HandOver
from postgres_cluster import Cluster
from postgres_tables import load
from spark_session import spark_table
from system_parts import needs_postgres, needs_spark

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.workers.worker_engine import WorkerEngine

CANARY = "canary4711"
LARGEST, LEAST = 2**63 - 1, -(2**63)
KINDS = {
    "who": pa.int64(),
    "word": pa.string(),
    "whole": pa.int64(),
    "other": pa.int64(),
    "tiny": pa.int8(),
    "real": pa.float64(),
    "exact": pa.decimal128(38, 2),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "yes": pa.bool_(),
}
USUAL = {"word": "7", "whole": 7, "other": 3, "tiny": 1, "real": 0.5, "exact": Decimal("1.25"),
         "day": date(2024, 2, 3), "at": datetime(2024, 2, 3, 4, 5), "yes": True}  # fmt: skip
COLUMNS = {
    "word": dp.text(),
    "whole": dp.between(-(2**62), 2**62),
    "other": dp.between(-(2**62), 2**62),
    "tiny": dp.between(-100, 100),
    "real": dp.between(-1000.0, 1000.0, step="0.5"),
    "exact": dp.between(-1000.0, 1000.0, step="0.01"),
    "day": dp.between(date(2000, 1, 1), date(2030, 1, 1)),
    "at": dp.between(datetime(2000, 1, 1), datetime(2030, 1, 1)),
    "yes": dp.boolean(),
}
# What the odd row has of every column, one after the other; it is one unit with as many rows.
ODD: list[dict[str, Any]] = [
    {"word": CANARY, "whole": LARGEST, "other": LARGEST, "tiny": 127, "real": float("inf"), "exact": Decimal("9" * 36)},
    {"word": f"{CANARY}-02-30", "whole": LEAST, "other": -1, "tiny": -128, "real": float("nan"), "yes": None},
    {"word": f"2024-02-30 {CANARY}", "whole": LEAST, "other": LEAST, "real": 1.7976931348623157e308},
    {"word": "1e999", "whole": 0, "other": 0, "tiny": 0, "real": 0.0, "exact": Decimal("0.00")},
    {"word": f"[({CANARY}", "whole": LARGEST, "other": 0, "real": -0.0, "exact": Decimal("-" + "9" * 36)},
    {"word": "", "whole": None, "other": None, "tiny": None, "real": 5e-324, "exact": None, "day": None, "at": None},
    {"word": None, "whole": -1, "other": LEAST, "real": -1e308, "day": date(1, 1, 1), "at": datetime(1, 1, 1)},
    {"word": CANARY * 2_000, "whole": 2**53 + 1, "other": 1, "real": -745.2, "day": date(9999, 12, 31)},
    {"word": "e\u0301\U0001f600\u202e" + CANARY, "whole": 2**62, "other": 2**62, "at": datetime(9999, 12, 31, 23, 59)},
    {"word": f" {LARGEST}0 ", "whole": -7, "other": 2, "real": float("-inf"), "day": date(2024, 2, 29)},
]
_NUMBERS = (
    "whole / other", "whole % other", "whole // other", "1 / real", "real / real", "whole / tiny", "tiny % other",
    "whole + other", "whole - other", "whole * other", "-whole", "ABS(whole)", "tiny * tiny * tiny", "tiny - 127",
    "whole * whole * whole", "real * real", "real + real", "exact * exact", "exact + exact", "exact / tiny",
    "EXP(real)", "LN(real)", "LOG10(real)", "LOG2(real - 1)", "SQRT(real)", "POWER(real, 1000)", "POWER(tiny, -1)",
    "POWER(real, 0.5)", "SIN(real)", "ROUND(real)", "FLOOR(real)", "CEIL(exact)", "SIGN(real)", "TRUNC(real)",
    "CAST(word AS INTEGER)", "CAST(word AS DOUBLE)", "TRY_CAST(word AS INTEGER)", "CAST(real AS INTEGER)",
    "CAST(exact AS INTEGER)", "CAST(whole AS DOUBLE)", "LENGTH(word)", "YEAR(day)", "EXTRACT(HOUR FROM at)",
    "DATE_DIFF('day', DATE '1970-01-01', day)", "DATE_DIFF('day', day, CAST(word AS DATE))",
)  # fmt: skip
_CONDITIONS = (
    "CAST(word AS DATE) > DATE '2024-01-01'", "CAST(word AS TIMESTAMP) IS NULL", "CAST(word AS BOOLEAN)",
    "word LIKE '%[(%'", "word ILIKE 'CANARY%'", "SUBSTRING(word, whole, other) = '7'", "LEFT(word, tiny) = '7'",
    "REPLACE(word, 'c', word) <> ''", "word || word = '77'", "UPPER(LOWER(word)) = 'X'", "STARTS_WITH(word, '7')",
    "day + INTERVAL 1 DAY > DATE '2024-01-01'", "day - 1 > DATE '2000-01-01'", "DATE_TRUNC('month', at) > day",
    "CAST(at AS DATE) = day", "CAST(real AS VARCHAR) = '0.5'", "CAST(exact AS VARCHAR) = '1.25'",
    "REGEXP_MATCHES(word, '(a+)+$')", "CASE WHEN other = 0 THEN FALSE ELSE whole / other > 1 END",
    "NULLIF(real, 0) / real = 1",
)  # fmt: skip
TRIGGERS = (
    *(f"SELECT SUM(LEAST(GREATEST({number}, -9), 9)) AS n FROM t" for number in _NUMBERS),
    *(f"SELECT COUNT(*) AS n FROM t WHERE {condition}" for condition in _CONDITIONS),
    *(
        f"SELECT {one} AS n FROM t"
        for one in ("SUM(whole)", "AVG(exact)", "MEDIAN(real)", "VAR_POP(whole)", "CORR(whole, real)", "MODE(tiny)")
    ),
    "SELECT COUNT(DISTINCT word) AS n FROM t",
    "SELECT SUM(LEAST(GREATEST(s, -9), 9)) AS n FROM (SELECT who, SUM(whole) AS s FROM t GROUP BY who) AS x",
    "SELECT AVG(LEAST(GREATEST(s, -9), 9)) AS n FROM (SELECT who, AVG(real) AS s FROM t GROUP BY who) AS x",
)


def rows(*, odd: bool, broken: bool = False) -> pa.Table:
    """Return usual people, and one with all that is odd; `broken` texts are no UTF-8."""
    made = [{"who": number, **USUAL, "whole": number} for number in range(1, 40)]
    made += [{"who": 4711, **USUAL, **one} for one in ODD] if odd else []
    table = pa.Table.from_pylist(made, schema=pa.schema(list(KINDS.items())))
    return _broken(table) if broken else table


def _broken(table: pa.Table) -> pa.Table:
    """Put a byte that no text has into every canary."""
    column = table.column("word").combine_chunks()
    bits, offsets, data = column.buffers()
    spoiled = pa.py_buffer(data.to_pybytes().replace(CANARY.encode(), b"\xff" + CANARY[1:].encode()))
    words = pa.Array.from_buffers(pa.string(), len(column), [bits, offsets, spoiled])
    return table.set_column(table.schema.get_field_index("word"), "word", words)


def opened(tables: Mapping[str, Any]) -> dp.Session:
    return dp.Session(
        dict(tables),
        unit=dp.Unit("who", 1, 20),
        budget=dp.Budget(epsilon=10_000),
        columns=COLUMNS,
        ledger="memory",
        dataset="odd",
        principal="analyst",
    )


def seen(session: dp.Session, sql: str) -> tuple[Any, ...]:
    """Return what somebody sees of a question, but for the noise: a status, all texts, how many rows and columns."""
    try:
        plan = session.sql(sql, epsilon=1)
    except (dp.Refused, dp.InvalidParameter) as refused:
        return type(refused), _texts(refused)
    told = str(plan.explain())
    try:
        found = plan.release()
    except Exception as failed:  # noqa: BLE001, which one it is, is what is compared.
        return told, type(failed), _texts(failed)
    return told, "answered", len(found.to_pandas()), tuple(found.to_pandas().columns)


def _texts(error: BaseException) -> str:
    """Return all texts of an error and of what is behind it, which is nothing where rows were read."""
    behind = error.__cause__ or error.__context__
    assert behind is None or isinstance(error, dp.Refused)
    mine = repr(error.args) + "".join(traceback.format_exception_only(error))
    return mine if behind is None else mine + _texts(behind)


def seen_together(session: dp.Session) -> list[str]:
    """Count all questions at once, and say which are refused; one row that raises would fail all of them."""
    found, stages = [], []
    for sql in TRIGGERS:
        try:
            stages += session.sql(sql, epsilon=1)._asked.stages
            found.append("counted")
        except (dp.Refused, dp.InvalidParameter) as refused:
            found.append(_texts(refused))
    session._desk.engine.run_all(stages, deadline=Deadline.after(300))
    return found


@contextmanager
def listening(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Hear everything that is logged and printed, and find no canary in it."""
    with caplog.at_level(logging.DEBUG):
        yield
    written = "".join(capfd.readouterr())
    logged = "".join(f"{one.getMessage()} {one.args} {one.exc_text}" for one in caplog.records)
    assert CANARY not in written
    assert CANARY not in logged


def check_neighbours(hand_over: HandOver, asked: tuple[str, ...]) -> int:
    """Ask of both neighbours; return how many were answered."""
    with opened(hand_over({"t": rows(odd=True)})) as one, opened(hand_over({"t": rows(odd=False)})) as other:
        assert [sql for sql in TRIGGERS if (sql in asked) and seen(one, sql) != seen(other, sql)] == []
        together = seen_together(one)
        assert together == seen_together(other)
    assert not any(CANARY in text for text in together)
    return together.count("counted")


def test_there_are_sixty_triggers() -> None:
    assert len(set(TRIGGERS)) >= 70


@pytest.mark.long
def test_no_row_is_told_by_a_worker(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    with listening(caplog, capfd):
        assert check_neighbours(dict, TRIGGERS) >= 60
        broken = {"t": rows(odd=True, broken=True)}
        with opened(broken) as session:
            assert seen_together(session).count("counted") >= 60


@needs_postgres
@pytest.mark.long
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_no_row_is_told_by_postgres(
    every: int,
    postgres_cluster: Cluster,
    postgres_database: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = len(postgres_cluster.log)

    def hand_over(tables: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: load(postgres_database, table) for name, table in tables.items()}

    with listening(caplog, capfd):
        assert check_neighbours(hand_over, TRIGGERS[::every]) >= 60
    assert CANARY not in postgres_cluster.log[before:]


@needs_spark
@pytest.mark.long
@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_no_row_is_told_by_spark(
    every: int,
    spark: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    places = (tmp_path / str(number) for number in range(9))

    def hand_over(tables: Mapping[str, Any]) -> Mapping[str, Any]:
        place = next(places)
        place.mkdir()
        return {name: spark_table(spark, place, name, table) for name, table in tables.items()}

    with listening(caplog, capfd):
        assert check_neighbours(hand_over, TRIGGERS[::every]) >= 60
        with opened(hand_over({"t": rows(odd=True, broken=True)})) as session:
            assert seen_together(session).count("counted") >= 60


# --- planted ---


def test_a_row_that_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong neighbour: a reader that fails at one value, and says which."""

    run_all = WorkerEngine.run_all

    def raising(self: WorkerEngine, stages: Any, *, deadline: Deadline) -> Any:
        if self is odd._desk.engine:
            raise ValueError(CANARY)
        return run_all(self, stages, deadline=deadline)

    with opened({"t": rows(odd=True)}) as odd, opened({"t": rows(odd=False)}) as usual:
        monkeypatch.setattr(WorkerEngine, "run_all", raising)
        assert seen(odd, TRIGGERS[0]) != seen(usual, TRIGGERS[0])
        assert CANARY not in str(seen(odd, TRIGGERS[0]))


@pytest.mark.parametrize("tell", [print, logging.getLogger("a driver").info])
def test_a_value_that_is_printed_or_logged_is_found(
    tell: Callable[[str], None], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError), listening(caplog, capfd):
        tell(f"cannot cast {CANARY}")
