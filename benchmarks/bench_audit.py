"""Audit: the auditor on mechanisms of other libraries, each run as a black box in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import OURS, Environment, Failed
from benchmarks.peers.outputs import COUNTS, EPSILON
from benchmarks.results import Gathering, Results, gather
from benchmarks.table import Table
from discreet.lab.audit import audit

__all__ = ["measure", "table"]

SCRIPTS: Final = {
    OURS: "discreet_audit",
    "opendp": "opendp_audit",
    "python-dp": "python_dp_audit",
    "diffprivlib": "diffprivlib_audit",
}
LEVEL: Final = 1e-6


def measure(*, quick: bool) -> Results:
    """Let every subject run its mechanisms, and audit what came out."""
    gathering = gather(quick=quick)
    for subject, script in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is not None:
            _audit_all(gathering, environment, script)
    return gathering.results("audit")


def _audit_all(gathering: Gathering, environment: Environment, script: str) -> None:
    found = environment.run(script, *(["--quick"] if gathering.quick else []))
    if isinstance(found, Failed):
        gathering.failures[environment.name] = f"failed: {found.reason}"
        return
    for name in dict.fromkeys(row["mechanism"] for row in found):
        pools = {row["count"]: np.array(row["outputs"]) for row in found if row["mechanism"] == name}
        gathering.rows.append({"subject": environment.name, "mechanism": name} | _audited(pools))


def _audited(pools: dict[int, NDArray[np.float64]]) -> dict[str, Any]:
    runs = len(pools[COUNTS[0]])
    found = audit(_from(pools), [COUNTS], claim=EPSILON, runs=runs, many=True, level=LEVEL)
    return {
        "claimed": EPSILON,
        "shown": found.epsilon_at_least,
        "refuted": found.refuted,
        "runs": runs,
        "seconds": found.seconds,
    }


def _from(pools: dict[int, NDArray[np.float64]]) -> Callable[[int, int], NDArray[np.float64]]:
    """Hand out outputs that were drawn before, none of them twice."""
    used = dict.fromkeys(pools, 0)

    def run(count: int, runs: int) -> NDArray[np.float64]:
        start, used[count] = used[count], used[count] + runs
        return pools[count][start : start + runs]

    return run


def table(results: Results) -> Table:
    """One row a mechanism."""
    return Table(
        title="Noisy counts of other libraries, audited by their outputs",
        columns=("library", "mechanism", "claimed ε", "shown ε ≥", "verdict", "runs on each", "seconds"),
        rows=tuple(_row(row) for row in results.rows),
        remarks=(
            f"Each mechanism counts two neighbours; level {LEVEL:g}. An audit can refute a claim and never prove one: "
            "what it shows stays below the claim by what so many runs leave open.",
            *results.missing(),
        ),
    )


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    verdict = "refuted" if row["refuted"] else "not refuted"
    numbers = (f"{row['claimed']:g}", f"{row['shown']:.3f}", verdict, f"{row['runs']:,}", f"{row['seconds']:.2f}")
    return row["subject"], row["mechanism"], *numbers
