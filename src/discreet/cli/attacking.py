"""What commands of the attack lab share."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed"]


def listed(words: Sequence[str] | None) -> list[str]:
    """Read names that are separated by commas, or said one by one."""
    return [name.strip() for word in words or () for name in word.split(",") if name.strip()]
