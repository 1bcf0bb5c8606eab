"""The sandbox of subsample-and-aggregate: each block in a fresh process that can only compute and answer.

Analyses have leaked through what a function does besides answering: through state that it keeps, through the time that
it takes, and through the budget that it spends. [HPN11] Here it keeps no state, has a slot of fixed length, and cannot
spend anything. [MTSSC12]
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import marshal
import os
import select
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, Self, final

from discreet.adaptive import block_sandbox
from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive, positive_integer
from discreet.formatting import record
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

__all__ = [
    "FAILED",
    "BlockLimits",
    "BlockRows",
    "Failed",
    "Program",
    "excerpt",
    "heard",
    "kernel_filter",
    "probe",
    "run_blocks",
    "undefined",
]

# --- block_programs: A function as text, so that a process that knows nothing else can run it. ---


_PARSING = Lock()
# Parts that a library would import when first used, when it is too late.
_LATE = {
    "collections": ("heapq",),
    "datetime": ("_strptime",),
    "numpy": tuple(f"numpy.{part}" for part in ("fft", "linalg", "ma", "polynomial", "random")),
    "statistics": ("heapq",),
    "time": ("_strptime",),
}
_WAY_OUT = (
    "put it at the top level of a file, with installed libraries only, or say trusted=True for one that you vouch for"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Where a function comes from: a module that is installed, or a text that defines it. It is public.

    The text may import installed libraries. They are imported before it is read, since a block opens no file; a
    library that imports more when it is used needs that named by an import in the text as well.
    """

    name: str  # of the function in its module, dotted for one in a class
    module: str | None = None  # one that is installed; or
    source: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.module is None) == (self.source is None):
            raise InvalidParameter("say either module or source")
        if not all(part.isidentifier() for part in self.name.split(".")):
            raise InvalidParameter("name must be the name of a function")
        _ = self.libraries
        if self.source is not None and (missing := undefined(self.source)):
            raise InvalidParameter(
                f"{self.name} needs what its text does not define: {', '.join(sorted(missing))}. Import or define that "
                "in the same file, or inside the function where there is no file"
            )

    @classmethod
    def of(cls, function: Callable[[Any], Any]) -> Self:
        """Find the text of a function and of what it mentions, or refuse one that is more than its text."""
        name, place = getattr(function, "__qualname__", ""), getattr(function, "__module__", None)
        if "<" in name or not name or place not in sys.modules:
            raise InvalidParameter(f"a function without a name of its own cannot be run elsewhere: {_WAY_OUT}")
        if _is_installed(place):
            return cls(name=name, module=place)
        try:
            whole = inspect.getsource(sys.modules[place])
        except (OSError, TypeError):
            return cls(name=name, source=_alone(function))
        return cls(name=name, source=excerpt(whole, name.partition(".")[0]))

    @property
    def libraries(self) -> tuple[str, ...]:
        """What is imported before the function is read."""
        try:
            named = [self.module] if self.module is not None else _imported(self.source or "")
        except (SyntaxError, ValueError):
            raise InvalidParameter("source must be Python") from None
        late = [part for name in named for part in _LATE.get(name.partition(".")[0], ())]
        return tuple(dict.fromkeys([*named, *late]))


def _imported(source: str) -> list[str]:
    """Name what a text imports. Parsers of two threads disturb each other's count of depth in some Pythons."""
    with _PARSING:
        return list(_imports(ast.parse(source)))


def _alone(function: Callable[[Any], Any]) -> str:
    """Return the text of a function that was typed in, without what stood around it: it must import for itself."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise InvalidParameter(f"the text of this function cannot be found: {_WAY_OUT}") from None


def _imports(tree: ast.AST) -> Iterator[str]:
    """Name every module that is imported anywhere, and everything that may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")


def _is_installed(name: str) -> bool:
    """Tell whether a fresh interpreter finds a module among its libraries."""
    if name == "__main__":
        return False
    top = sys.modules.get(name.partition(".")[0])
    file = getattr(top, "__file__", None)
    if top is None or file is None:
        return name in sys.builtin_module_names
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).resolve().is_relative_to(Path(folder).resolve()) for folder in folders)


# --- excerpt: The part of a program's text that one name in it needs. ---
#
# A script that defines a function often also reads the data, right beside it. A block must not do that, and cannot; so
# it gets the statements that define what the function mentions, those that define what these mention, and no others.
# No value goes with them: whatever they bind, they compute anew from the text.


def excerpt(text: str, name: str) -> str:
    """Return the statements at the top level of a text that define a name, directly or indirectly, in their order."""
    statements = ast.parse(text).body
    needed, taken = {name}, {place for place, statement in enumerate(statements) if _is_always_needed(statement)}
    grown = True
    while grown:
        more = {
            place
            for place, statement in enumerate(statements)
            if place not in taken and needed & set(_bound(statement))
        }
        for place in more:
            needed |= {node.id for node in ast.walk(statements[place]) if isinstance(node, ast.Name)}
        taken |= more
        grown = bool(more)
    return "\n".join(ast.unparse(statements[place]) for place in sorted(taken)) + "\n"


def _is_always_needed(statement: ast.stmt) -> bool:
    """Imports from the future, and of everything: what these define cannot be told by name."""
    if not isinstance(statement, ast.ImportFrom):
        return False
    return statement.module == "__future__" or any(alias.name == "*" for alias in statement.names)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Name what a statement binds, or may bind somewhere inside."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        yield from _names(node)


def _names(node: ast.AST) -> Iterator[str]:
    """Name what one part of a statement binds or changes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        # `settings.rate = 2` and `table["x"] = 1` change what a name stands for.
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store()):
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            yield name


def undefined(text: str) -> set[str]:
    """Name what a text mentions and neither defines nor finds among what every Python has."""
    nodes = list(ast.walk(ast.parse(text)))
    if any(isinstance(node, ast.alias) and node.name == "*" for node in nodes):
        return set()
    mentioned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    known = {name for node in nodes for name in (*_names(node), *_inner_names(node))}
    return mentioned - known - set(dir(builtins)) - {"__file__"}


def _inner_names(node: ast.AST) -> Iterator[str]:
    """Name what is bound inside functions and patterns only."""
    match node:
        case ast.arg(arg=str(name)) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name


_TURN = 0.25  # Seconds, in which one block is cleared away before the next one starts.
_DEEPEST = 16  # Nested lists in an answer.
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pandas brings Arrow, and a thread could not be locked.
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
_COMMAND = (sys.executable, "-P", "-s", "-B", str(Path(block_sandbox.__file__).resolve()))


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

    Args:
        cpu_seconds: Seconds of computing, after libraries are imported.
        wall_seconds: Seconds from the start of the process; at least 2 * processes * cpu_seconds.
        memory: Bytes of address space, libraries included.
        processes: How many blocks run at the same time.
        padded: Whether each block has a slot of fixed length, so that time tells nothing.

    Raises:
        InvalidParameter: If a block could be slowed down by another until it is stopped.

    Examples:
        >>> dp.adaptive.BlockLimits(cpu_seconds=1, wall_seconds=10, processes=2).padded
        True
    """

    cpu_seconds: Fraction = Fraction(1)  # of computing, after libraries are imported
    wall_seconds: Fraction = Fraction(5)  # of a clock on the wall, from the start of the process
    memory: int = 1 << 31  # bytes of address space, libraries included
    processes: int = 1  # at the same time
    padded: bool = True

    __repr__ = record

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
        said = os.pread(answer, block_sandbox.LONGEST_ANSWER, 0)
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
