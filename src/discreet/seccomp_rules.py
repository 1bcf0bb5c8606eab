"""Seccomp rules: packet-filter instructions that tell the kernel which calls a process may make from then on.

A rule list is a classic packet filter, which the kernel runs at every call of the process and of all its threads.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Iterable
from typing import TypeAlias

__all__ = [
    "ALLOW", "AND", "DENY", "EQUAL", "LOAD", "NUMBER", "RETURN", "UNKNOWN",
    "Rule", "argument", "machine", "of_architecture", "packed",
]  # fmt: skip

Rule: TypeAlias = tuple[int, int, int, int]  # instruction, how far to go on if it holds and if it does not, operand

ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
LOAD, AND, EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # Offsets of what the kernel shows to a filter.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def machine() -> str | None:
    """Return the architecture if there are rules for it: those of Linux on x86-64 and 64-bit ARM."""
    name = platform.machine()
    return name if sys.platform == "linux" and name in _ARCHITECTURES else None


def argument(place: int, *, high: bool = False) -> int:
    """Return the offset of the lower or the higher half of an argument of the call, counted from 0."""
    return _ARGUMENTS + 8 * place + (4 if high else 0)


def of_architecture(name: str) -> list[Rule]:
    """Begin a filter: calls of another architecture have other numbers, and whoever makes one is gone."""
    return [(LOAD, 0, 0, _ARCHITECTURE), (EQUAL, 1, 0, _ARCHITECTURES[name]), (RETURN, 0, 0, KILL)]


def packed(rules: Iterable[Rule]) -> bytes:
    """Write a filter as the kernel reads it."""
    return b"".join(struct.pack("=HBBI", *rule) for rule in rules)
