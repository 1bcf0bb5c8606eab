"""What the answers of all attacks have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from discreet.attacks import Success

__all__ = ["Share"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many guesses were right, of how many, and between which limits the chance lies, at 95 %."""

    hits: int
    of: int
    share: float
    low: float
    high: float

    @classmethod
    def of_success(cls, success: Success) -> Share:
        """Read what an attack has found."""
        low, high = success.interval()
        return cls(hits=success.hits, of=success.of, share=success.share, low=low, high=high)
