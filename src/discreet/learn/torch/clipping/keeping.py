"""Let the process keep the memory that it frees, since the next batch needs it again."""

from __future__ import annotations

import ctypes
from functools import cache

__all__ = ["keep_memory"]

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_LARGE = 1 << 30  # bytes


@cache
def keep_memory() -> bool:
    """Tell the C library not to give freed memory back to the system; return whether it understood.

    By default glibc returns large blocks at once, and the system hands them out again page by page, filled with zeros:
    a batch of gradients then costs more in page faults than in arithmetic. Other C libraries are left alone.
    """
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    return adjust is not None and bool(adjust(_MMAP, _LARGE)) and bool(adjust(_TRIM, _LARGE))
