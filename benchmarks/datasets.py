"""The data sets of the accuracy table, and what is declared about them before anyone looks.

Real ones come from a folder that the caller names; the synthetic ones are always there. A size below a data set's own
is a sample without replacement, a size above it one with replacement; both with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["DATASETS", "Dataset", "Table", "available", "on_grid", "sampled"]

Floats = NDArray[np.float64]
SEED: Final = 585


@dataclass(frozen=True, slots=True)
class Table:
    """What one data set holds: a column of numbers, one of categories (as codes), and a regression problem."""

    values: Floats
    codes: NDArray[np.int64]
    design: Floats  # features and response, each scaled to [-1, 1] by declared bounds


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set and its public facts."""

    name: str
    what: str  # in a few words: numbers; categories; regression
    bounds: tuple[str, str]
    step: str
    expected: str  # a rough guess that needs no look at the data
    load: Callable[[Path], Table]
    synthetic: bool = False


def available(folder: Path | None) -> Iterator[Dataset]:
    """Name the data sets that can be read."""
    return (dataset for dataset in DATASETS if dataset.synthetic or folder is not None)


def sampled(table: Table, size: int, step: str, *seed: int) -> Table:
    """Return as many rows as asked for, each column by its own draw."""
    generator = np.random.default_rng((SEED, size, *seed))

    def some(column: Any) -> Any:
        rows = len(column)
        return column[generator.choice(rows, size, replace=size > rows)]

    return Table(on_grid(some(table.values), step), some(table.codes), some(table.design))


def on_grid(values: Floats, step: str) -> Floats:
    """Round measurements to the declared step: data are recorded that finely, and so are answers."""
    return np.asarray(np.round(np.rint(values / float(step)) * float(step), 6))


def scaled(*columns: tuple[Any, float, float]) -> Floats:
    """Put every column from its declared bounds to [-1, 1]; what lies outside is moved to the bounds."""
    parts = [
        (np.clip(np.asarray(column, dtype=float), low, high) - low) / (high - low) * 2 - 1
        for column, low, high in columns
    ]
    return np.column_stack(parts)


def coded(column: Any) -> NDArray[np.int64]:
    """Number the categories of a column in the order of their names; the list of names is public."""
    codes: NDArray[np.int64] = np.unique(np.asarray(column, dtype=str), return_inverse=True)[1]
    return codes


def parquet(path: Path) -> dict[str, Any]:
    """Read a table as NumPy columns."""
    import pyarrow.parquet as pq

    return {name: column.to_numpy() for name, column in zip(*_columns(pq.read_table(path)), strict=True)}


def _columns(table: Any) -> tuple[list[str], list[Any]]:
    return table.column_names, table.columns


def california(folder: Path) -> Table:
    """Read the block groups of the 1990 census."""
    rows = parquet(folder / "california_housing" / "housing.parquet")
    value = rows["median_house_value"]
    design = scaled(
        (rows["median_income"], 0, 16),
        (rows["housing_median_age"], 0, 60),
        (rows["latitude"], 32, 42),
        (rows["longitude"], -125, -114),
        (value, 0, 500_001),
    )
    return Table(value, coded(rows["ocean_proximity"]), design)


def adult(folder: Path) -> Table:
    """Read the training part of the 1994 census extract."""
    rows = parquet(folder / "adult" / "adult_train.parquet")
    design = scaled(
        (rows["age"], 0, 120),
        (rows["education_num"], 0, 16),
        (rows["sex"] == "Male", 0, 1),
        (rows["hours_per_week"], 0, 100),
    )
    known = np.array([name is not None for name in rows["occupation"]])
    return Table(rows["age"].astype(float), coded(rows["occupation"][known]), design)


def pums(folder: Path) -> Table:
    """Read ten thousand people of California."""
    rows = parquet(folder / "pums" / "pums_california_10000.parquet")
    design = scaled(
        (rows["age"], 0, 100),
        (rows["educ"], 0, 16),
        (rows["sex"], 0, 1),
        (rows["married"], 0, 1),
        (rows["income"], -20_000, 1_000_000),
    )
    return Table(rows["income"], coded(rows["educ"]), design)


def retail(folder: Path) -> Table:
    """Read the sales of a gift shop, one row an invoice line with a positive amount."""
    rows = parquet(folder / "online_retail_ii" / "online_retail_2009_2010.parquet")
    amount = rows["quantity"] * rows["price"]
    sold = (amount > 0) & (rows["quantity"] > 0)
    hour = rows["invoice_date"].astype("datetime64[h]").astype(np.int64) % 24
    design = scaled(
        (np.log10(rows["quantity"][sold]), 0, 5),
        (hour[sold], 0, 24),
        (np.log10(amount[sold]), -3, 5),
    )
    return Table(np.round(amount[sold], 2), coded(rows["stock_code"][sold]), design)


def hospital(folder: Path) -> Table:
    """Read stays of patients with diabetes in 130 hospitals; most values of days are tied."""
    rows = parquet(folder / "diabetes130" / "diabetic_data.parquet")
    design = scaled(
        (rows["num_lab_procedures"], 0, 150),
        (rows["num_medications"], 0, 100),
        (rows["number_diagnoses"], 0, 16),
        (rows["time_in_hospital"], 0, 30),
    )
    known = np.array([name is not None for name in rows["medical_specialty"]])
    return Table(rows["time_in_hospital"].astype(float), coded(rows["medical_specialty"][known]), design)


def normal(folder: Path) -> Table:
    """Draw a million numbers around 50."""
    generator = np.random.default_rng((SEED, 1))
    values = generator.normal(50, 10, 10**6)
    return Table(values, _bins(values, -1000, 1000, 1), _linear(generator, outliers=0.0))


def lognormal(folder: Path) -> Table:
    """Draw a million incomes."""
    generator = np.random.default_rng((SEED, 2))
    values = generator.lognormal(10.6, 0.7, 10**6)
    return Table(values, _bins(values, 0, 2 * 10**6, 1000), _linear(generator, outliers=0.0, skewed=True))


def contaminated(folder: Path) -> Table:
    """Draw a million numbers around 50, one in twenty around 500; of the regression, one response in twenty is wild."""
    generator = np.random.default_rng((SEED, 3))
    values = np.where(generator.random(10**6) < 0.05, generator.normal(500, 50, 10**6), generator.normal(50, 10, 10**6))
    return Table(values, _bins(values, -1000, 1000, 1), _linear(generator, outliers=0.05))


def outside(folder: Path) -> Table:
    """Draw a million numbers of which one in a hundred is ten times what the declared bounds allow."""
    generator = np.random.default_rng((SEED, 4))
    values = np.where(generator.random(10**6) < 0.01, 10_000.0, generator.normal(50, 10, 10**6))
    return Table(values, _bins(values, -1000, 1000, 1), _linear(generator, outliers=0.01))


def _bins(values: Floats, low: int, high: int, width: int) -> NDArray[np.int64]:
    codes: NDArray[np.int64] = ((np.clip(values, low, high) - low) // width).astype(np.int64)
    return codes


def _linear(generator: np.random.Generator, *, outliers: float, skewed: bool = False) -> Floats:
    """Draw four features and a response that is linear in them, with noise."""
    count = 10**6
    features = generator.normal(size=(count, 4))
    if skewed:
        features = np.exp(features / 2) - 1
    response = features @ np.array([1.0, -0.5, 0.25, 0.0]) + 1 + generator.normal(size=count)
    wild = generator.random(count) < outliers
    response = np.where(wild, 8.0, response)
    return scaled(*((column, -5, 5) for column in features.T), (response, -10, 10))


DATASETS: Final = (
    Dataset(
        "California housing",
        "house value; ocean proximity; value by income, age, latitude, longitude",
        ("0", "500100"),
        "100",
        "lognormal 150000 2",
        california,
    ),
    Dataset("Adult", "age; occupation; hours by age, education, sex", ("0", "120"), "1", "normal 40 15", adult),
    Dataset(
        "PUMS income",
        "income; education; income by age, education, sex, marriage",
        ("-20000", "1000000"),
        "100",
        "lognormal 30000 3",
        pums,
    ),
    Dataset(
        "Online retail",
        "amount of a line; article; log amount by log quantity, hour",
        ("0", "50000"),
        "0.01",
        "lognormal 10 3",
        retail,
    ),
    Dataset(
        "Hospital stays",
        "days; specialty; days by laboratory procedures, medications, diagnoses",
        ("0", "30"),
        "1",
        "lognormal 5 2",
        hospital,
    ),
    Dataset(
        "normal",
        "N(50, 10²); whole part; linear, normal noise",
        ("-1000", "1000"),
        "0.001",
        "normal 40 20",
        normal,
        True,
    ),
    Dataset(
        "log-normal",
        "exp N(10.6, 0.7²); thousands; linear in skewed features",
        ("0", "2000000"),
        "1",
        "lognormal 30000 2.5",
        lognormal,
        True,
    ),
    Dataset(
        "contaminated",
        "95 % N(50, 10²), 5 % N(500, 50²); whole part; 5 % wild responses",
        ("-1000", "1000"),
        "0.001",
        "normal 40 20",
        contaminated,
        True,
    ),
    Dataset(
        "outside",
        "99 % N(50, 10²), 1 % at 10,000; numbers only",
        ("-1000", "1000"),
        "0.001",
        "normal 40 20",
        outside,
        True,
    ),
)
