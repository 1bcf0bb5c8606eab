"""What a function that nobody knows may ask of the kernel: to compute, to use memory, to answer. Nothing else.

Everything that is not on the list fails: it opens no file, starts no process or thread, reaches no network, sends no
signal, takes no lock, reads no clock and does not sleep. So it leaves nothing behind that another block could find.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.errors import Refused
from discreet.kernel_rules import (
    ALLOW,
    AND,
    DENY,
    EQUAL,
    LOAD,
    NUMBER,
    RETURN,
    Rule,
    argument,
    machine,
    of_architecture,
    packed,
)

__all__ = ["kernel_filter"]

_WAKE, _KINDS = 1, 127  # Of a futex: to wake never waits.

_NAMES = (
    "read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk", "mremap", "madvise",
    "rt_sigreturn", "sched_yield", "getpid", "gettid", "getrandom", "exit", "exit_group", "futex",
)  # fmt: skip
_X86 = (0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 15, 24, 39, 186, 318, 60, 231, 202)
_ARM = (63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 139, 124, 172, 178, 278, 93, 94, 98)
_CALLS: Mapping[str, Mapping[str, int]] = {
    "x86_64": dict(zip(_NAMES, _X86, strict=True)),
    "aarch64": dict(zip(_NAMES, _ARM, strict=True)),
}


def kernel_filter() -> bytes:
    """Return the filter for this machine, or refuse where there is none."""
    name = machine()
    if name is None:
        raise Refused(
            "functions are confined on Linux, on x86-64 and 64-bit ARM, only: run there, or say trusted=True for a "
            "function that you vouch for"
        )
    calls = dict(_CALLS[name])
    futex = calls.pop("futex")
    rules: list[Rule] = [
        *of_architecture(name),
        (LOAD, 0, 0, NUMBER),
        *(rule for number in calls.values() for rule in ((EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW))),
        (EQUAL, 0, 5, futex),
        (LOAD, 0, 0, argument(1)),
        (AND, 0, 0, _KINDS),
        (EQUAL, 0, 1, _WAKE),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, DENY),
        (RETURN, 0, 0, DENY),
    ]
    return packed(rules)
