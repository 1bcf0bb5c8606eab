"""What a worker gives up before it sees anything private: files, environment, memory, and calls (seccomp)."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from discreet.seccomp_rules import (
    ALLOW,
    AND,
    DENY,
    EQUAL,
    LOAD,
    NUMBER,
    RETURN,
    UNKNOWN,
    Rule,
    argument,
    machine,
    of_architecture,
    packed,
)

__all__ = ["die_with_parent", "forget_everything", "limit_memory", "lock", "used_memory", "worker_filter"]

# --- locking: What a worker gives up before it sees anything private, for good: the rest of the machine. ---
#
# What a system does not have is left out. On Linux all of it holds; elsewhere the limits and the empty environment do.


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


# --- denied ---
# What a worker may not ask of the kernel: a network, other processes, other programs, more than it was given.
#
# Unlike a function that nobody knows, a worker runs our own code and DuckDB's: it opens files and starts threads. So
# this list names what is refused. It can only be added to, and holds for every thread that is started later.


_THREAD = 0x10000  # CLONE_THREAD
_OTHER_NUMBERS = 0x40000000  # The second table of numbers that x86-64 has.
_CLONE3 = 435  # On both. It shows its flags to nobody; without it the C library asks in the older way.

# On x86-64, and on 64-bit ARM; a call that one of them does not have is None.
_REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "setrlimit": (160, 164),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "mq_open": (240, 180),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "process_mrelease": (448, 448), "reboot": (169, 142),
}  # fmt: skip
_CLONE, _SIGNAL, _LIMIT = (56, 220), (234, 131), (302, 261)


def worker_filter() -> bytes | None:
    """Return the filter of this process; None where there is none for the machine."""
    name = machine()
    if name is None:
        return None
    place = 0 if name == "x86_64" else 1
    refused = [number for numbers in _REFUSED.values() if (number := numbers[place]) is not None]
    rules: list[Rule] = [
        *of_architecture(name),
        (LOAD, 0, 0, NUMBER),
        (AND, 0, 0, _OTHER_NUMBERS),
        (EQUAL, 1, 0, 0),
        (RETURN, 0, 0, DENY),
        (LOAD, 0, 0, NUMBER),
        *(rule for number in refused for rule in ((EQUAL, 0, 1, number), (RETURN, 0, 0, DENY))),
        (EQUAL, 0, 1, _CLONE3),
        (RETURN, 0, 0, UNKNOWN),
        # Threads, but no processes.
        (EQUAL, 0, 5, _CLONE[place]),
        (LOAD, 0, 0, argument(0)),
        (AND, 0, 0, _THREAD),
        (EQUAL, 1, 0, 0),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, DENY),
        # A signal to itself, as when it gives up.
        (EQUAL, 0, 4, _SIGNAL[place]),
        (LOAD, 0, 0, argument(0)),
        (EQUAL, 0, 1, os.getpid()),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, DENY),
        # Limits may be looked at; whoever names new ones is refused.
        (EQUAL, 0, 6, _LIMIT[place]),
        (LOAD, 0, 0, argument(2)),
        (EQUAL, 0, 3, 0),
        (LOAD, 0, 0, argument(2, high=True)),
        (EQUAL, 0, 1, 0),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, DENY),
        (RETURN, 0, 0, ALLOW),
    ]
    return packed(rules)
