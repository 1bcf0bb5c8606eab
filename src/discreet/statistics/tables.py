"""Counts of public bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, down, exact
from discreet.mechanisms.column import Column
from discreet.mechanisms.grid import exact_number
from discreet.mechanisms.histogram import Histogram, read_bins
from discreet.mechanisms.release import Release
from discreet.mechanisms.text import plain
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.paying import answer, noise_from

__all__ = ["histogram"]

_NOWHERE = -1
_LARGEST_EDGE = 10**300  # Every edge is a float, too.


def histogram(
    column: Any,
    *,
    relation: Relation,
    bins: Iterable[Hashable] | None = None,
    edges: Sequence[Number] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
) -> Release[tuple[int, ...]]:
    """Count the rows of each public bin: the values in `bins`, or the ranges between `edges`.

    A range holds its lower edge, and the last one its upper edge too. Rows in no bin are not counted.
    """
    if (bins is None) == (edges is None):
        raise InvalidParameter("say either bins=…, the public values, or edges=…, the public ends of ranges")
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, population=population, allow_large_delta=allow_large_delta
    )
    if edges is None:
        mechanism = Histogram(bins=read_bins(bins or ()), relation=relation, noise=noise)
        return answer(mechanism, column, session=session, purpose="histogram", noise=noise)
    ends = _read_edges(edges)
    mechanism = Histogram(bins=tuple(range(len(ends) - 1)), relation=relation, noise=noise)
    release = answer(
        mechanism,
        column,
        session=session,
        purpose="histogram",
        noise=noise,
        prepare=partial(_placed, ends=ends),
    )
    return replace(release, labels=_range_labels(ends))


def _read_edges(edges: Sequence[Number]) -> tuple[Fraction, ...]:
    ends = tuple(exact(edge, name="edge") for edge in edges)
    if len(ends) < 2 or any(low >= high for low, high in pairwise(ends)):
        raise InvalidParameter("edges must be at least two numbers, each above the one before")
    if max(abs(ends[0]), abs(ends[-1])) > _LARGEST_EDGE:
        raise InvalidParameter("edges must lie between -1e300 and 1e300")
    return ends


def _range_labels(ends: tuple[Fraction, ...]) -> tuple[str, ...]:
    closing = [")"] * (len(ends) - 2) + ["]"]
    pairs = zip(pairwise(ends), closing, strict=True)
    return tuple(f"[{plain(low)}, {plain(high)}{close}" for (low, high), close in pairs)


def _placed(column: Column, *, ends: tuple[Fraction, ...]) -> Column:
    """Replace each value by the number of its range; a float edge is compared as the float that was meant."""
    values = _floats(column)
    limits = np.array([float(end) for end in ends])
    places = np.searchsorted(limits, values, side="right") - 1
    places[values == limits[-1]] = len(ends) - 2
    outside = np.isnan(values) | (values < limits[0]) | (values > limits[-1])
    places[outside] = _NOWHERE
    return Column(places)


def _floats(column: Column) -> NDArray[np.float64]:
    values = column.values
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind in "iu":
        floats = _floats_down(np.asarray(values))
    elif kind in "bf":
        with np.errstate(over="ignore"):  # A warning would tell that a value is huge.
            floats = np.asarray(values).astype(np.float64)
    else:
        floats = np.array([_float(value) for value in column.objects()], dtype=np.float64)
    return floats if column.missing is None else np.where(column.missing, np.nan, floats)


def _floats_down(whole: NDArray[Any]) -> NDArray[np.float64]:
    """Round whole numbers down to floats, as `_float` does one by one.

    How a row is rounded must not depend on what the other rows are: a single None makes a list of objects.
    """
    signed = whole.dtype.kind == "i"
    wide = whole.astype(np.int64 if signed else np.uint64)
    floats = wide.astype(np.float64)
    beyond = floats >= (2.0**63 if signed else 2.0**64)  # Rounded up to what the type does not hold.
    too_high = beyond | (np.where(beyond, 0, floats).astype(wide.dtype) > wide)
    return np.where(too_high, np.nextafter(floats, -np.inf), floats)


def _float(value: object) -> float:
    number = exact_number(value)
    return float("nan") if number is None else down(number)
