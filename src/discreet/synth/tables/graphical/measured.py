"""What was measured: noisy tables of counts, and the number of rows they speak of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.junction import Clique

__all__ = ["NoisyMarginal", "checked", "estimated_total"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """The counts of a clique's cells with independent noise, in the order of the clique's columns, flat or shaped.

    `deviation` is that of the noise in one cell, in rows. For a clique of one column it may be an array, one for each
    cell.
    """

    clique: Clique
    values: Floats
    deviation: float | Floats


def checked(sizes: Sequence[int], one: NoisyMarginal) -> NoisyMarginal:
    """Refuse nonsense, and return the same measurement shaped, with its columns in rising order."""
    clique = tuple(one.clique)
    if not clique or len(set(clique)) < len(clique) or not set(clique) <= set(range(len(sizes))):
        raise InvalidParameter("a measurement needs a clique of one or more different columns that are there")
    shape = tuple(sizes[column] for column in clique)
    values = np.asarray(one.values, dtype=np.float64)
    if values.size != math.prod(shape) or not np.isfinite(values).all():
        raise InvalidParameter("a measurement needs one finite number for each cell of its clique")
    order = sorted(range(len(shape)), key=clique.__getitem__)
    return NoisyMarginal(tuple(sorted(clique)), values.reshape(shape).transpose(order), _deviation(one, values.size))


def _deviation(one: NoisyMarginal, cells: int) -> float | Floats:
    deviations = np.asarray(one.deviation, dtype=np.float64).ravel()
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        raise InvalidParameter("the deviation of a measurement must be positive and finite")
    if deviations.size == 1 or (deviations == deviations[0]).all():
        return float(deviations[0])
    if len(one.clique) > 1 or deviations.size != cells:
        raise InvalidParameter("give one deviation for all cells, or, for a clique of one column, one for each cell")
    return deviations


def estimated_total(measured: Sequence[NoisyMarginal]) -> float:
    """Estimate the number of rows by the sums of all measurements, weighted by their precision; at least one."""
    weights = [1 / float(np.sum(np.broadcast_to(one.deviation, one.values.size) ** 2)) for one in measured]
    sums = [float(one.values.sum()) * weight for one, weight in zip(measured, weights, strict=True)]
    return max(1.0, math.fsum(sums) / math.fsum(weights)) if measured else 1.0
