"""Noise: nanoseconds of CPU a sample and a call, ours, the peers' and NumPy's insecure floats."""

from __future__ import annotations

from typing import Final

from benchmarks.environments import OURS
from benchmarks.jobs import LAPLACE_SCALES, SCALAR_PARAMETERS, SIGMAS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["goals", "measure", "table"]

SCRIPTS: Final = {
    OURS: "discreet_noise",
    "opendp": "opendp_noise",
    "python-dp": "python_dp_noise",
    "diffprivlib": "diffprivlib_noise",
}
LAWS: Final = {
    "laplace": "discrete Laplace",
    "gaussian": "discrete Gaussian",
    "rounded": "rounded Gaussian",
}
PARAMETERS: Final = {"laplace": LAPLACE_SCALES, "gaussian": SIGMAS, "rounded": SIGMAS}
# A table row: the job, its parameter and whether a vector or one number is drawn.
ROWS: Final = tuple(
    (job, parameter, call)
    for call in ("vector", "scalar")
    for job in LAWS
    for parameter in (PARAMETERS[job] if call == "vector" else SCALAR_PARAMETERS)
)
SMALL_SIGMA: Final = 500


def measure(*, quick: bool) -> Results:
    """Run every subject, one at a time."""
    gathering = gather(quick=quick)
    for subject, script in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is None:
            continue
        gathering.run(environment, script)
        if subject == OURS:
            for row in ROWS:
                gathering.run(environment, "discreet_first", *row, figure="first")
    return gathering.results("noise")


def cost(results: Results, subject: str, job: str, parameter: str, call: str) -> float | None:
    """Return nanoseconds a sample; a peer's Gaussian is compared with both of ours."""
    theirs = "gaussian" if job == "rounded" and subject not in (OURS, "numpy") else job
    return results.figure("cpu_ns", subject=subject, job=theirs, parameter=parameter, call=call)


def goals(results: Results, job: str, parameter: str, call: str) -> tuple[Goal, ...]:
    """Judge one row."""
    ours = cost(results, OURS, job, parameter, call)
    if ours is None:
        return (Goal("ours", None),)
    if call == "scalar":
        return (Goal("≤ 20 µs", ours <= 20_000),)
    large = job != "laplace" and float(parameter) > SMALL_SIGMA
    limit, factor = (60, 250) if large else (10, 800)
    numpy, opendp = (cost(results, peer, job, parameter, call) for peer in ("numpy", "opendp"))
    faster = (Goal("< NumPy", None if numpy is None else ours < numpy),) if job == "laplace" else ()
    return (
        Goal(f"≤ {limit} ns", ours <= limit),
        *faster,
        Goal(f"≥ {factor}× OpenDP", None if opendp is None else opendp >= factor * ours),
    )


def table(results: Results) -> Table:
    """Put the subjects side by side."""
    peers = [subject for subject in SCRIPTS if subject != OURS]
    columns = ("noise", "scale or σ", "call", "Discreet", "NumPy (insecure)", *peers, "NumPy / ours")
    return Table(
        title="CPU nanoseconds a sample (vector) or a call (scalar)",
        columns=(*columns, *(f"{peer} / ours" for peer in peers), "first call, ms", "goals"),
        rows=tuple(_row(results, *row, peers) for row in ROWS),
        remarks=(
            "Vector: ours and NumPy 1,000,000 samples a call, OpenDP 100,000 (NumPy in, list out); "
            "python-dp (100,000) and diffprivlib (20,000) have no vector call and are called in a loop.",
            "The laws differ: OpenDP draws the discrete laws exactly; python-dp rounds noise on a fine grid; "
            "diffprivlib's Laplace is discrete through a float, its Gaussian here is its float one, "
            "which is the faster. No peer has a rounded Gaussian: that row shows their Gaussian again.",
            "First call: CPU milliseconds of the first call with this parameter in a fresh process "
            "(vector: of 1,000,000 samples, drawing included), tables built, libraries loaded before.",
            *results.missing(),
        ),
    )


def _row(results: Results, job: str, parameter: str, call: str, peers: list[str]) -> tuple[str, ...]:
    ours = cost(results, OURS, job, parameter, call)
    theirs = [cost(results, subject, job, parameter, call) for subject in ("numpy", *peers)]
    first = results.figure("first_ms", job=job, parameter=parameter, call=call, figure="first")
    return (
        LAWS[job],
        f"{float(parameter):,g}" if float(parameter) < 1e6 else "1,000,000",
        call,
        number(ours),
        *map(number, theirs),
        *(ratio(peer, ours) for peer in theirs),
        number(first),
        ", ".join(map(str, goals(results, job, parameter, call))),
    )
