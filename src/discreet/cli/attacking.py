"""What commands of the attack lab share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Drawable", "draw", "listed"]


class Drawable(Protocol):
    """What has a picture of itself."""

    def plot(self) -> Any:
        """Return a chart."""


def listed(words: Sequence[str] | None) -> list[str]:
    """Read names that are separated by commas, or said one by one."""
    return [name.strip() for word in words or () for name in word.split(",") if name.strip()]


def draw(found: Drawable, path: Path | None) -> None:
    """Write the picture of a result into a file, if one is named."""
    if path is not None:
        from discreet.plots import save

        save(found.plot(), path)
