"""How often, how much and how fast is learnt: as somebody said, or chosen from public numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Self, final

from discreet.errors import InvalidParameter
from discreet.synth.domain.images import Images
from discreet.synth.method import Terms

if TYPE_CHECKING:
    from discreet.synth.diffusion.method import Diffusion

__all__ = ["LearningSchedule"]

_MUCH = 3  # An epsilon from which on gradients say much more than averages do.
_LARGEST = 4096  # A batch, if none is said.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSchedule:
    """All of it is public."""

    public_rows: int
    batch_size: int
    steps: int
    learning_rate: float

    @classmethod
    def of(cls, method: Diffusion, terms: Terms[Images]) -> Self:
        """Choose what was not said: where noise is large, few and small steps learn most."""
        size = terms.public_rows
        assert size is not None
        batch = method.batch_size or min(_LARGEST, max(32, size // 12))
        if batch > size:
            raise InvalidParameter("batch_size must not exceed public_rows, about how many pictures there are")
        steps, rate = (500, 5e-3) if terms.epsilon >= _MUCH else (150, 2e-3)
        return cls(
            public_rows=size,
            batch_size=batch,
            steps=method.steps or steps,
            learning_rate=method.learning_rate or rate,
        )

    @property
    def rate(self) -> Fraction:
        """How often a picture takes part in a step."""
        return Fraction(self.batch_size, self.public_rows)
