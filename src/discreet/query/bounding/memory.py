"""A word with the allocator."""

from __future__ import annotations

import numpy as np

__all__ = ["keep_freed_memory"]

_LARGE = 1 << 24


def keep_freed_memory() -> None:
    """Let the C library keep freed arrays for the next ones instead of giving them back to the kernel each time.

    It returns what is larger than a threshold, and raises that to the size of what was freed: so free something
    large, once, without touching it. Fresh pages cost up to three times the work done on them. Where another
    allocator is in use this does nothing.
    """
    np.empty(_LARGE, np.uint8)
