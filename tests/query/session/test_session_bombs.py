"""Questions that would take all of a machine if one person's row were there: nobody else pays for them."""

from __future__ import annotations

import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dp
from discreet.query import Resources

SECONDS, MEMORY = 20, 128 << 20
SLACK = 10.0  # Seconds, for a machine that is busy.
LONG = "x" * 10_000
ALICE = "name = 'alice'"


def nested(text: str, times: int, argument: str = "note") -> str:
    for _ in range(times):
        argument = text.format(argument)
    return argument


REPLACED = "REPLACE({0}, 'x', 'xx')"
BOMBS = {
    "long concat": f"SUM(CASE WHEN {ALICE} THEN LENGTH(CONCAT({', '.join(['note'] * 400)})) END)",
    "longer concat": f"SUM(CASE WHEN {ALICE} THEN LENGTH(CONCAT({', '.join(['note'] * 2000)})) END)",
    "doubling": f"SUM(CASE WHEN {ALICE} THEN LENGTH({nested('CONCAT({0}, {0})', 12)}) END)",
    "replacing": f"SUM(CASE WHEN {ALICE} THEN LENGTH({nested(REPLACED, 40)}) END)",
    "upper and lower": f"SUM(CASE WHEN {ALICE} THEN LENGTH({nested('UPPER(LOWER({0}))', 60)}) END)",
    "trimmed": f"SUM(CASE WHEN {ALICE} THEN LENGTH({nested('TRIM(CONCAT({0}, note))', 60)}) END)",
    "distinct texts": f"COUNT(DISTINCT CASE WHEN {ALICE} THEN CONCAT({', '.join(['note'] * 200)}) END)",
    "cut": f"SUM(CASE WHEN {ALICE} THEN LENGTH({nested('SUBSTRING(CONCAT({0}, {0}), 1, 9000)', 12)}) END)",
    "compared": f"COUNT(CASE WHEN {ALICE} AND CONCAT({', '.join(['note'] * 300)}) > note THEN 1 END)",
    "powers": f"SUM(CASE WHEN {ALICE} THEN {nested('ROUND(EXP(LN(1 + ABS({0}))), 2)', 40, 'pay')} END)",
    "many cases": "SUM(CASE "
    + " ".join(f"WHEN {ALICE} AND LENGTH(CONCAT(note, note)) = {n} THEN {n}" for n in range(150))
    + " END)",
    "joined": f"SUM(CASE WHEN {ALICE} THEN LENGTH(REPLACE(CONCAT(note, note), 'x', 'xx')) END)",
}


def people(*, with_alice: bool) -> pa.Table:
    names = [f"p{number}" for number in range(50)] + (["alice"] if with_alice else [])
    return pa.table({"name": names, "note": [LONG] * len(names), "pay": [1.5] * len(names), "k": [1] * len(names)})


def ask(table: pa.Table, asked: str, joins: str = "") -> None:
    """Ask; whatever comes of it, the next question is answered."""
    copies = dp.public(pa.table({"k": [1] * 300}))
    with dp.Session(
        {"t": table, "a": copies, "b": copies},
        unit=dp.Unit("name", max_groups=1, max_rows_per_group=1),
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="d",
        principal="p",
        columns={"t": {"pay": dp.between(0, 10, step="0.5")}},
        resources=Resources(seconds=SECONDS, memory=MEMORY, threads=1),
    ) as session:
        started = time.monotonic()
        with suppress(dp.Refused, dp.AnswerFailed):
            session.sql(f"SELECT {asked} AS n FROM t{joins}", epsilon=1).release()
        assert time.monotonic() - started < SECONDS + SLACK
        answer = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=50).release()
        assert abs(answer["n"][0].value - table.num_rows) < 10


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture(scope="module")
def loaded() -> None:
    """Ask once: whatever is loaded once is loaded, and is not memory that a bomb took."""
    ask(people(with_alice=False), "COUNT(*)")


@pytest.mark.long
@pytest.mark.usefixtures("loaded")
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts and forbids")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_neither_our_memory_nor_our_time_nor_the_next_answer(name: str) -> None:
    joins = " JOIN a ON t.k = a.k JOIN b ON t.k = b.k" if name == "joined" else ""
    for with_alice in (True, False):
        before = rss()
        ask(people(with_alice=with_alice), BOMBS[name], joins)
        assert rss() - before < 150 << 20
