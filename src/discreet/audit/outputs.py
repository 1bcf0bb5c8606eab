"""What a mechanism returned for several runs: rows of numbers, which is quick, or anything that can be compared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["Outputs", "alike", "outputs_of"]

Outputs: TypeAlias = NDArray[Any] | list[Hashable]  # an array of numbers, one row an output, or anything, one by one
_NOT_A_NUMBER = "not a number"


def outputs_of(returned: Any) -> Outputs:
    """Read what a mechanism returned for several runs."""
    if isinstance(returned, np.ndarray):
        return _rows(returned) if _is_numeric(returned) else [_plain(output) for output in returned.tolist()]
    listed = [_plain(output) for output in returned]
    array = _as_array(listed)
    return listed if array is None else array


def alike(*samples: Outputs) -> list[Outputs]:
    """Return samples that can be compared: all of them rows of one length and type, or all of them listed.

    Whether 1 was read as 1.0 depends on what else is in a sample, and rows of several types are never the same.
    """
    forms = {(sample.shape[1], sample.dtype) if isinstance(sample, np.ndarray) else None for sample in samples}
    if len(forms) == 1:
        return list(samples)
    return [sample if isinstance(sample, list) else _listed(sample) for sample in samples]


def _plain(output: Any) -> Hashable:
    """Return an output as a hashable value: a released value stands for its release, a sequence becomes a tuple."""
    value = _told(output)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        value = tuple(sorted(value.items(), key=repr))
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    if not isinstance(value, Hashable) or _is_only_itself(value):
        raise InvalidParameter(f"the auditor cannot compare outputs of type {type(value).__name__}: return numbers")
    return value if value == value else _NOT_A_NUMBER  # One that differs from itself would be found nowhere.


def _told(output: Any) -> Any:
    """Return what an output tells: of a release of ours its value, of anybody else's record all its fields."""
    if type(output).__module__.startswith("discreet.") or isinstance(output, Enum):
        return getattr(output, "value", output)
    if is_dataclass(output) and not isinstance(output, type):
        return tuple(getattr(output, field.name) for field in fields(output))
    return output


def _is_only_itself(value: Any) -> bool:
    """Whether two outputs that look alike are never equal: then nothing could be found out about them."""
    kind: Any = type(value)
    compared = kind.__eq__ is not object.__eq__ or kind.__hash__ is not object.__hash__
    return not compared and value is not None and value is not ... and not isinstance(value, type)


def _as_array(listed: Sequence[Hashable]) -> NDArray[Any] | None:
    """Return rows of numbers if the outputs are such."""
    first = listed[0] if listed else None
    sample = first if isinstance(first, tuple) else (first,)
    if not sample or not all(type(part) in (int, float, bool) for part in sample):
        return None
    try:
        array = np.array(listed)
    except (ValueError, OverflowError):  # Tuples of several lengths, or numbers beyond any float.
        return None
    if not _is_numeric(array):
        return None
    rows = _rows(array)
    return rows if _listed(rows) == listed else None  # A large integer beside a fraction is rounded.


def _is_numeric(array: NDArray[Any]) -> bool:
    numbers = array.dtype.kind in "biuf" and array.ndim in (1, 2) and 0 not in array.shape
    return numbers and (array.dtype.kind != "f" or not bool(np.isnan(array).any()))


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array if array.ndim == 2 else array[:, None])


def _listed(rows: NDArray[Any]) -> list[Hashable]:
    """Return outputs one by one; a row of one number is that number."""
    return rows[:, 0].tolist() if rows.shape[1] == 1 else [tuple(row) for row in rows.tolist()]
