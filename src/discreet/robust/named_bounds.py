"""Bounds of several columns by their names: matched one by one, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import Refused

__all__ = ["bounds_in_order", "column_names"]


def column_names(table: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a table of pandas, polars or Arrow; None where there are none."""
    found = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if found is None or callable(found):
        return None
    names = tuple(found)
    return names if names and all(isinstance(name, str) for name in names) else None


def bounds_in_order(bounds: Any, names: Sequence[str] | None, *, parameter: str = "bounds") -> Any:
    """Return pairs in the order of the columns; what is no mapping comes back as it is."""
    if not isinstance(bounds, Mapping):
        return bounds
    if names is None:
        raise Refused(
            f"{parameter} names columns, and the columns that arrive here have no names",
            reason="which pair is for which column would be a guess",
            way_out="hand over a table of pandas or polars whose columns are named, in a pipeline of scikit-learn with "
            '.set_output(transform="pandas"); or give one pair for all columns, or a pair for each in their order',
        )
    if len(set(names)) < len(names):
        raise Refused(f"{parameter} names columns, and several columns have the same name", way_out="rename them")
    missing = [str(name) for name in names if name not in bounds]
    unknown = [str(name) for name in bounds if name not in names]
    if missing or unknown:
        told = [f"there are none for {', '.join(missing)}"] * bool(missing)
        told += [f"there is no column {', '.join(unknown)}"] * bool(unknown)
        raise Refused(
            f"{parameter} does not fit the columns: {'; '.join(told)}",
            reason="each column must be clamped to bounds that were declared for it",
            way_out=f"name every column once; those that arrive here are {', '.join(map(str, names))}",
        )
    return [bounds[name] for name in names]
