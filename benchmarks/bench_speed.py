"""Speed: nanoseconds of CPU a value of a private median and 0.9-quantile of many floats, whole calls."""

from __future__ import annotations

from typing import Final

from benchmarks.environments import OURS
from benchmarks.jobs import SPEED_BOUNDS, SPEED_EPSILON, SPEED_SIZES
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number, ratio

__all__ = ["goals", "measure", "table"]

SCRIPTS: Final = {
    OURS: "discreet_speed",
    "opendp": "opendp_speed",
    "python-dp": "python_dp_speed",
    "diffprivlib": "diffprivlib_speed",
}
PEERS: Final = tuple(subject for subject in SCRIPTS if subject != OURS)
# Our calls: the mechanism, the job, and how many times faster than the fastest peer it has to be.
CALLS: Final = (
    ("exponential mechanism", "median", 5.0),
    ("exponential mechanism", "0.9-quantile", 5.0),
    ("smooth sensitivity", "median", 3.5),
)
RELATIONS: Final = ("add-remove", "replace-one")
MOST_SORTS: Final = 2.5


def measure(*, quick: bool) -> Results:
    """Run every subject, one at a time."""
    gathering = gather(quick=quick)
    for subject, script in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is not None:
            gathering.run(environment, script)
    return gathering.results("speed")


def cost(results: Results, subject: str, job: str, size: int) -> float | None:
    """Return a peer's nanoseconds a value."""
    return results.figure("cpu_ns", subject=subject, job=job, size=size)


def goals(results: Results, how: str, job: str, relation: str, size: int, factor: float) -> tuple[Goal, ...]:
    """Judge one of our calls by the fastest peer and by NumPy's sort."""
    ours = _ours(results, how, job, relation, size)
    sort = results.figure("cpu_ns", subject="numpy", size=size)
    peers = [found for peer in PEERS if (found := cost(results, peer, job, size)) is not None]
    fast = None if ours is None or len(peers) < len(PEERS) else min(peers) >= factor * ours
    return (
        Goal(f"≥ {factor:g}× the fastest peer", fast),
        Goal(f"≤ {MOST_SORTS}× np.sort", None if ours is None or sort is None else ours <= MOST_SORTS * sort),
    )


def table(results: Results) -> Table:
    """Compare every call of ours with np.sort and the peers."""
    columns = ("values", "job", "ours", "relation", "Discreet", "np.sort", *PEERS, "ours / np.sort")
    return Table(
        title="Quantiles: CPU nanoseconds a value, whole calls on floats",
        columns=(*columns, "fastest peer / ours", "goals"),
        rows=tuple(
            _row(results, how, job, relation, size, factor)
            for size in SPEED_SIZES
            for how, job, factor in CALLS
            for relation in RELATIONS
        ),
        remarks=(
            f"Log-normal values (10.6, 0.7), bounds {SPEED_BOUNDS[0]} to {SPEED_BOUNDS[1]:,}, epsilon "
            f"{SPEED_EPSILON}. Ours: clamping the floats and putting them on a grid of a million steps included.",
            "diffprivlib: exponential mechanism over the gaps of the sorted values. OpenDP: noisy scores of 1,001 "
            "listed candidates, so on a grid a thousand times coarser. python-dp: a noisy search, from a list. Each "
            "peer has one call for both relations; only the noise differs, not the time.",
            "np.sort of the same array, in turns with our calls.",
            *results.missing(),
        ),
    )


def _row(results: Results, how: str, job: str, relation: str, size: int, factor: float) -> tuple[str, ...]:
    ours = _ours(results, how, job, relation, size)
    sort = results.figure("cpu_ns", subject="numpy", size=size)
    peers = [cost(results, peer, job, size) for peer in PEERS]
    fastest = min((found for found in peers if found is not None), default=None)
    return (
        f"{size:,}",
        job,
        how,
        relation,
        number(ours),
        number(sort),
        *map(number, peers),
        MISSING if ours is None or sort is None else number(ours / sort),
        ratio(fastest, ours),
        ", ".join(map(str, goals(results, how, job, relation, size, factor))),
    )


def _ours(results: Results, how: str, job: str, relation: str, size: int) -> float | None:
    return results.figure("cpu_ns", subject=OURS, how=how, job=job, relation=relation, size=size)
