"""What a worker process does, in a module that it can import: draw, and hand over what it drew."""

from __future__ import annotations

from discreet.noise import source


def draws(count: int, size: int = 16) -> list[bytes]:
    """Draw `count` times `size` bytes from the one door."""
    return [source.read(size) for _ in range(count)]
