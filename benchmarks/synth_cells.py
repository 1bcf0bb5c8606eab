"""The cells of the table of synthetic tables: who makes which table by which method, within limits for everybody.

A peer takes minutes for a cell. What it took is kept below .bench/ and not measured again as long as its environment
and its script stay as they are; ours is measured every time.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.environments import ONE_THREAD, OURS, ROOT, Environment
from benchmarks.limited import Limits, Outcome, run_limited
from benchmarks.marginal_distances import mean_distances
from benchmarks.synth_sets import kept

__all__ = ["FOLDER", "LIMITS", "METHODS", "SCRIPTS", "Cell", "measured"]

FOLDER: Final = ROOT / ".bench" / "synth_tables"
LIMITS: Final = Limits(seconds=300, gigabytes=8)
SCRIPTS: Final = {
    OURS: "discreet_tables",
    "opendp-mbi": "opendp_mbi_tables",
    "smartnoise-synth": "smartnoise_synth_tables",
}
METHODS: Final = {OURS: ("independent", "mst", "aim"), "opendp-mbi": ("mst", "aim"), "smartnoise-synth": ("mst", "aim")}
_ONE_THREAD: Final = ONE_THREAD | {
    "NPROC": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One table, made once."""

    subject: str
    dataset: str
    method: str
    epsilon: str
    run: int = 0

    @property
    def path(self) -> Path:
        """Where its sample goes; what it took lies beside it."""
        return FOLDER / "cells" / f"{self.subject}.{self.dataset}.{self.method}.{self.epsilon}.{self.run}.npz"


def measured(cell: Cell, environment: Environment) -> dict[str, Any]:
    """Return the row of a cell, from what was kept if nothing has changed."""
    beside, stamp = cell.path.with_suffix(".json"), _stamp(cell, environment)
    if cell.subject != OURS and beside.exists():
        row: dict[str, Any] = json.loads(beside.read_text(encoding="utf-8"))
        if row.pop("stamp") == stamp:
            return row
    row = asdict(cell) | _row(cell, _run(cell, environment))
    beside.write_text(json.dumps(row | {"stamp": stamp}), encoding="utf-8")
    return row


def _run(cell: Cell, environment: Environment) -> Outcome:
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    script = ["-W", "ignore", "-m", f"benchmarks.peers.{SCRIPTS[cell.subject]}"]
    asked = [str(FOLDER / f"{cell.dataset}.npz"), cell.method, cell.epsilon, str(cell.path)]
    return run_limited([str(environment.python), *script, *asked], ROOT, _ONE_THREAD, LIMITS)


def _row(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    took = {"process_cpu": round(outcome.process_cpu, 2), "peak_mb": round(outcome.peak_mb)}
    if not outcome.rows:
        return took | {"stopped": outcome.stopped, "failed": outcome.failed}
    table = kept(FOLDER / f"{cell.dataset}.npz")
    with np.load(cell.path) as samples:
        ways = {way: mean_distances(table.codes, sample, table.sizes) for way, sample in samples.items()}
    best = min(ways.values(), key=lambda found: found["tvd3"])  # Whoever has several ways gets the better one.
    return took | outcome.rows[0] | best | ({"ways": ways} if len(ways) > 1 else {})


def _stamp(cell: Cell, environment: Environment) -> str:
    digest = hashlib.sha256(f"{environment.fingerprint()} {LIMITS}".encode())
    for file in (ROOT / "benchmarks" / "peers" / f"{SCRIPTS[cell.subject]}.py", FOLDER / f"{cell.dataset}.npz"):
        digest.update(file.read_bytes())
    return digest.hexdigest()
