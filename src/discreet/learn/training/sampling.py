"""Poisson sampling: every record joins a step by an exact coin, in random order, in batches of one shape."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, integer
from discreet.learn.training.clip_rules import Clip
from discreet.learn.training.grid_sums import GridSum
from discreet.learn.training.stream_plan import StreamPlan, Unbanding
from discreet.learn.training.training_plan import TrainingPlan
from discreet.noise.samplers import heads
from discreet.privacy import Event

__all__ = ["NOBODY", "PhysicalBatch", "PoissonSampler", "RunNoise", "RunPlan", "RunSampler", "Stream"]

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
        chosen = np.flatnonzero(heads(self.plan.sampling_probability, count))
        return cut(chosen[noise.permutation(chosen.size)], self.plan.physical_batch)


def cut(order: Integers, slots: int) -> list[PhysicalBatch]:
    """Cut a row of records into batches of the same shape."""
    batches = -(-order.size // slots)
    indices = np.full((batches, slots), NOBODY, np.int64)
    indices.ravel()[: order.size] = order
    inside = indices != NOBODY
    return [PhysicalBatch(*pair) for pair in zip(indices, inside, strict=True)]


# --- streams: A run over a stream: whose turn it is in every step, and the noisy sums of all steps. ---


@final
class Stream:
    """Whose turn it is in every step, and the noisy sums of all steps, for one run of a plan.

    Every record gets a place among `period` ones by a fair draw of its own when the run begins, so that one record more
    moves nobody else's turn. Steps come one after the other: one that is begun must be released before the next.
    """

    def __init__(self, plan: StreamPlan) -> None:
        self.plan = plan
        self._places: Integers | None = None
        self._begun = self._done = 0
        self._banded = Unbanding(plan.weights)

    def draw(self, count: int) -> list[PhysicalBatch]:
        """Return the batches of the next step out of `count` records, a private number, in random order."""
        self._check(count)
        if self._places is None:
            self._places = noise.uniform(self.plan.period, count)
        mine = np.flatnonzero(self._places == self._begun % self.plan.period)
        self._begun += 1
        return cut(mine[noise.permutation(mine.size)], self.plan.physical_batch)

    def released(self, total: GridSum, unit: float) -> NDArray[np.float32]:
        """Return the noisy sum of this step, times `unit`, from the private sum."""
        return (self.noisy(total.whole().astype(np.int64)) * unit).astype(np.float32)

    def noisy(self, total: Integers) -> NDArray[np.float64]:
        """Return the noisy sum of this step, in grid steps, from the private sum."""
        if self._done + 1 != self._begun:
            raise Refused("a sum is released once, after its records were drawn")
        self._done += 1
        fresh = noise.rounded_gaussian(variance=self.plan.variance, size=self.plan.parameters)
        return self._banded.undone(self._banded.combined(total) + fresh)

    def close(self) -> None:
        """Forget whose turn it was; the run is over."""
        self._begun = self.plan.steps
        self._places = None

    def _check(self, count: int) -> None:
        if self._begun != self._done:
            raise Refused(
                "a step of a stream was left before its sum was released",
                reason="the noise of later steps is correlated with that of earlier ones, so none can be left out",
                way_out="start the run again; what was released so far is spent",
            )
        if self._begun >= self.plan.steps:
            raise Refused("all steps of this stream are taken", way_out="make a plan with more epochs")
        if not 0 <= integer(count, name="count") <= self.plan.most_records:
            raise InvalidParameter("the data set has more records than sums of 64 bits hold exactly: split it")
        if self._places is not None and len(self._places) != count:
            raise Refused("the data set of a stream may not grow or shrink while it is trained on")


# --- run_protocols: What a run is made of, whoever takes part in its steps and however their noise hangs together. ---


class RunPlan(Protocol):
    """All public numbers of a run, and what it spends: a `TrainingPlan` or a `StreamPlan`."""

    @property
    def steps(self) -> int: ...

    @property
    def clip(self) -> Clip: ...

    @property
    def divisor(self) -> Fraction: ...

    @property
    def delta(self) -> Fraction: ...

    @property
    def parameters(self) -> int: ...

    @property
    def physical_batch(self) -> int: ...

    @property
    def unit(self) -> str | None: ...

    @property
    def max_rows(self) -> int | None: ...

    @property
    def grid(self) -> Fraction: ...

    @property
    def sensitivity(self) -> Fraction: ...

    @property
    def deviation(self) -> float: ...

    @property
    def event(self) -> Event: ...

    def after(self, steps: int, /) -> Event: ...

    def epsilon(self, delta: Number, /) -> float: ...

    def describe(self) -> str: ...

    def to_json(self) -> str: ...


class RunSampler(Protocol):
    """Says who takes part in the next step."""

    def draw(self, count: int, /) -> list[PhysicalBatch]:
        """Draw from `count` records, a private number."""


class RunNoise(Protocol):
    """Makes a private sum public."""

    def released(self, total: GridSum, unit: float, /) -> NDArray[np.float32]:
        """Return the sum of one step with its noise, in grid steps times `unit`."""

    def close(self) -> None:
        """End the run."""
