"""Noisy histograms over public bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final
from unicodedata import normalize

import numpy as np

from discreet.errors import InvalidParameter
from discreet.formatting import record
from discreet.frames.cells import is_missing, plain_value
from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import EachCell, Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation
from discreet.schema.columns import listed_values

__all__ = ["Histogram", "bin_counts", "canonical", "read_bins"]

_OUTSIDE = object()  # The key of everything that can be in no bin.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Count the rows of each bin. The bins are public; rows in none of them are not counted.

    Text is compared in composed form (NFC) and -0.0 is 0; None as a bin counts what is missing.

    Guarantee   what the noise spends on l1 sensitivity 1 under add-remove, 2 under replace-one (squared l2: 1, 2).
    Theorem     A row is in one bin: coming or going it changes one count by one, changing its value at most two.
                [DMNS06]
    Utility     noise of the same size in every bin, whatever their number; empty bins get noise too.

    Args:
        bins: The public values to count.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.

    Raises:
        InvalidParameter: If there are no bins, or one twice.

    Examples:
        >>> mechanism = dp.mechanisms.Histogram(
        ...     bins=("f", "m"), relation=dp.Relation.ADD_REMOVE, noise=dp.mechanisms.LaplaceNoise(epsilon=1)
        ... )
        >>> mechanism.release(["f", "f", "m"]).labels
        ('f', 'm')
    """

    bins: tuple[Hashable, ...]
    relation: Relation
    noise: Noise

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, bins=read_bins(self.bins))
        settle(self, relation=read_relation(self.relation))
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy counts, in the order of the bins."""
        changed = 1 if self.relation is Relation.ADD_REMOVE or len(self.bins) == 1 else 2
        query = BoundedQuery(
            evaluate=lambda data: bin_counts(column_of(data), self.bins),
            sensitivity=Sensitivity(l1=changed, squared_l2=changed, dimension=len(self.bins)),
            relation=self.relation,
        )
        return (Measurement(query=query, noise=self.noise),)

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, data: Data) -> Release[tuple[int, ...]]:
        """Count every bin with noise."""
        (measurement,) = self.measurements
        return Release(
            value=measurement.measure(data),
            event=self.event,
            relation=self.relation,
            accuracy=EachCell(cells=(measurement.accuracy(),)),
            limits=(Fraction(0), None),
            labels=tuple(str(key) for key in self.bins),
        )

    def distribution(self, data: Data) -> Outcomes:
        return joint_distribution(self.measurements, data)


def read_bins(bins: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Read public bins: distinct, hashable, at least one; a declaration of categories lists them too."""
    bins = listed_values(bins)
    if isinstance(bins, (str, bytes)):
        raise InvalidParameter("bins must be a sequence of values, not one text")
    try:
        keys = tuple(_key(value) for value in bins)
    except TypeError:
        raise InvalidParameter("bins must be a sequence of values") from None
    if not keys or _OUTSIDE in keys:
        raise InvalidParameter("bins must be at least one value that can be compared; NaN is none")
    if len(set(keys)) != len(keys):
        raise InvalidParameter("bins must be distinct")
    return keys


def bin_counts(column: Column, bins: tuple[Hashable, ...]) -> tuple[int, ...]:
    """Count the rows of each bin."""
    counts: Counter[Hashable] = Counter()
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufU":
        here = values if column.missing is None else values[~column.missing]
        distinct, times = np.unique(here, return_counts=True)
        for value, count in zip(distinct.tolist(), times.tolist(), strict=True):
            counts[canonical(value)] += count
        counts[None] += len(values) - len(here)
    else:
        counts.update(map(canonical, column.objects()))
    return tuple(counts[key] for key in bins)


def canonical(value: object) -> Hashable:
    """Return the one form in which a datum is compared with bins."""
    return None if is_missing(value) else _key(value)


def _key(value: object) -> Hashable:
    """Return the form of a value that is there; what cannot be compared gets a form that equals no bin."""
    value = plain_value(value)
    if value is not None and is_missing(value):
        return _OUTSIDE
    if isinstance(value, str):
        return normalize("NFC", value)
    try:
        hash(value)
    except TypeError:
        return _OUTSIDE
    return value
