"""The noisy count of a column."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.formatting import record
from discreet.frames.cells import is_missing
from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Count", "count_query", "row_query"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Count the entries that are there: missing ones and False do not count, everything else does.

    So it counts the rows of a column, and the true rows of a condition.

    Guarantee   what the noise spends on sensitivity 1, under either relation.
    Theorem     One unit adds, removes or changes one entry, and an entry counts for 0 or 1. [DMNS06]
    Utility     that of the noise; with Laplace noise P(|error| > t) <= 2 exp(-epsilon t).

    Args:
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.

    Examples:
        >>> mechanism = dp.mechanisms.Count(
        ...     relation=dp.Relation.ADD_REMOVE, noise=dp.mechanisms.LaplaceNoise(epsilon=1)
        ... )
        >>> abs(mechanism.release([True, False, None, True]).value - 2) < 60
        True
    """

    relation: Relation
    noise: Noise

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The one noisy number behind the answer."""
        return (Measurement(query=count_query(self.relation), noise=self.noise),)

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def release(self, data: Data) -> Release[int]:
        """Count with noise."""
        (measurement,) = self.measurements
        return Release(
            value=measurement.measure(data)[0],
            event=self.event,
            relation=self.relation,
            accuracy=measurement.accuracy(),
            limits=(Fraction(0), None),
        )

    def distribution(self, data: Data) -> Outcomes:
        return joint_distribution(self.measurements, data)


def count_query(relation: Relation) -> BoundedQuery:
    """The number of entries that are there."""
    return BoundedQuery(
        evaluate=lambda data: (int(present(column_of(data)).sum()),),
        sensitivity=Sensitivity.scalar(1),
        relation=relation,
    )


def row_query(relation: Relation) -> BoundedQuery:
    """The number of rows, missing or not: what a sum in which every row has a value is divided by."""
    return BoundedQuery(
        evaluate=lambda data: (len(column_of(data)),), sensitivity=Sensitivity.scalar(1), relation=relation
    )


def present(column: Column) -> NDArray[np.bool_]:
    """Tell for each row whether it counts."""
    values = column.values
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind == "b":
        here = np.array(values, dtype=np.bool_)
    elif kind in "fcmM":
        here = ~(np.isnan(values) if kind in "fc" else np.isnat(values))  # type: ignore[arg-type]
    elif kind in "OUT":
        here = np.array([_counts(value) for value in values], dtype=np.bool_)
    else:
        here = np.ones(len(values), dtype=np.bool_)
    return here if column.missing is None else here & ~column.missing


def _counts(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return not is_missing(value)
