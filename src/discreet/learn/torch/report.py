"""What a run will do and promise, and how each layer of its model is handled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.learn.torch.layers.preparing import PreparedModel
from discreet.learn.training import RunPlan

__all__ = ["TrainingReport"]


@final
@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The plan and the layers of a run. Everything in it is public."""

    plan: RunPlan
    prepared: PreparedModel

    def __str__(self) -> str:
        return f"{self.plan.describe()}\n  {self.plan.physical_batch} rows at a time\n\n{self.prepared}"
