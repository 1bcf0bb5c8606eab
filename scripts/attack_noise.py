"""Attack noise itself, and print the tables of docs/attacks: `python scripts/attack_noise.py [victims]`.

Sticky noise in front of the bundled county, against private counts at several epsilons with the noise of a session; and
last digits of NumPy's noise, of textbook noise and of noise on a grid.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discreet import data
from discreet.lab import attacks
from discreet.lab.attacks import textbook_noise
from discreet.lab.attacks.sticky_noise import Sticky
from discreet.privacy.meaning import percent_up

KNOWN = ["district", "sex", "birth_date", "nights"]
PAIRS = ((0.0, 1.0), (0.0, 2.0**-30), (1 / 3, 4 / 3), (1000.0, 1001.0))
GENERATOR = np.random.default_rng()


def numpy_laplace(value: float, size: int) -> Any:
    """Add noise as most programs do."""
    return value + GENERATOR.laplace(0.0, 1.0, size)


def sticky_rows(stays: Path, victims: int) -> Iterator[str]:
    """Yield one row for each way of attacking, one column for each system."""
    found: list[Sticky] = [attack(stays, victims, epsilon) for epsilon in (None, "0.1", "1", "10")]
    yield "| way of attacking | questions | sticky noise | " + " | ".join(f"ε = {e}" for e in ("0.1", "1", "10")) + " |"
    yield "|---|---|---|---|---|---|"
    for row in zip(*(one.guessed for one in found), strict=True):
        refused = " (refused)" if row[0].refused == 1 else ""
        shares = [f"{100 * one.right.share:.1f} %" for one in row]
        yield f"| {row[0].method} | {row[0].questions:.0f} | {shares[0]}{refused} | {' | '.join(shares[1:])} |"
    yield "| no attacker exceeds | | | " + " | ".join(percent_up(one.ceiling or 1) for one in found[1:]) + " |"


def attack(stays: Path, victims: int, epsilon: str | None) -> Sticky:
    """Attack one system in all ways."""
    return attacks.sticky(
        stays, known=KNOWN, secret="diagnosis", victims=victims, epsilon=epsilon, by_session=False
    ).value


def digit_rows() -> Iterator[str]:
    """Yield one row for each noise and pair of inputs."""
    yield "| noise | inputs | last digits: ε at least | impossible for the other input |"
    yield "|---|---|---|---|"
    kinds = {
        "NumPy's Laplace": numpy_laplace,
        "textbook Gaussian": textbook_noise.gaussian,
        "grid": textbook_noise.grid_laplace,
    }
    for name, noise in kinds.items():
        for inputs in PAIRS:
            plain = attacks.floating_point(noise, epsilon=1, delta="1e-6", inputs=inputs)
            told = "" if noise is not numpy_laplace else impossible(noise, inputs)
            yield f"| {name} | {inputs[0]:g}, {inputs[1]:g} | {plain.epsilon_at_least:.2f} | {told} |"


def impossible(noise: Any, inputs: tuple[float, float]) -> str:
    """Tell the shares that are impossible for the other input."""
    found = attacks.floating_point(noise, epsilon=1, inputs=inputs, law="laplace").unreachable or ()
    return ", ".join(f"{100 * one.share:.1f} %" for one in found)


def main(victims: int) -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        data.copy("hospital", Path(folder) / "county")
        print(*sticky_rows(Path(folder) / "county" / "stays.parquet", victims), sep="\n")
    print(*digit_rows(), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
