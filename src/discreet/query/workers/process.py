"""Workers as the process that asks sees them: it has them forked, talks to them, and has them killed."""

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, final

from discreet.custodian_debug import show_text
from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.query.engine import Deadline
from discreet.query.workers.messages import Block, Message, readable, receive, send

__all__ = ["Progress", "Worker", "get_ready", "start_worker"]

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
                    json.dumps([_paths(), _SETTINGS]),
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


def _paths() -> list[str]:
    """Return where modules are found here: the zygote reads no setting from an environment."""
    return [os.path.abspath(path) for path in sys.path]


_zygote: _Zygote | None = None
_guard = threading.Lock()


def get_ready() -> None:
    """Start loading, so that the first question does not wait for it as long."""
    with _guard:
        _living()


def _living() -> _Zygote:
    global _zygote
    if _zygote is None or not _zygote.lives:
        _zygote = _Zygote()
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
