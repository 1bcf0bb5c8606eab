"""Computes one block in a process of its own. It is run as a script, and knows the standard library only.

The job comes in through standard input, the answer goes out through standard output; both are nameless files in
memory. What is installed is trusted and is imported first. Then the process is locked, and only then the first line
of a function that nobody knows is run.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import marshal
import math
import mmap
import os
import struct
import sys
from importlib.abc import InspectLoader
from operator import attrgetter
from types import ModuleType
from typing import Any

__all__ = ["LONGEST_ANSWER", "spoken", "unpacked"]

LONGEST_ANSWER = 1 << 16  # Bytes.
_MODULE = "block_function"
_PARENT_DEATH, _FILTER, _COUNTER, _NO_NEW_PRIVILEGES = 1, 22, 26, 38  # What prctl can set,
_BY_FILTER, _FAULT = 2, 2  # and to what.
_MAP_FIXED = 16
_NOT_LOCKED = 70


def unpacked(rows: bytes, *, array: bool) -> Any:
    """Return the rows of a block: an array, or a list of plain records."""
    if not array:
        return marshal.loads(rows)
    import numpy as np

    return np.load(io.BytesIO(rows), allow_pickle=False)


def spoken(answer: Any) -> str:
    """Write an answer as text; what is no number, text, or list of these is an error."""
    return json.dumps(answer, default=_plain)


def _plain(value: Any) -> Any:
    if type(value).__name__ in ("Fraction", "Decimal"):  # By name, so that these are loaded only where they are used.
        return str(value)
    return value.tolist()  # NumPy's numbers and arrays; whatever else has such a method answers for itself.


class _Given(InspectLoader):
    """Loads a module from text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text


def _lock(job: dict[str, Any]) -> None:
    """Give up everything but computing, for good."""
    import ctypes
    import signal

    _limit(job["cpu_seconds"], job["memory"])
    # This one counts from here on, and fractions of a second. What it sends cannot be caught or held back any more.
    signal.setitimer(signal.ITIMER_PROF, job["cpu_seconds"])
    rules = ctypes.create_string_buffer(job["filter"], len(job["filter"]))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules) // 8, ctypes.addressof(rules)))
    control = ctypes.CDLL(None).prctl
    control.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    refused = [
        # A filter holds for the thread that sets it. One that a library had started would stay free, and a function
        # that writes into its memory would be.
        len(os.listdir("/proc/self/task")) != 1,
        _hide_clocks(),
        control(_COUNTER, _FAULT, 0, 0, 0) and os.uname().machine == "x86_64",
        control(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0),
        control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        control(_FILTER, _BY_FILTER, ctypes.addressof(program), 0, 0),
    ]
    if any(refused):
        os._exit(_NOT_LOCKED)


def _hide_clocks() -> bool:
    """Put empty pages where the kernel shows its clocks to all; tell whether that failed.

    Without them the C library asks the kernel each time, which will be refused. A clock would tell a block how long
    others took, and a fast one what they do at the moment.
    """
    import ctypes

    place = ctypes.CDLL(None).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    with open("/proc/self/maps", encoding="ascii") as maps:
        shown = [line.split()[0].split("-") for line in maps if "[vvar" in line]
    ends = [(int(start, 16), int(end, 16)) for start, end in shown]
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    return any(place(start, end - start, mmap.PROT_READ, kind, -1, 0) != start for start, end in ends)


def _limit(cpu_seconds: float, memory: int) -> None:
    """Set limits that only the kernel can raise again; no core of memory is ever written."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(usage.ru_utime + usage.ru_stime + cpu_seconds) + 1
    limits = {"CORE": 0, "FSIZE": LONGEST_ANSWER, "AS": memory, "CPU": most}
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def _set_aside(descriptor: int) -> int:
    """Return another number for an open file, and let what is printed there go nowhere."""
    kept, nowhere = os.dup(descriptor), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return kept


def _import(names: list[str]) -> None:
    for name in names:
        # One that is not there fails where the function asks for it.
        if _found(name):
            importlib.import_module(name)


def _found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _module(job: dict[str, Any]) -> ModuleType:
    if job["source"] is None:
        return sys.modules[job["module"]]
    loader = _Given(job["source"])
    spec = importlib.util.spec_from_loader(_MODULE, loader)
    assert spec is not None
    module = sys.modules[_MODULE] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _main() -> None:
    job = marshal.loads(sys.stdin.buffer.read())
    _import(job["libraries"])
    rows = None if job["rows"] is None else unpacked(job["rows"], array=job["array"])
    answers = _set_aside(1)
    _lock(job)
    function = attrgetter(job["name"])(_module(job))
    answer = callable(function) if rows is None else function(rows)
    os.write(answers, spoken(answer).encode())
    os._exit(0)


if __name__ == "__main__":
    _main()
