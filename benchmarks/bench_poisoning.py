"""Poisoning: what mislabelled and backdoored digits do to plain and to private training."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.poison_jobs import EPSILON, MARK, ROWS, TARGET, TESTED
from benchmarks.results import Results, gather
from benchmarks.table import Table

__all__ = ["measure", "table"]

OURS: Final = "discreet-torch"


def measure(*, quick: bool, data: Path | None) -> Results:
    """Train on every share of bad rows; without a folder there is nothing to learn."""
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with MNIST by --data"
    elif (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_poisoning", str(data.resolve()))
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("poisoning")


def table(results: Results) -> Table:
    """One row for each kind and share of bad rows."""
    ways = list(dict.fromkeys(row["way"] for row in results.rows))
    cases = list(dict.fromkeys((row["kind"], row["share"]) for row in results.rows))
    return Table(
        title=f"What bad rows do: {ROWS:,} digits, fixed features and a linear model",
        columns=("bad rows", "share", *(f"{way}: {what}" for way in ways for what in ("accuracy", "backdoor"))),
        rows=tuple((kind, f"{share:.1%}", *_cells(results, kind, share, ways)) for kind, share in cases),
        remarks=(
            f"Accuracy: of {TESTED:,} clean digits. Backdoor: digits other than {TARGET} that are taken for a {TARGET} "
            f"once they carry a white square of {MARK} by {MARK} pixels in a corner.",
            "Mislabelled rows have the next digit as their label; backdoored ones carry the square and the label "
            f"{TARGET}. One training each; ε = {EPSILON} bounds what one row can do, and grows with their number.",
            *results.missing(),
        ),
    )


def _cells(results: Results, kind: str, share: float, ways: list[str]) -> tuple[str, ...]:
    found: list[Any] = [results.find(kind=kind, share=share, way=way) for way in ways]
    return tuple(f"{row[figure]:.1%}" for row in found for figure in ("accuracy", "success"))
