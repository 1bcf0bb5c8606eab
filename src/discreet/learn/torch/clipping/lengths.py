"""How rows and numbers are cut into pieces that float32 may add up."""

from __future__ import annotations

from functools import cache

__all__ = ["even_length"]


@cache
def even_length(size: int, most: int) -> int:
    """Return the longest piece of at most `most` that divides `size`, or 0 if that is short."""
    longest = max(length for length in range(1, most + 1) if size % length == 0)
    return longest if 2 * longest >= min(size, most) else 0
