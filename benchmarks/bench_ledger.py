"""The ledger: durable charges in a second, from one writer and from many, and what the disk alone allows."""

from __future__ import annotations

import multiprocessing
import os
import queue
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from benchmarks.environments import ROOT
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number
from discreet.ledger import Account, Budget, Ledger
from discreet.ledger.charge_record import facts_of
from discreet.ledger.requests import ChargeRequest
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

__all__ = ["best", "goals", "judged", "measure", "table", "writers"]

ADD: Final = Relation.ADD_REMOVE
WRITERS: Final = 64
ONE_WRITER: Final = "one writer, (ε, δ)"
MANY: Final = f"{WRITERS} processes, (ε, δ)"
THREADS: Final = 16
IN_THREADS: Final = f"{THREADS} threads of one process, (ε, δ)"
OPENED: Final = "open a long record, entries"
LONG: Final = 1_000_000  # entries of it; a twentieth of that if quick
GOALS: Final = {ONE_WRITER: 1500, IN_THREADS: 3000, MANY: 500, OPENED: LONG // 5}  # a second
EACH: Final = 1000  # charges to a transaction of the long record
SECONDS: Final = 3.0  # each job and turn, at most
TINY: Final = PureDP("1e-9")
BUDGETS: Final = {"pure": Budget(1), "(ε, δ)": Budget(1, "1e-6")}


def measure(*, quick: bool) -> Results:
    """Measure every way to charge on a folder of the real disk, the best of a few turns each."""
    gathering, count = gather(quick=quick), 200 if quick else 2000
    with _folder() as folder:
        jobs = _jobs(folder, count)
        for turn in range(1 if quick else 3):
            for what, job in jobs.items():
                gathering.rows.append({"subject": "discreet", "what": what, "turn": turn} | job())
    return gathering.results("ledger")


@contextmanager
def _folder() -> Iterator[Path]:
    home = ROOT / ".bench"
    home.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=home))
    yield made
    shutil.rmtree(made)


def _jobs(folder: Path, count: int) -> dict[str, Callable[[], dict[str, Any]]]:
    jobs: dict[str, Callable[[], dict[str, Any]]] = {
        "the disk: one forced write": lambda: _rate(count, _forced(folder / "forced")),
        "the disk: one bare SQLite commit": lambda: _rate(count, _bare(folder / "bare")),
    }
    for name, budget in BUDGETS.items():
        jobs[f"one writer, {name}"] = lambda budget=budget: _one_writer(folder, budget, count, _same)  # type: ignore[misc]
    jobs |= {
        "one writer, (ε, δ), every event new": lambda: _one_writer(folder, BUDGETS["(ε, δ)"], count, _fresh),
        "one writer, charge and store an answer": lambda: _one_writer(folder, BUDGETS["(ε, δ)"], count, _answered),
        "in memory, (ε, δ)": lambda: _in_memory(count),
        IN_THREADS: lambda: writers(_new(folder), THREADS, max(1, 3 * count // THREADS), threads=True),
        MANY: lambda: writers(_new(folder), WRITERS, max(1, 5 * count // WRITERS)),
        "open and verify, entries": lambda: _verified(folder, 2 * count),
        OPENED: lambda: _opened(folder / "long", LONG if count > 200 else LONG // 20),
    }
    return jobs


def _rate(count: int, step: Callable[[int], object]) -> dict[str, Any]:
    """Step `count` times, fewer on a disk so slow that it would take too long."""
    start, cpu, done = time.perf_counter(), time.process_time(), 0
    while done < count and time.perf_counter() - start < SECONDS:
        step(done)
        done += 1
    seconds = time.perf_counter() - start
    return {"per_second": done / seconds, "cpu_us": (time.process_time() - cpu) / done * 1e6, "count": done}


def _forced(path: Path) -> Callable[[int], object]:
    file = os.open(path, os.O_RDWR | os.O_CREAT)

    def step(i: int) -> None:
        os.pwrite(file, b"%512d" % i, 512 * (i % 2))
        os.fdatasync(file)

    return step


def _bare(path: Path) -> Callable[[int], object]:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 500"):
        connection.execute(f"PRAGMA {statement}")
    connection.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, x TEXT)")

    def step(i: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?, ?)", (i, "x" * 500))
        connection.execute("COMMIT")

    return step


def _account(budget: Budget) -> Account:
    return Account("people", "row", ADD, budget)


def _same(ledger: Ledger, i: int) -> None:
    ledger.charge(TINY, relation=ADD, purpose="benchmark", principal="analyst", project="project")


def _fresh(ledger: Ledger, i: int) -> None:
    ledger.charge(PureDP(Fraction(1, 10**9 + i)), relation=ADD, purpose="benchmark")


def _answered(ledger: Ledger, i: int) -> None:
    charge = ledger.charge(
        TINY, relation=ADD, purpose="benchmark", idempotency_key=f"{time.time_ns()} {i}", plan="p", version="v"
    )
    ledger.store(charge, lambda: "42")


def _one_writer(folder: Path, budget: Budget, count: int, step: Callable[[Ledger, int], None]) -> dict[str, Any]:
    with Ledger.open(_new(folder), _account(budget)) as ledger:
        _rate(count // 4, lambda i: step(ledger, -1 - i))  # The log has its full size then.
        return _rate(count, lambda i: step(ledger, i))


def _in_memory(count: int) -> dict[str, Any]:
    with Ledger.open("memory", _account(BUDGETS["(ε, δ)"])) as ledger:
        return _rate(count, lambda i: _same(ledger, i))


def _verified(folder: Path, count: int) -> dict[str, Any]:
    path = _new(folder)
    with Ledger.open(path, _account(BUDGETS["(ε, δ)"])) as ledger:
        made = _rate(count, lambda i: _same(ledger, i))["count"]
    start, cpu = time.perf_counter(), time.process_time()
    Ledger.open(path, _account(BUDGETS["(ε, δ)"])).close()
    seconds = time.perf_counter() - start
    return {"per_second": made / seconds, "cpu_us": (time.process_time() - cpu) / made * 1e6, "count": made}


def _opened(path: Path, count: int) -> dict[str, Any]:
    """Open a record that was made once, of charges, with checkpoints as they come: all of it is hashed."""
    if not path.exists():
        _fill(path, count)
    start, cpu = time.perf_counter(), time.process_time()
    Ledger.open(path, _account(BUDGETS["(ε, δ)"])).close()
    seconds = time.perf_counter() - start
    return {"per_second": count / seconds, "cpu_us": (time.process_time() - cpu) / count * 1e6, "count": count}


def _fill(path: Path, count: int) -> None:
    """Charge as usual, but for the flushes: many charges to a transaction."""
    facts = facts_of(
        TINY, ADD, purpose="benchmark", principal="analyst", project="project", idempotency_key=None, plan=None,
        version=None,
    )  # fmt: skip
    asked = ChargeRequest("people", TINY, facts, "row", ())
    with Ledger.open(path, _account(BUDGETS["(ε, δ)"])) as ledger:
        for _ in range(0, count, EACH):
            with ledger._store.writing() as rows:
                for _ in range(EACH - 1):
                    asked.decide(rows)
            _same(ledger, 0)


def _new(folder: Path) -> Path:
    return folder / f"ledger-{time.time_ns()}"


def _spend(place: str | Path, anchor: Path | None, each: int, start: Any, done: Any) -> None:
    with Ledger.open(place, _account(BUDGETS["(ε, δ)"]), anchor=anchor) as ledger:
        start.wait()
        done.put(_rate(each, lambda i: _same(ledger, i))["count"])


def writers(
    place: str | Path, count: int, each: int, *, anchor: Path | None = None, threads: bool = False
) -> dict[str, Any]:
    """Charge from many processes, or threads, at once, each with the ledger open; what was told must be there."""
    with Ledger.open(place, _account(BUDGETS["(ε, δ)"]), anchor=anchor):
        pass  # It is made, and nobody has to wait for that.
    context = multiprocessing.get_context("fork")
    start = threading.Barrier(count + 1) if threads else context.Barrier(count + 1)
    done: Any = queue.Queue() if threads else context.Queue()
    begin = threading.Thread if threads else context.Process
    running = [begin(target=_spend, args=(place, anchor, each, start, done)) for _ in range(count)]
    for each_one in running:
        each_one.start()
    start.wait()
    begun = time.perf_counter()
    total = sum(done.get() for _ in running)
    seconds = time.perf_counter() - begun
    for each_one in running:
        each_one.join()
    with Ledger.open(place, _account(BUDGETS["(ε, δ)"]), anchor=anchor) as ledger:
        lost = total - ledger.spent().charges
    return {"per_second": total / seconds, "count": total, "lost": lost}


def best(results: Results, what: str, figure: str = "per_second") -> float | None:
    """Return the best turn of a job."""
    found = [row for row in results.rows if row["what"] == what and figure in row]
    return max(found, key=lambda row: row["per_second"])[figure] if found else None


def judged(results: Results, promised: Mapping[str, int]) -> tuple[Goal, ...]:
    """Judge rates that were promised."""
    rates = ((least, best(results, what)) for what, least in promised.items())
    return tuple(Goal(f"≥ {least:,} a second", None if rate is None else rate >= least) for least, rate in rates)


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge what was promised."""
    return judged(results, GOALS)


def table(results: Results) -> Table:
    """List the jobs."""
    verdicts = dict(zip(GOALS, goals(results), strict=True))
    jobs = dict.fromkeys(row["what"] for row in results.rows)
    return Table(
        title="Durable charges in a second",
        columns=("what", "a second", "CPU, µs each", "goals"),
        rows=tuple(
            (what, number(best(results, what)), _or_missing(best(results, what, "cpu_us")), str(verdicts.get(what, "")))
            for what in jobs
        ),
        remarks=(
            "A charge forces two writes to disk before it returns: the commit and the anchor. The first two rows are "
            "what the disk allows. The best of three turns each; every turn starts with a new file.",
            "With many processes or threads, none loses a charge: the ledger holds as many as were told. What threads "
            "ask while one writes is committed together.",
            f"The long record has {LONG:,} charges. An opening hashes all of it, and adds up what came since the last "
            "checkpoint.",
            *results.missing(),
        ),
    )


def _or_missing(value: float | None) -> str:
    return MISSING if value is None else number(value)
