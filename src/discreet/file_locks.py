"""Locks of files (flock), which keep processes apart, and a refusal where the system has none.

Linux and macOS have them, Windows has not. Modules that need them can be imported anywhere; what would use them is
refused when it is opened, before anything is read or paid.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from discreet.errors import Refused

__all__ = [
    "BINARY",
    "CLOSE_ON_EXEC",
    "NO_FOLLOW",
    "control",
    "lock_file",
    "refuse_without_locks",
    "try_to_lock",
    "unlock_file",
]

# How a file is opened. Zero where a system knows no such thing.
BINARY: int = getattr(os, "O_BINARY", 0)
CLOSE_ON_EXEC: int = getattr(os, "O_CLOEXEC", 0)
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


def _control() -> Any:
    try:
        return import_module("fcntl")
    except ModuleNotFoundError:
        return None


control = _control()  # The module fcntl; None on Windows.


def refuse_without_locks(what: str) -> None:
    """Refuse what two processes may not do at once, on a system that cannot keep them apart."""
    if control is None:
        raise Refused(
            f"{what} cannot be used on this system",
            reason="processes are kept apart by locks of files and started by fork, which Linux and macOS have",
            way_out="use Linux, macOS, or the Linux subsystem of Windows (WSL 2) with the files on its own disk",
        )


def lock_file(file: int) -> None:
    """Wait until no other process has the lock, and take it. The kernel lets go of it if this process dies."""
    control.flock(file, control.LOCK_EX)


def try_to_lock(file: int) -> None:
    """Take the lock, or raise OSError (BlockingIOError if another process has it)."""
    control.flock(file, control.LOCK_EX | control.LOCK_NB)


def unlock_file(file: int) -> None:
    """Let the next one have the lock."""
    control.flock(file, control.LOCK_UN)
