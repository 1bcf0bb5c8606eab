"""One row more costs little, whatever is in it: what a query may make of a row is bounded before it is paid."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from row_work_bombs import ALICE, BOMBS, LARGEST, concat, copied, likes, replaces, self_joined, tables

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.sql_queries import write_stage
from discreet.query.engines.sql_writer import Writer

MUCH = 160 << 10  # kB: what one row more may take, with all the memory that allocators keep
LONG = 20  # seconds of computing time; a tenth of one is usual, and the machine may be busy


@pytest.fixture
def session() -> dp.Session:
    return dp.Session(
        tables(alice=True, people=20),
        unit=dp.Unit("who", 1, 10),
        budget=dp.Budget(epsilon=100, delta="1e-4"),
        ledger="memory",
        dataset="people",
        principal="ana",
    )


def replaces_of_copies() -> str:
    text = "p.b"
    for _ in range(20):
        text = f"REPLACE({text}, 'a', 'aaaaaaaaaa')"
    joins = "JOIN list1000 l ON p.one = l.one JOIN list1000 m ON p.one = m.one"
    return f"SELECT COUNT(CASE WHEN {ALICE} AND LENGTH({text}) > 5 THEN 1 END) AS n FROM p {joins}"


@pytest.mark.parametrize(
    "query",
    [concat(800), concat(5000), replaces(31), likes(10), copied(1000), replaces_of_copies(), self_joined(4)],
    ids=["concat", "long concat", "replace", "like", "copies", "copies and replace", "self join"],
)
def test_a_query_that_one_row_makes_costly_is_refused_before_the_charge(session: dp.Session, query: str) -> None:
    with pytest.raises(dp.Refused, match=r"one row could make|rows of one") as refused:
        session.sql(query, epsilon=1)
    assert "way out" in str(refused.value)
    assert not session.spent.charges


COPIED = "FROM p JOIN list1000 l ON p.one = l.one JOIN list100 m ON p.one = m.one"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT p.b AS k, COUNT(*) AS n {COPIED} GROUP BY p.b",
        f"SELECT COUNT(DISTINCT p.b) AS n {COPIED}",
        f"SELECT COUNT(*) AS n FROM (SELECT p.who, COUNT(DISTINCT p.b) AS d {COPIED} GROUP BY p.who) AS s WHERE d > 0",
        f"SELECT COUNT(*) AS n FROM (SELECT p.who, p.b, COUNT(*) AS d {COPIED} GROUP BY p.who, p.b) AS s WHERE d > 0",
    ],
    ids=["key", "distinct", "distinct of a unit", "key of a unit"],
)
def test_what_a_hash_table_keeps_is_counted_where_nothing_is_computed(session: dp.Session, query: str) -> None:
    """A column as it is makes no text, and still each of a hundred thousand copies brings one of ten thousand."""
    with pytest.raises(dp.Refused, match="one row could make"):
        session.sql(query, epsilon=1, delta="1e-6")
    assert not session.spent.charges


def nested(text: str, depth: int) -> str:
    for place in range(depth):
        text = f"{('UPPER', 'LOWER')[place % 2]}({text})"
    return text


def test_what_replacing_makes_of_a_short_text_is_long(session: dp.Session) -> None:
    text = nested(f"REPLACE(LEFT(p.b, 100), 'a', '{'x' * 100}')", 10)
    with pytest.raises(dp.Refused, match="one row could make"):
        session.sql(f"SELECT COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one WHERE {text} = 'X'", epsilon=1)
    assert not session.spent.charges


def test_what_a_join_compares_is_made_for_every_copy_of_the_row(session: dp.Session) -> None:
    joins = f"JOIN list1000 l ON p.one = l.one JOIN list10 m ON {nested('p.b', 10)} = m.x"
    with pytest.raises(dp.Refused, match=r"most of it is in join columns: .* for each of 1,000 rows"):
        session.sql(f"SELECT COUNT(*) AS n FROM p {joins}", epsilon=1)
    assert not session.spent.charges


def test_a_choice_of_a_text_makes_the_text(session: dp.Session) -> None:
    text = "p.b"
    for place in range(10):
        text = f"CASE WHEN p.one = {place} THEN p.name ELSE {text} END"
    with pytest.raises(dp.Refused, match="one row could make"):
        session.sql(f"SELECT COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one WHERE LENGTH({text}) > 5", epsilon=1)
    assert not session.spent.charges


def test_a_private_text_may_be_long_whatever_is_declared_of_it() -> None:
    """Values beyond the categories are there until they are read, so a list of short ones bounds nothing."""
    declared = dp.Session(
        tables(alice=True, people=20),
        unit=dp.Unit("who", 1, 10),
        columns={"p": {"b": dp.categories(["x", "y"])}},
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="people",
        principal="ana",
    )
    with declared as session:
        text = nested("p.b", 10)
        with pytest.raises(dp.Refused, match="one row could make"):
            session.sql(f"SELECT COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one WHERE {text} = 'X'", epsilon=1)
        assert not session.spent.charges


def test_a_refusal_says_which_part_costs_most(session: dp.Session) -> None:
    with pytest.raises(dp.Refused, match=r"most of it is in aggregate 1 \(count\).*rows"):
        session.sql(concat(5000), epsilon=1)
    key = f"CONCAT({', '.join(['b'] * 900)})"
    with pytest.raises(dp.Refused, match=r"most of it is in group key k"):
        session.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM p GROUP BY {key}", epsilon=1, delta="1e-6")
    with pytest.raises(dp.Refused, match=r"most of it is in a condition"):
        session.sql(f"SELECT COUNT(*) AS n FROM p WHERE {key} = 'x'", epsilon=1)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one",
        "SELECT COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one WHERE LOWER(p.name) = 'alice'",
        "SELECT COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one WHERE p.name LIKE 'al%' AND l.x <> '7'",
        "SELECT COUNT(*) AS n FROM p JOIN q ON p.who = q.who WHERE UPPER(p.name) = q.name",
        "SELECT COUNT(*) AS n FROM p WHERE REPLACE(LOWER(TRIM(name)), ' ', '') LIKE '%al%' OR b LIKE '%needle%'",
        f"SELECT COUNT(*) AS n FROM p WHERE name IN ({', '.join(repr(str(n)) for n in range(5000))})",
    ],
)
def test_ordinary_queries_are_admitted(session: dp.Session, query: str) -> None:
    assert len(session.sql(query, epsilon=1).release()) == 1


def test_a_start_of_a_text_is_the_way_out(session: dp.Session) -> None:
    with pytest.raises(dp.Refused):
        session.sql(copied(1000), epsilon=1)
    assert len(session.sql(copied(2), epsilon=1).release()) == 1


MEASURED = """
import json, os, sys
from pathlib import Path
from row_work_bombs import BOMBS, tables
import discreet as dp


def used():
    # The computing time and the largest memory of this process and of those that it started.
    waiting, seconds, memory = [os.getpid()], 0.0, 0
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        waiting += [int(one) for task in (place / "task").iterdir() for one in (task / "children").read_text().split()]
        seconds += int((place / "stat").read_text().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")
        lines = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        memory += int(lines["VmHWM"].split()[0])
    return seconds, memory


with dp.Session(tables(alice=sys.argv[1] == "1"), unit=dp.Unit("who", 1, 10), ledger="memory", dataset="d",
                budget=dp.Budget(epsilon=100, delta="1e-4"), principal="ana") as session:
    found = {}
    for bomb, size in BOMBS.items():
        session.sql(bomb(size), epsilon=1, delta="1e-6").release()
        found[bomb.__name__] = used()
print(json.dumps(found))
"""


def measured(alice: int) -> dict[str, tuple[float, int]]:
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", MEASURED, str(alice)]
    run = subprocess.run(command, env=dict(os.environ, PYTHONPATH=paths), check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(run.stdout))


@pytest.mark.long
def test_the_worst_queries_end_alike_with_and_without_the_row() -> None:
    """Both are answered; the row takes little more time and memory, over all bombs together."""
    there, not_there = measured(1), measured(0)
    assert list(there) == list(not_there) == [bomb.__name__ for bomb in BOMBS]
    for bomb in there:
        assert there[bomb][0] - not_there[bomb][0] < LONG
        assert there[bomb][1] - not_there[bomb][1] < MUCH


@pytest.mark.parametrize(("bomb", "size"), LARGEST.items(), ids=[bomb.__name__ for bomb in LARGEST])
def test_sizes_of_the_bombs_are_near_the_bound(session: dp.Session, bomb: Callable[[int], str], size: int) -> None:
    session.sql(bomb(size), epsilon=1, delta="1e-6")
    with pytest.raises(dp.Refused):
        session.sql(bomb(2 * size + 2), epsilon=1, delta="1e-6")


def test_every_step_of_a_concatenation_is_cut(session: dp.Session) -> None:
    stage = session.sql(concat(9), epsilon=1)._asked.priced.stage
    engine = DuckDBEngine(tables(alice=False, people=3))
    text = write_stage(stage, engine, Writer()).origin
    engine.close()
    assert len(re.findall(r"\|\| .*?, 10000\)", text)) == 8
    assert text.count("||") == 8
    assert text.count("left(") == 8 + 9, "each text that is put together, and each step of it"


@pytest.mark.parametrize("count", [2, 3, 7, 8])
def test_concatenations_are_what_they_were(count: int) -> None:
    parts = [f"'{n}'" if n % 2 else "t" for n in range(count)]
    data = pa.table({"who": [1, 2, 3], "t": ["x", "y" * 9_999, "z" * 20_000]})
    texts = [
        "".join(f"{n}" if n % 2 else text for n in range(count))[:10_000] for text in ("x", "y" * 9_999, "z" * 10_000)
    ]
    with dp.Session(
        {"t": data},
        unit=dp.Unit("who", 1, 1),
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="d",
        principal="ana",
    ) as session:
        for text in texts:
            same = f"SELECT COUNT(*) AS n FROM t WHERE CONCAT({', '.join(parts)}) = '{text}'"
            stage = session.sql(same, epsilon=1)._asked.priced.stage
            engine = session._desk.engine
            assert int(engine.run(stage, deadline=Deadline.after(60)).tally.rows[0]) == 1


@pytest.mark.parametrize("cast", ["INTEGER", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP"])
@pytest.mark.parametrize("value", ["t", "COALESCE(t, 'x')", "CASE WHEN who > 0 THEN t END"])
def test_a_text_is_cut_before_it_is_read_as_something_else(cast: str, value: str) -> None:
    """Reading a text of megabytes a thousand times would take minutes for one person's row."""
    read = "2024-01-01" if cast in ("DATE", "TIMESTAMP") else "1"
    data = pa.table({"who": [1, 2], "t": [" " * 9_990 + read, " " * 10_000 + read]})
    with dp.Session(
        {"t": data},
        unit=dp.Unit("who", 1, 1),
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="d",
        principal="ana",
    ) as session:
        there = f"SELECT COUNT(*) AS n FROM t WHERE CAST({value} AS {cast}) IS NOT NULL"
        stage = session.sql(there, epsilon=1)._asked.priced.stage
        assert int(session._desk.engine.run(stage, deadline=Deadline.after(60)).tally.rows[0]) == 1


@pytest.mark.parametrize("spent", [{"epsilon": "1e-6"}, {"epsilon": "1e-14"}, {"rho": "1e-12"}])
def test_a_question_that_is_almost_free_is_refused_before_the_charge(spent: dict[str, str]) -> None:
    with open_orders() as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM p", **spent)  # type: ignore[arg-type]
        with pytest.raises(dp.Refused, match="costs at least"):
            plan.release()
        with pytest.raises(dp.Refused, match="costs at least"):
            session.batch({"a": plan}, idempotency_key="k", purpose="x").release()
        assert not session.spent.charges


@pytest.mark.parametrize("terms", [100, 150, 200, 300, 1000])
def test_a_query_is_answered_or_refused_before_the_charge_however_deep_it_nests(terms: int) -> None:
    with open_orders() as session:
        charged = 1
        try:
            session.sql(f"SELECT COUNT(*) AS n FROM p WHERE {' + '.join(['who'] * terms)} > 3", rho="1e-3").release()
        except dp.Refused:
            charged = 0
        assert session.spent.charges == charged


def test_questions_together_are_looked_at_together() -> None:
    with open_orders() as session:
        parts = {
            f"q{n}": session.sql(f"SELECT COUNT(*) AS n FROM p WHERE who > {n}", epsilon=Fraction(1, 10**6))
            for n in range(10)
        }
        assert session.batch(parts, idempotency_key="k", purpose="x").release()
        session.sql("SELECT COUNT(*) AS n FROM p", epsilon="1e-5").release()
        session.sql("SELECT COUNT(*) AS n FROM p", rho="1e-10").release()


def open_orders() -> dp.Session:
    return dp.Session(
        {"p": pa.table({"who": list(range(20))})},
        unit=dp.Unit("who", 1, 1),
        budget=dp.Budget(rho=1),
        ledger="memory",
        dataset="people",
        principal="ana",
    )
