"""How a generator is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["Training"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a generator is trained. All of it is public and free."""

    steps: int
    rows_per_class: int
    codes: int
    hidden: int
    learning_rate: float
