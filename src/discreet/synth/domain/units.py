"""Which rows of a unit count: a limited number of each, chosen by a secret draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.keys import Identity, identity
from discreet.mechanisms.column import Column

__all__ = ["kept_rows"]


def kept_rows(units: Column, rows_per_unit: int) -> NDArray[np.int64]:
    """Return the places of the rows that count, in their order: at most so many of each unit. This is private.

    Which rows of a unit are kept depends on its own rows and a fresh draw alone, so another unit more or less changes
    nothing for it. A row without a unit belongs to nobody who could be protected, and is left out.
    """
    codes = _codes(units)
    order = noise.permutation(len(codes)) if len(codes) else np.empty(0, dtype=np.int64)
    order = order[codes[order] >= 0]
    order = order[np.argsort(codes[order], kind="stable")]
    ordered = codes[order]
    first = np.searchsorted(ordered, ordered, side="left")
    kept = order[np.arange(len(order)) - first < rows_per_unit]
    return np.sort(kept)


def _codes(units: Column) -> NDArray[np.int64]:
    """Number the units, exactly: equal numbers are one unit whatever their type. -1 where there is none."""
    values = units.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)
    else:
        codes = _object_codes(units.objects())
    if units.missing is not None:
        codes[units.missing] = -1
    return codes


def _object_codes(values: list[object]) -> NDArray[np.int64]:
    numbers: dict[Identity, int] = {}
    found = (identity(_plain(value), spelled=True) for value in values)
    return np.array([-1 if key is None else numbers.setdefault(key, len(numbers)) for key in found], dtype=np.int64)


def _plain(value: object) -> object:
    """Return an id of a type of its own as its text: left out like what is no id, nobody would be in the data."""
    # Told by its name: the module that makes such ids also draws them, and all chance here comes from one source.
    return str(value) if type(value).__name__ == "UUID" else value
