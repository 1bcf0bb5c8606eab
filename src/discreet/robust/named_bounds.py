"""What calls of this package read first: bounds of columns by their names, and a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive
from discreet.frames.column import column_of, reader_for
from discreet.frames.tables import is_table
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import number_rows
from discreet.mechanisms.release import Release
from discreet.schema.columns import as_pairs

__all__ = ["bounds_in_order", "noise_for", "quoted", "reader_of"]

# --- named_bounds: Bounds of several columns by their names: matched one by one, or refused. ---


def bounds_in_order(bounds: Any, names: Sequence[Any] | None, *, parameter: str = "bounds") -> Any:
    """Return pairs in the order of the columns, of declarations too; what is no mapping stays as it is."""
    bounds = as_pairs(bounds, name=parameter)
    if not isinstance(bounds, Mapping):
        return bounds
    if names is None or not all(isinstance(name, str) for name in names):
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


# --- spending: Reading a budget: epsilon, epsilon with delta, rho, or mu. ---


T = TypeVar("T")


def noise_for(
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    mu: Number | None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
) -> Noise:
    """Choose the noise by what the caller wants to spend."""
    named = [name for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None]
    if len(named) != 1 or (delta is not None and epsilon is None):
        raise InvalidParameter(
            "say what to spend: epsilon=… (Laplace noise), epsilon=… and delta=…, rho=… or mu=… (Gaussian noise)"
        )
    if rho is not None:
        return GaussianNoise.for_rho(rho)
    if mu is not None:
        return GaussianNoise(squared_multiplier=1 / positive(mu, name="mu") ** 2)
    assert epsilon is not None
    if delta is None:
        return LaplaceNoise(epsilon=positive(epsilon, name="epsilon"))
    return GaussianNoise.for_epsilon(epsilon, delta, public_rows=public_rows, allow_large_delta=allow_large_delta)


def quoted(release: Release[T], noise: Noise) -> Release[T]:
    """Say that one row is protected, and quote the cost at the delta that the noise was made for, if for one."""
    delta = noise.delta if isinstance(noise, GaussianNoise) else release.delta
    return replace(release, delta=delta, unit="row")


def reader_of(data: Any) -> Callable[[Any], Any]:
    """Return what reads this kind of data, a table or a column, or refuse; no value is looked at."""
    if is_table(data):
        return number_rows
    reader = column_of if isinstance(data, np.ndarray) else reader_for(data)
    return (lambda rows: rows) if reader is column_of else reader  # Mechanisms take arrays and lists themselves.
