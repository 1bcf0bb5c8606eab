"""Names that the judge and every subject's script share; the standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CANARY", "DELTA", "HUGE", "TRIALS", "WHALE_NUMBER", "WHALE_ROWS", "WORLDS", "Trial"]

WORLDS: Final = ("whole", "single", "loud", "whale")
WHALE_ROWS: Final = 1_000  # of each kind
WHALE_NUMBER: Final = 99_999_999
CANARY: Final = "ONLY-ONE-UNIT-HAS-THIS"
HUGE: Final = 10**6  # an epsilon at which hardly any noise is left
DELTA: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Trial:
    """One run over the corpus: on which world, and how much of a unit may count."""

    world: str
    max_groups: int
    max_rows: int  # in a group
    rows_in_all: int  # of one table
    rows_joined: int  # of a join of two


# At first limits that cut nothing, to see whether answers are right; then tight ones, to see whether they hold.
TRIALS: Final = (Trial("whole", 8, 10, 8, 10), Trial("single", 3, 2, 6, 6), Trial("whale", 3, 2, 6, 6))
