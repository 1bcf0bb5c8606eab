"""Who takes part in a step: every record by an exact coin of its own, in random order, in batches of one shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import integer
from discreet.learn.training.plan import TrainingPlan

__all__ = ["NOBODY", "PhysicalBatch", "PoissonSampler"]

Integers: TypeAlias = NDArray[np.int64]
NOBODY = -1  # The index in a slot that holds no record.


class PhysicalBatch(NamedTuple):
    """Slots for one forward pass: the index of the record in each, and whether there is one. This is private."""

    indices: Integers
    inside: NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True)
class PoissonSampler:
    """Draw the sample of one step.

    Every record joins with probability q, independently of all others and of all steps, by an exact coin. The sample is
    put into a uniformly random order, on which the bound of the sensitivity rests, and cut into batches of exactly
    `physical_batch` slots; the last one is filled up with `NOBODY`. An empty sample has no batch, and still is a step.
    """

    plan: TrainingPlan

    def draw(self, count: int) -> list[PhysicalBatch]:
        """Draw from `count` records, a private number."""
        if not 0 <= integer(count, name="count") <= self.plan.most_records:
            raise InvalidParameter("the data set has more records than sums of doubles hold exactly: split it")
        chosen = np.flatnonzero(noise.bernoulli(self.plan.sampling_probability, count))
        return cut(chosen[noise.permutation(chosen.size)], self.plan.physical_batch)


def cut(order: Integers, slots: int) -> list[PhysicalBatch]:
    """Cut a row of records into batches of the same shape."""
    batches = -(-order.size // slots)
    indices = np.full((batches, slots), NOBODY, np.int64)
    indices.ravel()[: order.size] = order
    inside = indices != NOBODY
    return [PhysicalBatch(*pair) for pair in zip(indices, inside, strict=True)]
