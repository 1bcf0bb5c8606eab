"""Print how well differencing does on the made-up county, from exact tables to very private ones.

    python scripts/attack_by_epsilon.py [DRAWS]

Four tables are published together with Gaussian noise that costs ε at δ = 1e-6.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

from discreet import data
from discreet.lab import attacks
from discreet.lab.attacks.count_tables import CountTable, noised

DELTA = Fraction(1, 10**6)
LEVELS = (30, 10, 3, 1, "0.1")
CONDITIONS = {"all": "", "young": "age_group <> '95+'", "short": "nights < 28", "early": "admitted < DATE '2025-12-31'"}
BY = ["district", "sex", "diagnosis"]


def main(draws: int) -> None:
    """Attack the exact tables and, for each ε, fresh private ones."""
    with data.folder("hospital") as folder:
        rows = folder / "stays.parquet"
        exact = [
            attacks.tabulate(rows, BY, where=where, name=name, hide_below=5).value for name, where in CONDITIONS.items()
        ]
        found = attacks.differencing(rows, exact, attribute="diagnosis", person="patient").value
        print("| tables | right | … without their row | no attacker exceeds |\n|---|---|---|---|")
        print(f"| exact | {100 * found.named.share:.0f} % | {100 * found.without.share:.0f} % | |")
        for level in LEVELS:
            print(line(level, rows, exact, draws))


def line(level: int | str, rows: Path, exact: list[CountTable], draws: int) -> str:
    """Return one line of the table: all guesses are from tables drawn anew."""
    private, event = noised(exact, epsilon=level, delta=DELTA)
    found = attacks.differencing(
        rows,
        private,
        attribute="diagnosis",
        person="patient",
        isolating=exact,
        event=event,
        draws=draws,
    ).value
    assert found.fresh is not None
    assert found.fresh_without is not None
    assert found.ceiling is not None
    shares = (found.fresh.share, found.fresh_without.share, found.ceiling)
    return f"| ε = {level} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
