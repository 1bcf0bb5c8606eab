"""What a function that nobody knows may ask of the kernel: to compute, to use memory, to answer. Nothing else.

Everything that is not on the list fails: it opens no file, starts no process or thread, reaches no network, sends no
signal, takes no lock, reads no clock and does not sleep. So it leaves nothing behind that another block could find.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from discreet.errors import Refused

__all__ = ["kernel_filter"]

_ALLOW, _KILL, _DENY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06  # Instructions of a classic packet filter.
_NUMBER, _ARCHITECTURE, _SECOND = 0, 4, 24  # Offsets of what the kernel shows to a filter.
_WAKE, _KINDS = 1, 127  # Of a futex: to wake never waits.


@final
@dataclass(frozen=True, slots=True)
class _Machine:
    """How one architecture names itself and its calls."""

    architecture: int
    calls: Mapping[str, int]


_NAMES = (
    "read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk", "mremap", "madvise",
    "rt_sigreturn", "sched_yield", "getpid", "gettid", "getrandom", "exit", "exit_group", "futex",
)  # fmt: skip
_X86 = (0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 15, 24, 39, 186, 318, 60, 231, 202)
_ARM = (63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 139, 124, 172, 178, 278, 93, 94, 98)
_MACHINES = {
    "x86_64": _Machine(0xC000003E, dict(zip(_NAMES, _X86, strict=True))),
    "aarch64": _Machine(0xC00000B7, dict(zip(_NAMES, _ARM, strict=True))),
}


def kernel_filter() -> bytes:
    """Return the filter for this machine, or refuse where there is none."""
    machine = _MACHINES.get(platform.machine())
    if machine is None or sys.platform != "linux":
        raise Refused(
            "functions are confined on Linux, on x86-64 and 64-bit ARM, only: run there, or say trusted=True for a "
            "function that you vouch for"
        )
    calls = dict(machine.calls)
    futex = calls.pop("futex")
    rules = [
        # Calls of another architecture have other numbers: whoever makes one is gone.
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        *(rule for number in calls.values() for rule in ((_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW))),
        (_EQUAL, 0, 5, futex),
        (_LOAD, 0, 0, _SECOND),
        (_AND, 0, 0, _KINDS),
        (_EQUAL, 0, 1, _WAKE),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _DENY),
    ]
    return b"".join(struct.pack("=HBBI", *rule) for rule in rules)
