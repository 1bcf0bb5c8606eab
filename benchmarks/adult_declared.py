"""Adult as it was collected, declared from its published description and not from its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["LABEL", "RICH", "columns_of", "declared", "read_adult"]

LABEL: Final = "income"
RICH: Final = ">50K"
COUNTRIES: Final = (
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
    "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
    "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands"
)
# The values that the description lists, and whether they may be missing.
CATEGORIES: Final = {
    "workclass": (
        "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
        True,
    ),
    "education": (
        "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
        "Doctorate 5th-6th Preschool",
        False,
    ),
    "marital_status": (
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
        False,
    ),
    "occupation": (
        "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
        "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
        True,
    ),
    "relationship": ("Wife Own-child Husband Not-in-family Other-relative Unmarried", False),
    "race": ("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black", False),
    "sex": ("Female Male", False),
    "native_country": (COUNTRIES, True),
    LABEL: ("<=50K >50K", False),
}
# Bounds and cuts. Most people have no capital gain or loss, so zero is a cell of its own.
NUMBERS: Final[dict[str, tuple[int, int, Any]]] = {
    "age": (17, 90, 37),
    "fnlwgt": (0, 1_500_000, 30),
    "education_num": (1, 16, 16),
    "capital_gain": (0, 99_999, (1, 2_000, 4_000, 6_000, 8_000, 10_000, 15_000, 20_000, 50_000)),
    "capital_loss": (0, 5_000, (1, 500, 1_000, 1_500, 1_750, 2_000, 2_250, 2_500, 3_000)),
    "hours_per_week": (1, 99, 33),
}


def read_adult(folder: Path, part: str) -> dict[str, Any]:
    """Read the columns of "train" or "test"."""
    import duckdb

    home = folder / "adult" if (folder / "adult").is_dir() else folder
    with duckdb.connect() as connection:
        table = connection.sql(f"select * from '{home / f'adult_{part}.parquet'}'").to_arrow_table()
    return {name: np.array(table[name].to_pylist(), dtype=object) for name in table.column_names}


def declared(names: list[str]) -> Any:
    """Return the domain, its columns in this order."""
    from discreet.synth import Category, Domain, Numeric

    def column(name: str) -> Any:
        if name in NUMBERS:
            low, high, bins = NUMBERS[name]
            return Numeric(low, high, whole=True, bins=bins)
        values, null = CATEGORIES[name]
        return Category(values.split(), null=null)

    return Domain({name: column(name) for name in names})


def columns_of(table: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what classifiers see: numbers as they are, categories by their place in the alphabet; and the label."""
    found = []
    for name, values in table.items():
        if name in NUMBERS:
            found.append(np.asarray(values, dtype=np.float64))
        elif name != LABEL:
            places = {value: place for place, value in enumerate(sorted(CATEGORIES[name][0].split()))}
            found.append(np.array([places.get(value, len(places)) for value in values], dtype=np.float64))
    return np.column_stack(found), (np.asarray(table[LABEL]) == RICH).astype(np.int64)
