"""A caged DuckDB: in memory, no files but those that were named, no extensions, settings locked, limits on resources.

The first wall is that no text but our own reaches the engine; the last one is the process in which it runs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

from discreet.custodian_debug import show_hidden
from discreet.errors import AnswerFailed
from discreet.query.engine import Deadline
from discreet.query.engines.scratch import Scratch
from discreet.query.engines.writing import path_text

__all__ = ["Progress", "Sandbox", "default_threads", "watched"]

T = TypeVar("T")

Progress = Callable[[float, float], None]  # seconds gone, seconds allowed
_BEAT = 0.1  # seconds
_SCRATCH = "20GB"


@final
class Sandbox:
    """Connections that can read the files of some tables and do nothing else."""

    def __init__(self, paths: Sequence[str], *, memory: int, threads: int) -> None:
        self._paths, self._memory, self._threads = list(paths), memory, threads
        self._scratch = Scratch()
        self._lock = threading.Lock()
        self._root: Any = None

    def connection(self) -> Any:
        """Open a connection of its own for one task in one thread."""
        with self._lock:
            if self._root is None:
                self._root = self._open()
            return self._root.cursor()

    def renew(self) -> None:
        """Start afresh after a failure from which an engine does not recover."""
        with self._lock:
            root, self._root = self._root, None
        if root is not None:
            root.close()

    def close(self) -> None:
        self.renew()
        self._scratch.remove()

    def _open(self) -> Any:
        import duckdb

        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": self._threads,
            "memory_limit": f"{self._memory}B",
            "temp_directory": self._scratch.folder,
            "max_temp_directory_size": _SCRATCH,
            "python_enable_replacements": False,
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "preserve_insertion_order": False,
            "default_collation": "",
            "error_on_division_by_zero": False,
            "ieee_floating_point_ops": True,
        }
        root = duckdb.connect(":memory:", config=config)
        _encrypt_scratch(root)
        # GLOBAL: what is set for one connection is not set for those that are opened beside it.
        root.execute("SET GLOBAL TimeZone = 'UTC'")
        root.execute("SET GLOBAL Calendar = 'gregorian'")
        root.execute(f"SET allowed_paths = [{', '.join(path_text(path) for path in self._paths)}]")
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")
        return root


def _encrypt_scratch(root: Any) -> None:
    """Keep raw values out of scratch files: their key is in memory only, and ends with the process.

    DuckDB ships a cipher without a secure random generator, and calls it unsafe for this reason: it is no protection
    from whoever breaks such keys, so the folder is closed to others, and swept. Where it is not to be had, nothing is
    written to disk at all.
    """
    import duckdb

    try:
        root.execute("SET force_mbedtls_unsafe = true")
        root.execute("SET temp_file_encryption = true")
    except duckdb.Error:
        root.execute("SET temp_directory = ''")


def watched(work: Callable[[], T], connection: Any, deadline: Deadline, progress: Progress | None = None) -> T:
    """Do some work, stop what a connection does at the deadline, and turn whatever fails into one constant error."""
    import duckdb
    import pyarrow as pa

    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(connection, deadline, done, progress), daemon=True)
    watcher.start()
    try:
        return work()
    except (duckdb.Error, pa.ArrowException, OSError, MemoryError, ArithmeticError, ValueError, RuntimeError) as error:
        show_hidden(error)  # It may carry values, and must not even be the context of ours, which is raised below.
    finally:
        done.set()
        watcher.join()
    raise AnswerFailed


def _watch(connection: Any, deadline: Deadline, done: threading.Event, progress: Progress | None) -> None:
    allowed = deadline.left
    while not done.wait(min(_BEAT, max(deadline.left, 0.001))):
        if progress is not None:
            progress(allowed - deadline.left, allowed)
        if not deadline.left:
            connection.interrupt()  # Again and again: one between two statements would be lost.


def default_threads() -> int:
    """Return how many processors this process may use, up to 8."""
    return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
