"""An engine that reads nothing itself: each question goes to a worker of its own, which is kept for the next one."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast, final

import numpy as np

from discreet.custodian_debug import is_on, show_text
from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.file_locks import refuse_without_locks
from discreet.noise.source import read
from discreet.query.catalogue import CatalogueColumn
from discreet.query.engine import Deadline, ExactCounts, Stage
from discreet.query.engines.duckdb_sandbox import Progress as SandboxProgress
from discreet.query.engines.duckdb_sandbox import default_threads
from discreet.query.engines.shared_scans import keys_needed
from discreet.query.engines.streamed_tables import Streamed
from discreet.query.engines.tables import (
    Csv,
    HeldTable,
    InMemory,
    OpenedTable,
    Schemas,
    changed,
    check_names,
    check_public,
    hold_all,
    kinds_of,
)
from discreet.query.policy import PublicTable
from discreet.query.sources.protocol import ScanRequest, SumRequest, adds_up
from discreet.query.sources.scan_requests import requests_of
from discreet.query.sources.server_sums import ServerStage, added_by_servers
from discreet.query.workers.messages import (
    Block,
    Message,
    decoded,
    encoded,
    nameless_file,
    read_table,
    read_tallied,
    readable,
    receive,
    send,
    write_table,
)
from discreet.query.workers.stream_feed import StreamFeed
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Progress", "Worker", "WorkerEngine", "get_ready", "start_worker"]

# --- process: Workers as the process that asks sees them: it has them forked, talks to them, and has them killed. ---


Progress: TypeAlias = Callable[[float, float], None]  # seconds gone, seconds allowed

_BEAT = 0.1  # seconds
_GRACE = 0.25  # Seconds after the deadline, in which a worker may stop by itself.
_START = 120.0  # Seconds for loading libraries, on a machine that is busy.
# What libraries read while they are loaded; then it is taken away. A fork keeps one thread only, so there must be one;
# and the C library's allocator takes memory as it is needed, so that a limit means what it says.
_SETTINGS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
# Sorting is most of what bounding does. NumPy's sort by AVX-512 stores compressed vectors, which AMD processors do in
# microcode: by AVX2 it takes a fifth of the time there, and the order is the same. A NumPy that was built for nothing
# but AVX-512 does not load without it, so only what this one chooses among is left out.
_AVX512 = ("X86_V4", "AVX512_SKX", "AVX512_ICL")
_SCRIPT = (
    "import json, os, sys; sys.path[:], settings = json.loads(sys.argv[1]); os.environ.update(settings); "
    "from discreet.query.workers.zygote import main; main(int(sys.argv[2]))"
)
_OPEN: weakref.WeakSet[socket.socket] = weakref.WeakSet()  # A forked child must not keep them open.


@final
class _Zygote:
    """The process from which workers are forked."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        _OPEN.add(self._control)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-X",
                    "utf8",
                    "-c",
                    _SCRIPT,
                    json.dumps([_paths(), _settings()]),
                    str(theirs.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is for the one that asks.
            )

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def step_back(self, niceness: int) -> None:
        """Let this process, and what is forked from it, yield to others."""
        with suppress(OSError):
            wanted = min(19, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
            if wanted > os.getpriority(os.PRIO_PROCESS, self._process.pid):  # It cannot be taken back.
                os.setpriority(os.PRIO_PROCESS, self._process.pid, wanted)

    def fork(self) -> socket.socket:
        """Have a worker forked, and return the connection to it."""
        ours, theirs = socket.socketpair()
        _OPEN.add(ours)
        with theirs:
            folder = os.path.abspath(tempfile.gettempdir())
            send(self._control, {"do": "fork", "temporary": folder}, files=[theirs.fileno()])
        return ours

    def kill(self, process: int) -> None:
        with suppress(OSError):
            send(self._control, {"do": "kill", "process": process})

    def end(self) -> None:
        """Let it go, and its workers with it."""
        self._control.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_START)


def _settings(facts: str = "/proc/cpuinfo") -> dict[str, str]:
    """Return what libraries of the zygote read, on the processor that this system names."""
    try:
        is_amd = "AuthenticAMD" in Path(facts).read_text(encoding="ascii", errors="replace")
    except OSError:
        is_amd = False
    slow = [name for name in _AVX512 if is_amd and name in _chosen_among()]
    return _SETTINGS | ({"NPY_DISABLE_CPU_FEATURES": " ".join(slow)} if slow else {})


def _chosen_among() -> set[str]:
    """Return the sets of instructions that this NumPy has code for beside the one that it was built for."""
    told = cast(Mapping[str, Any], np.show_config(mode="dicts") or {}).get("SIMD Extensions", {})
    return {*told.get("found", ()), *told.get("not found", ())} - {*told.get("baseline", ())}


def _paths() -> list[str]:
    """Return where modules are found here: the zygote reads no setting from an environment."""
    return [os.path.abspath(path) for path in sys.path]


_zygote: _Zygote | None = None
_guard = threading.Lock()
_niceness = 0  # of workers, beyond that of this process


def get_ready(*, niceness: int | None = None) -> None:
    """Start loading, so that the first question does not wait for it as long.

    With `niceness`, workers leave the processor to whoever else wants it, from now on: how busy they are is then felt
    less by a process that has answers to give at declared times.
    """
    global _niceness
    with _guard:
        _niceness = _niceness if niceness is None else niceness
        _living().step_back(_niceness)


def _living() -> _Zygote:
    global _zygote
    if _zygote is None or not _zygote.lives:
        _zygote = _Zygote()
        _zygote.step_back(_niceness)
    return _zygote


def _end() -> None:
    if _zygote is not None:
        _zygote.end()


def _forget() -> None:
    """Leave a forked child nothing of its parent's: it would keep workers alive that nobody asks."""
    global _zygote, _guard
    _zygote, _guard = None, threading.Lock()
    for connection in list(_OPEN):
        connection.close()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def start_worker() -> Worker:
    """Have a worker forked, and wait until it is there."""
    with _guard:
        zygote = _living()
        try:
            connection = zygote.fork()
        except OSError:
            raise _not_started() from None
    ends = Deadline.after(_START)

    def wait() -> None:
        if not readable(connection, ends.left):
            raise EOFError

    try:
        said = receive(connection, wait).said
    except (EOFError, OSError):
        connection.close()
        raise _not_started() from None
    return Worker(connection, int(said["process"]), zygote)


def _not_started() -> Refused:
    return Refused(
        "the process that reads tables cannot be started",
        reason="private tables are read in a process of its own, by the same Python and from the same libraries",
        way_out="check that this user may start processes and write to the folder for temporary files",
    )


@final
class Worker:
    """One worker; it answers one question at a time."""

    def __init__(self, connection: socket.socket, process: int, zygote: _Zygote) -> None:
        self.process = process
        self.given: set[str] = set()  # tables in memory that it has
        self._connection, self._zygote = connection, zygote

    @property
    def lives(self) -> bool:
        """Whether an idle worker is still there: it says nothing unasked."""
        return not readable(self._connection, 0)

    def ask(
        self,
        said: dict[str, Any],
        deadline: Deadline,
        *,
        files: Sequence[int] = (),
        progress: Progress | None = None,
    ) -> tuple[Any, Sequence[Block]]:
        """Ask, and return what is answered; whatever else happens is one constant error."""
        waiting = _Waiting(self._connection, deadline, progress)
        try:
            self._connection.settimeout(deadline.left + _GRACE)
            send(self._connection, said, files=files)
            self._connection.settimeout(None)
            answer = receive(self._connection, waiting)
        except (EOFError, OSError, ValueError, KeyError, TypeError):
            answer = Message({})
        if "answer" in answer.said:
            return answer.said["answer"], answer.blocks
        if answer.said.get("refused") == "InvalidParameter":
            raise InvalidParameter(answer.said["text"])
        if answer.said.get("refused") == "Refused":
            raise Refused(answer.said["text"])
        show_text(str(answer.said.get("shown", "")))
        raise AnswerFailed

    def leave(self) -> None:
        """Let an idle worker go: it ends when nobody is there to ask."""
        self._connection.close()

    def kill(self) -> None:
        """End it wherever it is."""
        self._zygote.kill(self.process)
        self._connection.close()


@final
class _Waiting:
    """Waits for an answer until shortly after the deadline, and tells how the time goes meanwhile."""

    def __init__(self, connection: socket.socket, deadline: Deadline, progress: Progress | None) -> None:
        self._connection, self._deadline, self._progress = connection, deadline, progress
        self._allowed = deadline.left
        self._last = Deadline(deadline.ends + _GRACE)

    def __call__(self) -> None:
        while not readable(self._connection, min(_BEAT, self._last.left)):
            self._tell()
            if not self._last.left:
                raise EOFError

    def _tell(self) -> None:
        """Tell how the time goes; if that fails, it is not the question that failed."""
        tell, self._progress = self._progress, None
        if tell is None:
            return
        with suppress(Exception):
            tell(self._allowed - self._deadline.left, self._allowed)
            self._progress = tell
        if self._progress is None:
            warnings.warn("on_progress raised an error and is not called again", RuntimeWarning, stacklevel=2)


_MEMORY = 3 << 30
_SETUP = 600.0  # Seconds for reading a schema or a public table.
_KEY = 32  # bytes; a secret has two keys


@final
class WorkerEngine:
    """Tables in this process and in files, read by workers. Any number of threads may ask at the same time.

    Every question that is under way has a worker, held to `memory` bytes; one worker is kept when none is. The rows of
    tables in memory are handed over once, in files without a name that all workers share and nobody can change.
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        memory: int = _MEMORY,
        threads: int | None = None,
        on_progress: SandboxProgress | None = None,
    ) -> None:
        refuse_without_locks("a private table in a session or a file")
        check_names(list(tables), what="tables")
        self._public = frozenset(name for name, table in tables.items() if isinstance(table, PublicTable))
        self._held: dict[str, HeldTable] = hold_all(tables)
        self._memory, self._threads = memory, threads or default_threads()
        self._progress = on_progress
        self._files = _Files()
        self._workers = _Idle()
        self._tidy = weakref.finalize(self, _close, self._files, self._workers)
        get_ready()
        self._columns = self._describe()
        self._opened = {
            name: OpenedTable(_Watched(held), name, public=name in self._public) for name, held in self._held.items()
        }
        for name, table in self._opened.items():
            self._begin(name, table)

    def columns(self, table: str) -> Mapping[str, Kind]:
        return self._columns[table]

    def infers_types(self, table: str) -> bool:
        return self._held[table].inferred

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        check_public(table, self._public)
        return dict(decoded(self._ask("public_columns", (table,), [table])))

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        check_public(table, self._public)
        return bool(self._ask("public_is_unique", (table, columns), [table]))

    def public_rows(self, table: str) -> int:
        check_public(table, self._public)
        return int(self._ask("public_rows", (table,), [table]))

    def run(self, stage: Stage, *, deadline: Deadline) -> ExactCounts:
        added = self._added([stage])
        if added is not None:
            return self._run_added(added, deadline)[0]
        streams = self._streams([stage])
        with self._asked("run", (stage,), list(self._held), deadline, secrets=_secrets([stage]), streams=streams) as (
            said,
            blocks,
        ):
            return read_tallied(said, blocks, stage)

    def run_all(self, stages: Sequence[Stage], *, deadline: Deadline) -> tuple[ExactCounts, ...]:
        about = tuple(stages)
        added = self._added(about)
        if added is not None:
            return self._run_added(added, deadline)
        streams = self._streams(about)
        with self._asked("run_all", about, list(self._held), deadline, secrets=_secrets(about), streams=streams) as (
            said,
            blocks,
        ):
            return tuple(read_tallied(one, blocks, stage) for one, stage in zip(said, about, strict=True))

    def _run_added(self, added: Sequence[ServerStage], deadline: Deadline) -> tuple[ExactCounts, ...]:
        """Have servers add up, and count what arrives."""
        about, streams = tuple(one.asked for one in added), {one.name: one.request for one in added}
        sums = {one.name: encoded(tuple(one.columns.items())) for one in added}
        with self._asked("run_all", about, [], deadline, streams=streams, sums=sums) as (said, blocks):
            found = [read_tallied(one, blocks, stage) for one, stage in zip(said, about, strict=True)]
        return tuple(one.counts(counted) for one, counted in zip(added, found, strict=True))

    def first_groups(self, stage: Stage, most: int, *, deadline: Deadline) -> pa.Table:
        """Return of every unit its first groups, in the order of a public key. It names units: it is private."""
        return self._table("first_groups", (stage, most), list(self._held), deadline, self._streams([stage]))

    def rows(self, table: str, columns: Sequence[str], numbers: Sequence[str], *, deadline: Deadline) -> pa.Table:
        """Return columns of every row as they are stored, texts of `numbers` as doubles or NULL. It is private."""
        streams = {table: ScanRequest(tuple(columns))} if isinstance(self._held[table], Streamed) else {}
        return self._table("rows", (table, tuple(columns), tuple(numbers)), [table], deadline, streams)

    def check_unchanged(self) -> None:
        """Refuse if a table is not what it was at the opening. Reads no row, and is public: ask before a charge."""
        found = self._changed(list(self._held))
        if found:
            raise changed(*([name for name in found if (name in self._public) is one] for one in (False, True)))

    def columns_now(self, table: str) -> Schemas:
        """Return the columns of a table at this moment, as every file has them. Reads no row."""
        held = self._held[table]
        if isinstance(held, Streamed):
            return held.columns_now(None, table)
        if isinstance(held, InMemory):
            types = frozenset(held.types.items())
            return frozenset([types]) if self._files.has(table) else held.columns_now(None, table)
        return (
            held.columns_now(None, table) if isinstance(held, Csv) else decoded(self._ask("columns_now", (table,), []))
        )

    def close(self) -> None:
        self._tidy()

    def _begin(self, name: str, table: OpenedTable) -> None:
        try:
            schemas = table.begin(self)
        except (AnswerFailed, OSError):
            schemas = 0
        if schemas != 1:
            raise InvalidParameter(
                f"the files of table {name!r} cannot be read, or differ in names or types of columns"
            )

    def _changed(self, tables: Sequence[str]) -> list[str]:
        return [table for table in tables if not self._opened[table].is_unchanged(self)]

    def _check(self, tables: Sequence[str]) -> None:
        """Look before and after every read, here too: a worker knows tables as they were when it was started.

        Who streams a table looks at its columns in the very state that is streamed.
        """
        if self._changed([table for table in tables if not isinstance(self._held[table], Streamed)]):
            raise AnswerFailed

    def _describe(self) -> dict[str, Mapping[str, Kind]]:
        """Return names and kinds of columns; a worker is asked only where a file must be opened for it."""
        known = {name: held.types for name, held in self._held.items()}
        if all(types is not None for types in known.values()):
            return {name: kinds_of(name, types or {}) for name, types in known.items()}
        worker, columns = self._start()
        self._workers.keep(worker)
        return columns

    def _streams(self, stages: Sequence[Stage]) -> dict[str, ScanRequest]:
        """Say what is streamed for some stages."""
        held = {name: table.columns for name, table in self._held.items() if isinstance(table, Streamed)}
        return requests_of(stages, held) if held else {}

    def _added(self, stages: Sequence[Stage]) -> tuple[ServerStage, ...] | None:
        """Say what servers add up for some stages; None where rows are streamed, or are here."""
        held = {
            name: table.columns
            for name, table in self._held.items()
            if isinstance(table, Streamed) and table.source is not None and adds_up(table.source)
        }
        return added_by_servers(stages, held) if held else None

    def _table(
        self,
        what: str,
        about: tuple[Any, ...],
        tables: list[str],
        deadline: Deadline,
        streams: Mapping[str, ScanRequest],
    ) -> pa.Table:
        out = nameless_file()
        try:
            with self._asked(what, about, tables, deadline, streams=streams, out=out):
                return read_table(out)
        finally:
            os.close(out)

    def _ask(self, what: str, about: tuple[Any, ...], tables: list[str]) -> Any:
        with self._asked(what, about, tables, Deadline.after(_SETUP)) as (said, _):
            return said

    @contextmanager
    def _asked(
        self,
        what: str,
        about: tuple[Any, ...],
        tables: list[str],
        deadline: Deadline,
        *,
        secrets: str = "",
        streams: Mapping[str, ScanRequest | SumRequest] | None = None,
        sums: Mapping[str, Any] | None = None,
        out: int | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Have a worker do something. One that failed, or that is nearly full, is not asked again."""
        self._check(tables)
        worker, deadline = self._take(deadline)
        feed = StreamFeed(self._held, streams or {}, deadline)
        try:
            new = {name: file for name, file in self._files.of(self._held, tables) if name not in worker.given}
            said = {
                "do": what,
                "about": encoded(about),
                "streams": list(feed.files),
                "sums": dict(sums or {}),
                "given": list(new),
                "secrets": secrets,
                "seconds": deadline.left,
            }
            files = [*feed.files.values(), *new.values(), *([] if out is None else [out])]
            answer, blocks = worker.ask(said, deadline, files=files, progress=self._progress)
            worker.given.update(new)
            feed.finish()
            yield answer["done"], blocks
        except BaseException:
            worker.kill()
            raise
        finally:
            feed.stop()
        if answer["full"]:
            worker.kill()
        else:
            self._workers.keep(worker)
        self._check(tables)

    def _take(self, deadline: Deadline) -> tuple[Worker, Deadline]:
        """Take an idle worker, or start one: what that takes is no part of a question's time."""
        worker = self._workers.take()
        if worker is not None:
            return worker, deadline
        left = deadline.left
        worker, columns = self._start()
        if columns != self._columns:
            worker.kill()
            raise AnswerFailed  # Another schema than was declared on: nothing is read from it.
        return worker, Deadline.after(left)

    def _start(self) -> tuple[Worker, dict[str, Mapping[str, Kind]]]:
        worker = start_worker()
        try:
            said = {
                "memory": self._memory,
                "threads": self._threads,
                "public": sorted(self._public),
                "debug": is_on(),
                "tables": {name: _told(held) for name, held in self._held.items()},
            }
            columns, _ = worker.ask(said, Deadline.after(_SETUP))
        except BaseException:
            worker.kill()
            raise
        return worker, {table: {name: Kind(kind) for name, kind in kinds.items()} for table, kinds in columns.items()}


def _told(held: HeldTable) -> Any:
    """Say what a worker knows of a table before it reads it."""
    if isinstance(held, InMemory):
        return dict(held.types)
    return encoded(tuple(held.columns.items()) if isinstance(held, Streamed) else held)


def _secrets(stages: Sequence[Stage]) -> str:
    """Draw the keys of all secrets that some stages need, in the order in which they are needed."""
    return "".join(read(_KEY).hex() for _ in range(2 * keys_needed(stages)))


@final
@dataclass(frozen=True, slots=True)
class _Watched:
    """A table whose columns are asked of an engine, which stands in the place of a connection."""

    held: HeldTable

    @property
    def paths(self) -> tuple[str, ...]:
        return self.held.paths

    def columns_now(self, connection: WorkerEngine, name: str) -> Schemas:
        return connection.columns_now(name)


@final
class _Idle:
    """Workers that wait for a question: one is kept, others are let go."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._worker: Worker | None = None
        self._closed = False

    def take(self) -> Worker | None:
        if os.getpid() != self._process:  # A forked child has no part in its parent's.
            self._process, self._lock, self._worker = os.getpid(), threading.Lock(), None
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and not worker.lives:
            worker.kill()
            return None
        return worker

    def keep(self, worker: Worker) -> None:
        with self._lock:
            if self._worker is None and not self._closed:
                self._worker = worker
                return
        worker.leave()

    def close(self) -> None:
        with self._lock:
            worker, self._worker, self._closed = self._worker, None, True
        if worker is not None and os.getpid() == self._process:
            worker.leave()


@final
class _Files:
    """Tables in memory as Arrow in files without a name, written when they are read for the first time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, int] = {}

    def of(self, held: Mapping[str, HeldTable], names: Sequence[str]) -> Iterator[tuple[str, int]]:
        for name in names:
            table = held[name]
            if isinstance(table, InMemory):
                yield name, self._file(name, table)

    def _file(self, name: str, table: InMemory) -> int:
        with self._lock:
            if name not in self._open:
                file = nameless_file()
                try:
                    write_table(table.converted(), file)
                except BaseException:
                    os.close(file)
                    raise
                self._open[name] = file
            return self._open[name]

    def has(self, name: str) -> bool:
        return name in self._open

    def close(self) -> None:
        with self._lock:
            while self._open:
                os.close(self._open.popitem()[1])


def _close(files: _Files, workers: _Idle) -> None:
    workers.close()
    files.close()
