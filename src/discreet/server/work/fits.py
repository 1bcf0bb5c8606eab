"""Models are fitted to rows in a process of their own: started here, given the rows, and killed when it is late."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import AnswerFailed
from discreet.query.workers.messages import Message, readable, receive, send

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["fit_elsewhere"]

_SETTINGS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
_SCRIPT = (
    "import json, os, sys; sys.path[:], settings = json.loads(sys.argv[1]); os.environ.update(settings); "
    "from discreet.server.work.fit_child import main; main(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))"
)


def fit_elsewhere(
    said: Mapping[str, Any], rows: pa.Table, *, seconds: float, memory: int
) -> tuple[dict[str, Any], list[bytes]]:
    """Fit what is said to rows in a process that can do nothing else; whatever goes wrong there is one constant error.

    It has `memory` bytes beside what its libraries take, and `seconds` from now on. Then it is killed.
    """
    import pyarrow as pa

    until = time.monotonic() + seconds
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = _started(theirs)
        try:
            send(ours, {**said, "memory": memory})
            _received(ours, until)  # It has given up everything else: only now it sees rows.
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as stream:
                stream.write_table(rows)
            ours.settimeout(max(0.1, until - time.monotonic()))
            send(ours, {}, [sink.getvalue()])
            answer = _received(ours, until)
            return answer.said["answer"], [bytes(block) for block in answer.blocks]
        except (OSError, EOFError, KeyError):
            raise AnswerFailed from None
        finally:
            process.kill()
            process.wait()


def _received(connection: socket.socket, until: float) -> Message:
    def wait() -> None:
        if not readable(connection, until - time.monotonic()):
            raise EOFError

    return receive(connection, wait)


def _started(theirs: socket.socket) -> subprocess.Popen[bytes]:
    paths = [os.path.abspath(path) for path in sys.path]
    folder = os.path.abspath(tempfile.gettempdir())
    return subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-X",
            "utf8",
            "-c",
            _SCRIPT,
            json.dumps([paths, _SETTINGS]),
            str(theirs.fileno()),
            folder,
            str(os.getpid()),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        pass_fds=(theirs.fileno(),),
        start_new_session=True,
    )
