"""Accounting: what each accountant answers, and how long it takes."""

from __future__ import annotations

import time
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.jobs import TASKS
from benchmarks.results import Gathering, Goal, Results, gather
from benchmarks.table import MISSING, Table, number, ratio

__all__ = ["goals", "measure", "table"]

PEERS: Final = {
    "dp-accounting": "dp_accounting_accounting",
    "prv-accountant": "prv_accountant_accounting",
    "opacus": "opacus_accounting",
}
TITLES: Final = {
    "dpsgd": "DP-SGD q=0.01 σ=1 T=10,000: ε",
    "many": "500 Gaussians + 500 Laplaces: ε",
    "repeated": "1000 × Gaussian σ=50: ε",
    "calibrate": "σ for ε=2 (q=0.01, T=10,000)",
}
LIMIT_MS: Final = {"dpsgd": 50, "many": 250, "repeated": None, "calibrate": 250}
UNKNOWN: Final = {("opacus", "many"): "has no Laplace"}
REFERENCE: Final = ("dp-accounting", "dpsgd", "PLD 1e-5")  # An outside figure, right to 1e-6.
WITHIN: Final = 1e-3  # of the true epsilon of the DP-SGD run
FRESH: Final = 5  # processes for each figure, since only a first call is not helped by any cache
LONG: Final = 40.0  # seconds; a script that takes longer runs once


def measure(*, quick: bool) -> Results:
    """Run every task by every subject, one at a time, in fresh processes."""
    gathering = gather(quick=quick)
    for task in TASKS:
        calls = ("calibrate",) if task == "calibrate" else ("epsilon", "epsilon_bounds")
        for call in ("first", *calls):
            _repeat(gathering, OURS, "discreet_accounting", task, call)
        for subject, script in PEERS.items():
            if (subject, task) not in UNKNOWN:
                _repeat(gathering, subject, script, task)
    _run(gathering, REFERENCE[0], PEERS[REFERENCE[0]], "reference", task=REFERENCE[1])
    return gathering.results("accounting")


def _repeat(gathering: Gathering, subject: str, script: str, task: str, *arguments: str) -> None:
    for _ in range(2 if gathering.quick else FRESH):
        start = time.monotonic()
        _run(gathering, subject, script, task, *arguments, task=task)
        if time.monotonic() - start > LONG:
            break


def _run(gathering: Gathering, subject: str, script: str, *arguments: str, task: str) -> None:
    if (environment := gathering.environment(subject)) is not None:
        gathering.run(environment, script, *arguments, task=task)


def best(results: Results, subject: str, task: str, how: str) -> dict[str, Any] | None:
    """Return the row of one accountant with the fastest of its processes."""
    wanted = {"subject": subject, "task": task, "how": how}
    rows = [row for row in results.rows if wanted.items() <= row.items()]
    times = ("cold_ms", "warm_ms", "cold_wall_ms")
    return rows[0] | {name: min(row[name] for row in rows) for name in times} if rows else None


def answer(results: Results, task: str) -> dict[str, Any] | None:
    """Return our row that the peers are compared with."""
    return best(results, OURS, task, "calibrate" if task == "calibrate" else "epsilon")


def goals(results: Results, task: str) -> tuple[Goal, ...]:
    """Judge one task by its cold time, and the DP-SGD value by a peer's finest grid."""
    ours, limit = answer(results, task), LIMIT_MS[task]
    timely = (Goal(f"≤ {limit} ms", None if ours is None else ours["cold_ms"] <= limit),) if limit else ()
    if task != "dpsgd":
        return timely
    truth = best(results, *REFERENCE)
    close = None if ours is None or truth is None else abs(ours["value"] - truth["value"]) <= WITHIN
    return (*timely, Goal("within 1e-3 of the truth", close))


def table(results: Results) -> Table:
    """List all accountants under each task."""
    columns = ("task (δ=1e-5)", "accountant", "lower bound", "answer", "above ours", "cold ms", "warm ms")
    return Table(
        title="Accounting: the answer, and CPU milliseconds",
        columns=(*columns, "time / ours", "goals"),
        rows=tuple(row for task in TASKS for row in _task_rows(results, task)),
        remarks=(
            "Cold: the first call on that event after an unrelated one has loaded the libraries, the fastest "
            f"of {FRESH} fresh processes. Warm: the same call again; whoever keeps something gains. "
            "“first” is our first call of all, which also loads SciPy and python-flint.",
            "“time / ours” favours the peer: the better of its two times over our cold time of `epsilon` or "
            "`calibrate`.",
            "A smaller answer is better as long as it is an upper bound, which all of these claim; “above ours” "
            "is how much the peer's exceeds ours. RDP is quick and loose. Only prv-accountant and we also bound "
            "ε from below.",
            "The truth of the DP-SGD run is taken from dp-accounting's PLD on a grid of 1e-5.",
            *(f"{subject} {reason} (task “{TITLES[task]}”)." for (subject, task), reason in UNKNOWN.items()),
            *results.missing(),
        ),
    )


def _task_rows(results: Results, task: str) -> list[tuple[str, ...]]:
    ours = answer(results, task)
    seen = dict.fromkeys((row["subject"], row["how"]) for row in results.rows if row["task"] == task)
    rows = [best(results, subject, task, how) for subject, how in seen]
    told = ", ".join(map(str, goals(results, task)))
    return [_row(row, task, ours, told) for row in rows if row is not None]


def _row(row: dict[str, Any], task: str, ours: dict[str, Any] | None, told: str) -> tuple[str, ...]:
    own, main = row["subject"] == OURS, ours is not None and row["how"] == ours["how"]
    return (
        TITLES[task],
        f"{row['subject']} {row['how']}",
        MISSING if row["lower"] is None else f"{row['lower']:.5f}",
        f"{row['value']:.5f}",
        MISSING if own or ours is None else f"{row['value'] - ours['value']:+.5f}",
        number(row["cold_ms"]),
        MISSING if row["how"] == "first" else number(row["warm_ms"]),
        MISSING if own else ratio(min(row["cold_ms"], row["warm_ms"]), ours["cold_ms"] if ours else None),
        told if own and main else "",
    )
