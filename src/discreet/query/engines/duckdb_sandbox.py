"""A sandboxed DuckDB: no files but those that were named, no extensions, settings locked, scratch files encrypted."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, final

from discreet.custodian_debug import show_hidden
from discreet.errors import AnswerFailed
from discreet.file_locks import CLOSE_ON_EXEC, NO_FOLLOW, control, try_to_lock
from discreet.query.engine import Deadline
from discreet.query.engines.sql_writer import path_text

__all__ = ["Progress", "Sandbox", "Scratch", "default_threads", "sweep", "watched"]

# --- cage ---
# A caged DuckDB: in memory, no files but those that were named, no extensions, settings locked, limits on resources.
#
# The first wall is that no text but our own reaches the engine; the last one is the process in which it runs.


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


# --- scratch ---
# Scratch folders of the engine: for nobody else, encrypted by the engine, and swept if their process died.
#
# A folder is in use as long as somebody holds the lock of the file in it. The kernel lets go of that lock whenever a
# process ends, however it ends, and no number of a process is looked at, which may have been given to another since.


_PREFIX = "discreet-scratch-"
_MAKING = ".discreet-making-"  # While it has no lock yet, it is called so, and nobody sweeps it.
_LOCK = ".discreet-in-use"
# The default access list of a folder: whatever a library says, files in it are for their owner only (0600).
_OWNER, _GROUP, _OTHERS, _NOBODY = 0x01, 0x04, 0x20, 0xFFFFFFFF
_ACCESS = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", who, allowed, _NOBODY) for who, allowed in ((_OWNER, 7), (_GROUP, 0), (_OTHERS, 0))
)


@final
class Scratch:
    """A folder for the files of one engine, removed with it, or by the next one if its process was killed."""

    def __init__(self) -> None:
        sweep(Path(tempfile.gettempdir()))
        making = Path(tempfile.mkdtemp(prefix=_MAKING))  # 0700
        with suppress(OSError, AttributeError):  # Not every file system has such lists; the folder is closed anyway.
            os.setxattr(making, "system.posix_acl_default", _ACCESS)
        lock = _locked(making / _LOCK, create=True)
        self.folder = str(making.with_name(_PREFIX + making.name.removeprefix(_MAKING)))
        os.rename(making, self.folder)
        self.remove = weakref.finalize(self, _remove, self.folder, lock, os.getpid())


def _remove(folder: str, lock: int | None, process: int) -> None:
    """Remove scratch files; a forked child leaves those of its parent alone."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(place: Path) -> None:
    """Remove what processes of this user left behind that are no more."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if not folder.is_symlink() and hasattr(os, "getuid") and found.st_uid == os.getuid():
                lock = _locked(folder / _LOCK, create=False)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _locked(file: Path, *, create: bool) -> int | None:
    """Take the lock of a folder; None if it is taken, or if there is none to take."""
    if control is None:  # Nobody sweeps where there are no locks.
        return None
    made = os.O_CREAT | os.O_EXCL if create else 0
    descriptor = os.open(file, os.O_RDWR | NO_FOLLOW | CLOSE_ON_EXEC | made, 0o600)
    try:
        try_to_lock(descriptor)
    except OSError:
        os.close(descriptor)
        if create:  # A file system without locks: then nobody may take this folder for left behind.
            file.unlink()
        return None
    return descriptor
