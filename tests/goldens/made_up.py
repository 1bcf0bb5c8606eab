"""People who do not exist, made by arithmetic: the same on every machine."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp

__all__ = ["AGES", "CITIES", "RELATIONS", "VISITS", "WAITS", "labels", "matrix", "people", "stays"]

RELATIONS = {"add-remove": dp.Relation.ADD_REMOVE, "replace-one": dp.Relation.REPLACE_ONE}
AGES = [18 + (37 * place) % 61 + (place % 3) for place in range(801)]
WAITS = [round((place * 7919 % 2400) / 10, 1) for place in range(801)]
CITIES = [("Bern", "Basel", "Chur", "Genf")[(place * place) % 11 % 4] for place in range(801)]
VISITS = Path(dp.__file__).parent / "data" / "visits.csv"
_FIRST = date(2025, 1, 1)


def matrix(rows: int, columns: int, *, start: int = 1) -> np.ndarray[Any, Any]:
    """Numbers from -1 to 1, as even as a lattice makes them."""
    places = np.arange(start, start + rows)[:, None] * np.array([7919, 104729, 1299709, 15485863, 611953][:columns])
    return (places % 20011) / 10005.5 - 1


def labels(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One of two classes for each row."""
    return (rows[:, 0] + rows[:, 1] / 2 > 0.1).astype(int)


def people(count: int = 600) -> dict[str, list[Any]]:
    """A table with one row for each person, with missing values."""
    numbers = range(count)
    return {
        "uid": [f"p{number}" for number in numbers],
        "age": [None if number % 41 == 0 else 18 + (37 * number) % 71 for number in numbers],
        "income": [((number * 7919) % 100_000) / 4 for number in numbers],
        "city": [("Bern", "Basel", "Chur")[(number * number) % 7 % 3] for number in numbers],
        "member": [None if number % 53 == 0 else number % 3 == 0 for number in numbers],
        "born": [date(1990, 1, 1) + timedelta(days=(number * 17) % 10_900) for number in numbers],
        "name": [("Ada", "ben", "Cy ", "Dora", "12", "7.5")[number % 6] for number in numbers],
        "country": [("CH", "DE", "FR", "IT")[0 if number % 4 else number // 4 % 4] for number in numbers],
    }


def stays(count: int = 1500) -> dict[str, list[Any]]:
    """A table with several rows for each person."""
    numbers = range(count)
    return {
        "uid": [f"p{number * number % 700}" for number in numbers],
        "day": [_FIRST + timedelta(days=(number * 31) % 365) for number in numbers],
        "ward": [("heart", "bone", "eye", "skin")[number % 7 % 4] for number in numbers],
        "nights": [(number * 13) % 19 for number in numbers],
        "cost": [((number * 104_729) % 400_000) / 100 for number in numbers],
    }
