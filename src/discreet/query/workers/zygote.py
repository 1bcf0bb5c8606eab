"""A process that has loaded what workers need, and forks them: that takes milliseconds, and loading a second.

It is started once for a process that asks. It has one thread, an empty environment, and no file but its end of a
connection; at the end of that connection it ends its workers and goes. Scratch files of a worker that is gone are
swept at once, whatever ended it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path

from discreet.query.engines.duckdb_sandbox import sweep
from discreet.query.workers.lockdown import forget_everything
from discreet.query.workers.messages import Message, receive
from discreet.query.workers.serving import serve

__all__ = ["main"]

_LOOK = 5.0  # Seconds, after which to look whether the one that asks is still there.


def main(connection: int) -> None:
    """Fork workers until nobody asks any more."""
    asker = os.getppid()
    forget_everything(connection)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=connection)
    nursery = _Nursery(control)
    try:
        while os.getppid() == asker:
            nursery.tidy()
            if nursery.waited(_LOOK):
                nursery.obey(receive(control))
    except (EOFError, OSError):
        pass
    nursery.end()


class _Nursery:
    """The workers that live, by their process, with the folder that their scratch files are in."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._folders: dict[int, str] = {}
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        self._woken = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)

    def waited(self, seconds: float) -> bool:
        """Wait until something is asked, a worker is gone, or some time is over; tell whether it is the first."""
        ready, *_ = select.select([self._control, self._wake], [], [], seconds)
        if self._wake in ready:
            with suppress(BlockingIOError):
                self._wake.recv(4096)
        return self._control in ready

    def obey(self, message: Message) -> None:
        match message.said:
            case {"do": "fork", "temporary": str(folder)}:
                (connection,) = message.files
                try:
                    self._fork(connection, folder)
                finally:
                    os.close(connection)
            case {"do": "kill", "process": int(process)} if process in self._folders:
                os.kill(process, signal.SIGKILL)

    def _fork(self, connection: int, folder: str) -> None:
        zygote = os.getpid()
        process = os.fork()
        if process:
            self._folders[process] = folder
            return
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(connection, folder, zygote)
        finally:
            os._exit(0)

    def tidy(self) -> None:
        """Clear up behind workers that are gone."""
        for process in list(self._folders):
            if os.waitpid(process, os.WNOHANG)[0]:
                sweep(Path(self._folders.pop(process)))

    def end(self) -> None:
        for process in list(self._folders):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            sweep(Path(self._folders.pop(process)))
