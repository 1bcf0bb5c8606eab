"""What a worker gives up before it sees anything private, for good: the rest of the machine.

What a system does not have is left out. On Linux all of it holds; elsewhere the limits and the empty environment do.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

from discreet.query.workers.denied import worker_filter

__all__ = ["die_with_parent", "forget_everything", "limit_memory", "lock", "used_memory"]

_PARENT_DEATH, _DUMPABLE, _FILTER, _NO_NEW_PRIVILEGES = 1, 4, 22, 38  # What prctl can set,
_BY_FILTER = 2  # and to what.
_STACK = 8 << 20  # bytes of address space of a thread
_PER_THREAD = 2 * _STACK + (16 << 20)  # DuckDB and NumPy have a thread each, and allocators a store for both.
_FIXED = 320 << 20  # What the libraries take for themselves once they work.


def die_with_parent(parent: int) -> None:
    """Let the kernel end this process when the one that forked it ends, whatever ends it."""
    if sys.platform == "linux":
        _control(_PARENT_DEATH, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def forget_everything(kept: int) -> None:
    """Close every file but one, let what is printed go nowhere, and have an empty environment."""
    for number in _open_files():
        with suppress(OSError):  # One was the folder that was looked into.
            if number != kept:
                os.close(number)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    if nowhere > 2:
        os.close(nowhere)
    os.environ.clear()
    os.umask(0o077)


def _open_files() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(folder):
            return [int(name) for name in os.listdir(folder)]
    return list(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))


def limit_memory(memory: int, threads: int) -> int | None:
    """Let the kernel refuse more memory than was declared, beyond what the process itself takes; return the limit.

    Tables that were handed over are shared files, which do not count.
    """
    used = used_memory()
    if used is None:
        return None
    most = used + memory + threads * _PER_THREAD + _FIXED
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    return most


def used_memory() -> int | None:
    """Return the bytes that `limit_memory` limits; None where the system does not count them so."""
    if sys.platform != "linux":
        return None
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    return pages * resource.getpagesize()


def lock() -> None:
    """Give up networks, programs, other processes and traces on disk. It must be the only thread."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    _control(_DUMPABLE, 0)  # Where a program takes the cores, it would take them whatever the limit is.
    rules = worker_filter()
    if rules is not None:
        buffer = ctypes.create_string_buffer(rules, len(rules))
        program = ctypes.create_string_buffer(struct.pack("@HP", len(rules) // 8, ctypes.addressof(buffer)))
        _control(_NO_NEW_PRIVILEGES, 1)
        _control(_FILTER, _BY_FILTER, ctypes.addressof(program))


def _control(what: int, *values: int) -> None:
    control = ctypes.CDLL(None).prctl
    control.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if control(what, *values, *[0] * (4 - len(values))):
        os._exit(1)  # It is not locked, so it does nothing.
