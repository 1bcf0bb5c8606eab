"""Releases of many counts at once, as an attacker meets them: ours, anybody's, or exact numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.mechanisms.gaussian import VectorGaussian
from discreet.privacy import Event, Relation, gaussian_sigma

__all__ = ["Floats", "Integers", "VectorRelease", "deviation_of", "gaussian_counts", "released"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class VectorRelease(Protocol):
    """Whatever publishes a vector of counts and claims a guarantee for it: `VectorGaussian`, `VectorLaplace`, yours."""

    @property
    def event(self) -> Event:
        """What one release claims to spend."""

    @property
    def relation(self) -> Relation:
        """Who is a neighbour in that claim."""

    def release(self, answer: Sequence[int]) -> Any:
        """Publish an exact vector; the result has a `value` and, as ours do, a `noise`."""


def gaussian_counts(
    cells: int, *, squared_sensitivity: Number, epsilon: Number, delta: Number, relation: Relation
) -> VectorGaussian:
    """Return the Gaussian mechanism that publishes so many counts together for (epsilon, delta)."""
    changed = positive(squared_sensitivity, name="squared_sensitivity")
    sigma = Fraction(gaussian_sigma(epsilon, delta))
    return VectorGaussian(squared_sensitivity=changed, variance=sigma**2 * changed, dimension=cells, relation=relation)


def released(mechanism: VectorRelease | None, counts: Integers) -> Floats:
    """Publish counts: by a mechanism, with fresh noise, or as they are."""
    if mechanism is None:
        return counts.astype(np.float64)
    value = np.asarray(mechanism.release(counts.tolist()).value, dtype=np.float64)
    if value.shape != counts.shape:
        raise InvalidParameter("the release must have as many numbers as there are counts")
    return value


def deviation_of(mechanism: VectorRelease | None, cells: int) -> float:
    """Return the deviation of the noise that a mechanism declares: an attacker knows it. 0 if it declares none."""
    if mechanism is None:
        return 0.0
    law = getattr(mechanism.release([0] * cells), "noise", None)
    return 0.0 if law is None else float(law.standard_deviation)
