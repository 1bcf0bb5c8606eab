"""The data sets of the table of estimators, and the bounds that are declared of them before anyone looks.

Everybody who is compared is given the same rows, the same features and the same bounds. One row is one person or thing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import parquet

__all__ = ["LEARNING_SETS", "TREE_SETS", "Bounded", "LearningSet", "split"]

Floats = NDArray[np.float64]
SEED: Final = 585
TESTED: Final = 5  # One row in so many is held out.


@dataclass(frozen=True, slots=True)
class Bounded:
    """A table of features with declared bounds, and what is to be predicted."""

    X: Floats
    y: Floats
    bounds: list[tuple[float, float]]
    target_bounds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class LearningSet:
    """A data set and its task."""

    name: str
    task: str  # "regression" or "classification"
    what: str
    load: Callable[[Path], Bounded]


def split(table: Bounded, repetition: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to fit and the rows to test, the same for everybody."""
    order = np.random.default_rng((SEED, repetition)).permutation(len(table.y))
    held = len(order) // TESTED
    return order[held:], order[:held]


Column = tuple[Any, float, float]


def bounded(columns: Sequence[Column], target: Column) -> Bounded:
    """Put columns with their bounds together."""
    values, low, high = target
    return Bounded(
        np.column_stack([np.asarray(column, dtype=float) for column, _, _ in columns]),
        np.asarray(values, dtype=float),
        [(float(first), float(last)) for _, first, last in columns],
        (float(low), float(high)),
    )


def one_of(column: Any, names: Sequence[str]) -> list[Column]:
    """Return a column of zeros and ones for each named category."""
    return [(np.asarray(column, dtype=str) == name, 0, 1) for name in names]


def california(folder: Path) -> Bounded:
    """Read the block groups of the 1990 census: house value."""
    rows = parquet(folder / "california_housing" / "housing.parquet")
    households = rows["households"]
    columns: list[Column] = [
        (rows["median_income"], 0, 16),
        (rows["housing_median_age"], 0, 60),
        (rows["total_rooms"] / households, 0, 20),
        (rows["population"] / households, 0, 20),
        (np.log10(households), 0, 4),
        (rows["latitude"], 32, 42),
        (rows["longitude"], -125, -114),
        *one_of(rows["ocean_proximity"], ("INLAND", "NEAR OCEAN", "NEAR BAY")),
    ]
    return bounded(columns, (rows["median_house_value"], 0, 500_001))


def bikes(folder: Path) -> Bounded:
    """Read the hourly rentals of a bike share: how many."""
    rows = parquet(folder / "bike_sharing" / "hour.parquet")
    angle = 2 * np.pi * rows["hr"] / 24
    columns: list[Column] = [
        (rows["yr"], 0, 1),
        (rows["workingday"], 0, 1),
        (rows["weathersit"], 1, 4),
        (rows["temp"], 0, 1),
        (rows["hum"], 0, 1),
        (rows["windspeed"], 0, 1),
        (np.cos(angle), -1, 1),
        (np.sin(angle), -1, 1),
        (np.cos(2 * angle), -1, 1),
        (np.sin(2 * angle), -1, 1),
    ]
    return bounded(columns, (rows["cnt"], 0, 1000))


def wine(folder: Path) -> Bounded:
    """Read the Portuguese wines, red and white: quality."""
    red, white = (parquet(folder / "wine_quality" / f"{colour}.parquet") for colour in ("red", "white"))
    rows = {name: np.concatenate([red[name], white[name]]) for name in red}
    is_red = np.arange(len(rows["quality"])) < len(red["quality"])
    columns: list[Column] = [
        (rows["fixed acidity"], 0, 20),
        (rows["volatile acidity"], 0, 2),
        (rows["citric acid"], 0, 2),
        (np.log10(rows["residual sugar"]), -1, 2),
        (rows["chlorides"], 0, 1),
        (np.log10(rows["free sulfur dioxide"]), 0, 3),
        (np.log10(rows["total sulfur dioxide"]), 0, 3),
        (rows["density"], 0.98, 1.04),
        (rows["pH"], 2.5, 4.5),
        (rows["sulphates"], 0, 2),
        (rows["alcohol"], 8, 15),
        (is_red, 0, 1),
    ]
    return bounded(columns, (rows["quality"], 0, 10))


def adult(folder: Path) -> Bounded:
    """Read the 1994 census extract: whether somebody earns more than 50,000 dollars."""
    rows = parquet(folder / "adult" / "adult_train.parquet")
    columns: list[Column] = [
        (rows["age"], 0, 120),
        (rows["education_num"], 0, 16),
        (rows["hours_per_week"], 0, 100),
        (np.log10(1 + rows["capital_gain"]), 0, 5),
        (np.log10(1 + rows["capital_loss"]), 0, 5),
        (rows["sex"] == "Male", 0, 1),
        *one_of(rows["marital_status"], ("Married-civ-spouse", "Never-married")),
        *one_of(rows["occupation"], ("Exec-managerial", "Prof-specialty", "Other-service")),
        *one_of(rows["workclass"], ("Self-emp-not-inc", "Self-emp-inc")),
    ]
    return bounded(columns, (np.char.startswith(np.asarray(rows["income"], dtype=str), ">"), 0, 1))


def breast_cancer(folder: Path) -> Bounded:
    """Read the biopsies of Wisconsin: whether a lump is benign. Bounds are round numbers beyond the usual sizes."""
    rows = parquet(folder / "sklearn_small" / "breast_cancer.parquet")
    tops = {
        "radius": 40, "texture": 50, "perimeter": 300, "area": 5000, "smoothness": 0.25, "compactness": 1.5,
        "concavity": 1.5, "concave points": 0.3, "symmetry": 0.7, "fractal dimension": 0.25,
    }  # fmt: skip
    columns: list[Column] = [(rows[f"worst {name}"], 0, top) for name, top in tops.items()]
    return bounded(columns, (rows["target"], 0, 1))


def diabetes130(folder: Path) -> Bounded:
    """Read the first stay of each patient in 130 hospitals: whether the patient came back."""
    rows = parquet(folder / "diabetes130" / "diabetic_data.parquet")
    _, first = np.unique(rows["patient_nbr"], return_index=True)
    rows = {name: column[first] for name, column in rows.items()}
    age = np.array([int(str(text).strip("[").split("-")[0]) for text in rows["age"]])
    columns: list[Column] = [
        (rows["time_in_hospital"], 0, 14),
        (rows["num_lab_procedures"], 0, 150),
        (rows["num_procedures"], 0, 10),
        (rows["num_medications"], 0, 100),
        (np.log10(1 + rows["number_outpatient"]), 0, 2),
        (np.log10(1 + rows["number_emergency"]), 0, 2),
        (np.log10(1 + rows["number_inpatient"]), 0, 2),
        (rows["number_diagnoses"], 0, 16),
        (age, 0, 100),
        (rows["gender"] == "Male", 0, 1),
        (rows["diabetesMed"] == "Yes", 0, 1),
        (rows["change"] == "Ch", 0, 1),
    ]
    return bounded(columns, (rows["readmitted"] != "NO", 0, 1))


LEARNING_SETS: Final = (
    LearningSet("California housing", "regression", "value of houses by block group, 10 features", california),
    LearningSet("bike sharing", "regression", "rentals an hour, 10 features", bikes),
    LearningSet("wine", "regression", "quality by chemistry, 12 features", wine),
    LearningSet("Adult", "classification", "income above 50,000, 13 features", adult),
    LearningSet("breast cancer", "classification", "benign or not, 10 features", breast_cancer),
    LearningSet("diabetes130", "classification", "readmitted or not, 12 features", diabetes130),
)


# --- trees: eight tables with two classes each; numbers become classes at a public limit. ---


def heart(folder: Path) -> Bounded:
    """Read the patients of Cleveland: whether a vessel is narrowed. What is missing is zero."""
    rows = parquet(folder / "heart_disease" / "cleveland.parquet")
    limits = {
        "age": (0, 120), "sex": (0, 1), "cp": (1, 4), "trestbps": (50, 250), "chol": (100, 600), "fbs": (0, 1),
        "restecg": (0, 2), "thalach": (50, 250), "exang": (0, 1), "oldpeak": (0, 7), "slope": (1, 3), "ca": (0, 3),
        "thal": (3, 7),
    }  # fmt: skip
    columns: list[Column] = [(np.nan_to_num(rows[name]), low, high) for name, (low, high) in limits.items()]
    return bounded(columns, (rows["num"] > 0, 0, 1))


def flights(folder: Path) -> Bounded:
    """Read 60,000 flights from New York in 2013 that arrived: whether one was more than a quarter of an hour late."""
    rows = parquet(folder / "nycflights13" / "flights.parquet")
    arrived = np.nonzero(~np.isnan(rows["arr_delay"]))[0]
    some = np.random.default_rng(SEED).choice(arrived, 60_000, replace=False)
    rows = {name: np.asarray(column)[some] for name, column in rows.items()}
    columns: list[Column] = [
        (rows["month"], 1, 12),
        (rows["day"], 1, 31),
        (rows["sched_dep_time"] // 100 + rows["sched_dep_time"] % 100 / 60, 0, 24),
        (rows["distance"], 0, 5000),
        *one_of(rows["origin"], ("EWR", "JFK")),
        *one_of(rows["carrier"], ("UA", "B6", "EV", "DL", "AA", "MQ")),
    ]
    return bounded(columns, (rows["arr_delay"] > 15, 0, 1))


def at_least(load: Callable[[Path], Bounded], limit: float) -> Callable[[Path], Bounded]:
    """Ask whether a number is at least so large."""

    def loaded(folder: Path) -> Bounded:
        table = load(folder)
        return replace(table, y=(table.y >= limit).astype(float), target_bounds=(0.0, 1.0))

    return loaded


TREE_SETS: Final = (
    LearningSet("Adult", "classification", "income above 50,000, 13 features", adult),
    LearningSet("California housing", "classification", "200,000 dollars or more", at_least(california, 200_000)),
    LearningSet("bike sharing", "classification", "150 rentals an hour or more", at_least(bikes, 150)),
    LearningSet("wine", "classification", "quality 6 or more", at_least(wine, 6)),
    LearningSet("breast cancer", "classification", "benign or not, 10 features", breast_cancer),
    LearningSet("heart disease", "classification", "narrowed or not, 13 features", heart),
    LearningSet("diabetes130", "classification", "readmitted or not, 12 features", diabetes130),
    LearningSet("flights", "classification", "late or not, 12 features", flights),
)
