"""Each block in a fresh process that can compute and answer, and do nothing else.

Analyses have leaked through what a function does besides answering: through state that it keeps, through the time that
it takes, and through the budget that it spends. [HPN11] Here it keeps no state, has a slot of fixed length, and cannot
spend anything. [MTSSC12]
"""

from __future__ import annotations

import json
import marshal
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from discreet.adaptive import block_worker
from discreet.adaptive.block_programs import Program
from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive, positive_integer
from discreet.mechanisms.parameters import read_flag, settle
from discreet.seccomp_rules import (
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

__all__ = ["FAILED", "BlockLimits", "BlockRows", "Failed", "heard", "kernel_filter", "probe", "run_blocks"]

_TURN = 0.25  # Seconds, in which one block is cleared away before the next one starts.
_DEEPEST = 16  # Nested lists in an answer.
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pandas brings Arrow, and a thread could not be locked.
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
_COMMAND = (sys.executable, "-P", "-s", "-B", str(Path(block_worker.__file__).resolve()))


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """What a block says that has no answer. How it failed is not kept."""


FAILED = Failed()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLimits:
    """What one block may use. All of it is public, and the same for every block.

    With `padded`, each block has a slot of fixed length, so that nobody can tell by the time of a release how long one
    took. Blocks that run at the same time share caches: one that needs just about the time it has may be slowed down
    by another until that is used up. With one process that cannot be.
    """

    cpu_seconds: Fraction = Fraction(1)  # of computing, after libraries are imported
    wall_seconds: Fraction = Fraction(5)  # of a clock on the wall, from the start of the process
    memory: int = 1 << 31  # bytes of address space, libraries included
    processes: int = 1  # at the same time
    padded: bool = True

    def __post_init__(self) -> None:
        settle(
            self,
            cpu_seconds=positive(self.cpu_seconds, name="cpu_seconds"),
            wall_seconds=positive(self.wall_seconds, name="wall_seconds"),
            memory=positive_integer(self.memory, name="memory"),
            processes=positive_integer(self.processes, name="processes"),
            padded=read_flag(self.padded, name="padded"),
        )
        # Even if all processes share one core, each has used up its own time before the clock on the wall stops it.
        if self.wall_seconds < 2 * self.processes * self.cpu_seconds:
            raise InvalidParameter(
                "wall_seconds must be at least 2 * processes * cpu_seconds: or one block could slow another one down "
                "until it is stopped"
            )


@final
@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of a block, ready to be sent. It never prints what it holds."""

    packed: bytes
    array: bool

    def __repr__(self) -> str:
        return "Rows(…)"


def probe(program: Program, limits: BlockLimits) -> None:
    """Run a program once without data; refuse one that a block could not run. Nothing private is read."""
    if _run(program, None, limits) is not True:
        raise Refused(
            f"the function {program.name} cannot be run in a process of its own: it may import installed libraries "
            "only, none that starts threads, and open no file, start nothing and wait for nothing, also while it is "
            "defined; or it needs more memory or time than the limits allow"
        )


def run_blocks(
    program: Program,
    blocks: Sequence[BlockRows],
    limits: BlockLimits,
    progress: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Return what the function says about each block. Answers are not to be trusted in any way."""
    start = time.monotonic()
    slot = float(limits.wall_seconds) + _TURN

    def compute(place: int) -> Any:
        turn = start + slot * (place // limits.processes)
        if not limits.padded:
            return _run(program, blocks[place], limits)
        _sleep_until(turn)
        answer = _run(program, blocks[place], limits)
        _sleep_until(turn + slot)
        return answer

    answers = []
    with ThreadPoolExecutor(limits.processes) as pool:
        for answer in pool.map(compute, range(len(blocks))):
            answers.append(answer)
            if progress is not None:
                progress(len(answers), len(blocks))
    return answers


def _sleep_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def _run(program: Program, rows: BlockRows | None, limits: BlockLimits) -> Any:
    """Run one process to its end, whatever that is."""
    from tempfile import TemporaryDirectory

    task = _job(program, rows, limits)
    with TemporaryDirectory() as empty, _memory_file("job") as job, _memory_file("answer") as answer:
        _fill(job, task)
        process = subprocess.Popen(
            _COMMAND,
            stdin=job,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            cwd=empty,
            env=_ENVIRONMENT,
            close_fds=True,
            start_new_session=True,
        )
        ended_well = _wait(process, float(limits.wall_seconds))
        said = os.pread(answer, block_worker.LONGEST_ANSWER, 0)
    return heard(said) if ended_well else FAILED


def _job(program: Program, rows: BlockRows | None, limits: BlockLimits) -> bytes:
    job = {
        "filter": kernel_filter(),
        "libraries": list(program.libraries),
        "module": program.module,
        "source": program.source,
        "name": program.name,
        "rows": None if rows is None else rows.packed,
        "array": rows is not None and rows.array,
        "cpu_seconds": float(limits.cpu_seconds),
        "memory": limits.memory,
    }
    return marshal.dumps(job)


@contextmanager
def _memory_file(name: str) -> Iterator[int]:
    """Open a file that has no place in any folder."""
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _fill(descriptor: int, content: bytes) -> None:
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end, or bring it about; tell whether it was a good one."""
    watch, ends = os.pidfd_open(process.pid), select.poll()
    ends.register(watch, select.POLLIN)
    try:
        ended = ends.poll(1000 * seconds)
    finally:
        os.close(watch)
        process.kill()
        code = process.wait()
    return bool(ended) and code == 0


def heard(said: bytes) -> Any:
    """Read an answer as text; whatever is none, or is nested too deeply, is a failure."""
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        return FAILED
    return answer if _is_shallow(answer, _DEEPEST) else FAILED


def _is_shallow(answer: Any, levels: int) -> bool:
    parts = answer if isinstance(answer, list) else answer.values() if isinstance(answer, dict) else ()
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)


# --- confinement ---
# What a function that nobody knows may ask of the kernel: to compute, to use memory, to answer. Nothing else.
#
# Everything that is not on the list fails: it opens no file, starts no process or thread, reaches no network, sends no
# signal, takes no lock, reads no clock and does not sleep. So it leaves nothing behind that another block could find.


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
