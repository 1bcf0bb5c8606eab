"""What a run is made of, whoever takes part in its steps and however their noise hangs together."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.exact import Number
from discreet.learn.training.clip_rules import Clip
from discreet.learn.training.sampling import PhysicalBatch
from discreet.privacy import Event

__all__ = ["RunNoise", "RunPlan", "RunSampler"]


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

    def released(self, total: NDArray[np.int64], /) -> NDArray[np.float64]:
        """Return the sum of one step with its noise, in grid steps."""

    def close(self) -> None:
        """End the run."""
