"""Totals so far over a year: how exact each way is at the same price, and what real draws say."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["measure", "tables"]

WAYS: Final = (
    "independent totals",
    "sums of daily counts",
    "binary tree",
    "square root",
    "scaled square root",
    "no way goes below",
)
COLUMNS: Final = ("day 1", "day 30", "day 182", "day 365", "mean", "largest")
BOUND: Final = "no way goes below"
USED: Final = "scaled square root"


def measure(*, quick: bool) -> Results:
    """Run our own environment."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_running")
    return gathering.results("running")


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge what is used against what else could be, and against what was announced."""
    used, bound, alone = (results.figure("largest", way=way, max_days=1) for way in (USED, BOUND, WAYS[0]))
    real, announced = (results.figure(name, job="draws") for name in ("real", "announced"))
    return (
        Goal("a fifth of the error of independent totals", None if not used or not alone else used <= alone / 5),
        Goal("within 10 % of what no way goes below", None if not used or not bound else used <= 1.1 * bound),
        Goal(
            "real errors within 10 % of those announced", None if not real or not announced else _near(real, announced)
        ),
    )


def _near(real: float, announced: float) -> bool:
    return abs(real / announced - 1) <= 0.1


def tables(results: Results) -> tuple[Table, ...]:
    """Show the errors of one day a person, of five, and the time of a day."""
    return (*(_errors(results, most) for most in (1, 5)), _times(results))


def _errors(results: Results, most: int) -> Table:
    rows = [row for way in WAYS if (row := results.find(job="error", way=way, max_days=most)) is not None]
    bound = results.figure("largest", job="error", way=BOUND, max_days=most)
    days = "one day" if most == 1 else f"{most} days"
    return Table(
        title=f"Totals so far over 365 days, ε = 1, δ = 1e-6 for all days together, a person on {days} at most: "
        "standard deviation of the noise, in people",
        columns=("way", *COLUMNS, "largest / bound"),
        rows=tuple(_row(row, bound) for row in rows),
        remarks=(_judged(results),) if most == 1 else (),
    )


def _row(row: dict[str, Any], bound: float | None) -> tuple[str, ...]:
    return (row["way"], *(number(row.get(column)) for column in COLUMNS), ratio(row["largest"], bound))


def _judged(results: Results) -> str:
    draws = results.find(job="draws") or {}
    said = (
        f" {draws['runs']} years were drawn by the code that releases: the root of the mean squared error over all "
        f"days was {number(draws['real'])}, announced {number(draws['announced'])}; {100 * draws['covered']:.1f} % of "
        "the 95 % intervals held the exact total."
        if draws
        else ""
    )
    return ", ".join(map(str, goals(results))) + "." + said


def _times(results: Results) -> Table:
    rows = [row for row in results.rows if row.get("job") == "time"]
    units = max((row["units"] for row in rows), default=0)
    return Table(
        title=f"Releasing a series over {units:,} people, seconds",
        columns=("job", "CPU", "wall"),
        rows=tuple((row["what"], number(row["cpu"]), number(row["wall"])) for row in rows),
        remarks=(
            "From opening the session to the table: every person's first day is read, who is new is written into the "
            "private state, and each day is measured and stored in the ledger, forced to disk.",
            *results.missing(),
        ),
    )
