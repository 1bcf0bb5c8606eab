"""The cells of the accuracy table: one question about data of one kind and size, and what is publicly known of them.

A cell is asked about several data sets, drawn anew each time, so that no lucky grid point decides it; each of these
is a part of the cell. Peers read parts in their own environments, so this needs the standard library only.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

__all__ = ["ADD_REMOVE", "FOLDER", "QUANTILES", "REPLACE_ONE", "Part", "read_parts", "write_parts"]

ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"
FOLDER = Path(__file__).resolve().parents[1] / ".bench" / "accuracy"
QUANTILES = {"median": "0.5", "0.1-quantile": "0.1", "0.9-quantile": "0.9"}


@dataclass(frozen=True, slots=True)
class Part:
    """One question about one data set."""

    cell: str  # the same for all parts of a cell
    number: int  # of the part
    share: float  # of the cell's runs and time
    runs: int
    task: str  # one of QUANTILES, mean, mode, regression
    dataset: str
    relation: str
    size: int
    epsilon: str
    delta: str
    file: str  # doubles, row by row; a mode needs the counts of its candidates only
    columns: int  # of the file; a regression's last one is the response
    low: str
    high: str
    step: str
    expected: str  # a rough public guess of the law of the numbers: normal mean sd, or lognormal median factor
    facts_hold: bool  # False if values lie outside of the declared bounds

    def data(self) -> array[float]:
        """Read all numbers of the file."""
        path = FOLDER / self.file
        numbers = array("d")
        with path.open("rb") as file:
            numbers.fromfile(file, path.stat().st_size // numbers.itemsize)
        return numbers

    def expected_quantiles(self, count: int) -> list[float]:
        """Return so many evenly spaced quantiles of the guess, on the grid and within the bounds, without repeats."""
        law, first, second = self.expected.split()
        scores = [NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]
        centre, spread, step = float(first), float(second), float(self.step)
        guessed = (centre + spread * z if law == "normal" else centre * spread**z for z in scores)
        inside = (min(max(value, float(self.low)), float(self.high)) for value in guessed)
        return sorted({round(value / step) * step for value in inside})

    def save(self, subject: str, method: str, estimates: Iterable[float]) -> str:
        """Write what a method answered in its runs, and return the name of that file."""
        name = f"{self.cell}.{self.number}.{subject}.{method}.out".replace(" ", "_").replace("/", "_")
        with (FOLDER / name).open("wb") as file:
            array("d", estimates).tofile(file)
        return name


def write_parts(parts: Iterable[Part]) -> None:
    """Write the list that the scripts read."""
    (FOLDER / "parts.json").write_text(json.dumps([asdict(part) for part in parts]), encoding="utf-8")


def read_parts(*tasks: str) -> list[Part]:
    """Read the parts of some tasks, those of one file one after the other."""
    listed: list[dict[str, Any]] = json.loads((FOLDER / "parts.json").read_text(encoding="utf-8"))
    return sorted((Part(**row) for row in listed if row["task"] in tasks), key=lambda part: part.file)
