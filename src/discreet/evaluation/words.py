"""Numbers and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.mechanisms.text import significant_up

__all__ = ["columns_text", "level_text", "listed", "number", "percent"]


def percent(share: float, digits: int = 0) -> str:
    """Write a share; with one decimal more where it is small or nearly whole."""
    value = 100 * share
    if digits == 0 and (0 < value < 2 or 98 < value < 100):
        digits = 1
    return f"{value:.{digits}f} %"


def number(value: float) -> str:
    """Write a count or an error with as many digits as matter."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def level_text(epsilon: float) -> str:
    """Write ε, rounded up."""
    return significant_up(Fraction(epsilon))


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def columns_text(names: Sequence[str]) -> str:
    """Name the columns of a table of counts."""
    return " × ".join(names)
