"""How a generator is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

__all__ = ["Training", "TrainingOptions", "training_for"]

_ROWS, _LEAST = 400, 8  # Rows of a training batch over all classes, and of one class.
_RATE = 5e-3


class TrainingOptions(Protocol):
    """What a user may choose of it."""

    @property
    def steps(self) -> int:
        """Steps of training."""

    @property
    def hidden(self) -> int:
        """Width of the generator."""

    @property
    def codes(self) -> int:
        """Normal numbers from which a row is made."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a generator is trained. All of it is public and free."""

    steps: int
    rows_per_class: int
    codes: int
    hidden: int
    learning_rate: float
    scale: float  # how unlike the rows of a class are before training


def training_for(options: TrainingOptions, classes: int) -> Training:
    """Return how a generator for so many classes is trained."""
    return Training(
        steps=options.steps,
        rows_per_class=max(_LEAST, _ROWS // classes),
        codes=options.codes,
        hidden=options.hidden,
        learning_rate=_RATE,
        scale=0.5,
    )
