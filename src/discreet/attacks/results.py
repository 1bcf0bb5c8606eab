"""What an attack has learnt: about how many, how sure, and compared with what an attacker would know anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.errors import InvalidParameter

__all__ = ["Success"]


@final
@dataclass(frozen=True, slots=True)
class Success:
    """How many of some independent guesses were right."""

    hits: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.of:
            raise InvalidParameter("there are between none and all hits")

    @property
    def share(self) -> float:
        """The part that was right; 0 if nothing was guessed."""
        return self.hits / self.of if self.of else 0.0

    def interval(self, false_alarm: float = 0.05) -> tuple[float, float]:
        """Enclose the chance of a hit; each end is wrong with at most half of the chance of a false alarm. [CP34]

        Guesses of different chances only make the number of hits less variable than a binomial one. [Hoe56]
        """
        from scipy.special import betainccinv, betaincinv

        tail, misses = false_alarm / 2, self.of - self.hits
        low = float(betaincinv(self.hits, misses + 1, tail)) if self.hits else 0.0
        high = float(betainccinv(self.hits + 1, misses, tail)) if misses else 1.0
        return low, high

    def __str__(self) -> str:
        return f"{self.hits:,} of {self.of:,} ({100 * self.share:.0f} %)"
