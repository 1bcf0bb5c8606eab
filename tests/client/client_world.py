"""A real server on loopback that can be started again, a proxy that cuts connections, and servers that lie."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import uvicorn
from server_world import World, running

from discreet.client import RemoteDataset, RemoteServer, connect

NEVER = 1 << 40  # bytes after which nothing is cut


class Listening:
    """A server in threads of this process; `restart` ends it and starts it again on the same port."""

    def __init__(self, folder: Path, *, tls: tuple[Path, Path] | None = None, **more: Any) -> None:
        self.folder, self.port, self._more, self._tls = folder, 0, more, tls
        self._opened = ExitStack()

    def start(self) -> None:
        self.world: World = self._opened.enter_context(running(self.folder, names=("one",), **self._more))
        bound = socket.create_server(("127.0.0.1", self.port))
        self.port = bound.getsockname()[1]
        files = {} if self._tls is None else {"ssl_certfile": str(self._tls[0]), "ssl_keyfile": str(self._tls[1])}
        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off", "ws": "none", **files}
        web = uvicorn.Server(
            uvicorn.Config(self.world.app, timeout_graceful_shutdown=1, timeout_keep_alive=300, **quiet)
        )
        thread = threading.Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()

        def stop() -> None:
            web.should_exit = True
            thread.join(60)
            assert not thread.is_alive()

        self._opened.callback(stop)

    def stop(self) -> None:
        self._opened.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, role: str = "analyst", *, port: int | None = None, **more: Any) -> RemoteServer:
        said = {"patience": 100.0} | more
        return connect(f"http://127.0.0.1:{port or self.port}", token=self.world.tokens[role], **said)

    def data(self, role: str = "analyst", **more: Any) -> RemoteDataset:
        return self.connect(role, **more).dataset("one")

    @property
    def charges(self) -> int:
        return int(self.world.server.shelf["one"].session.spent.charges)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class TcpServer:
    """Answers connections on loopback, each in a thread, until it is closed."""

    def __init__(self) -> None:
        self._bound = socket.create_server(("127.0.0.1", 0))
        self.port = self._bound.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                found, _ = self._bound.accept()
                self.connections += 1
                threading.Thread(target=self._safely, args=(found,), daemon=True).start()

    def _safely(self, found: socket.socket) -> None:
        with suppress(OSError), found:
            found.settimeout(30)
            self.serve(found)

    def serve(self, found: socket.socket) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bound.close()


class CuttingProxy(TcpServer):
    """Passes bytes on. Each request takes the next of `cuts`: after so many bytes of its answer the line is dead.

    -1 cuts before the request reaches the server. `on_cut` is called while the line is dead.
    """

    def __init__(self, target: int, *, on_cut: Callable[[], None] = lambda: None) -> None:
        self.target, self.cuts, self.on_cut, self.made = target, deque[int](), on_cut, 0
        super().__init__()

    def serve(self, found: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self.target), timeout=30) as there:
            left = [NEVER]
            back = threading.Thread(target=self._back, args=(there, found, left), daemon=True)
            back.start()
            while said := found.recv(65536):
                if said[:5] in (b"GET /", b"POST ") and self.cuts:
                    left[0] = self.cuts.popleft()
                if left[0] < 0:
                    self._cut(found, there)
                    return
                there.sendall(said)

    def _back(self, there: socket.socket, found: socket.socket, left: list[int]) -> None:
        with suppress(OSError):
            while said := there.recv(65536):
                allowed = left[0]
                if ends := allowed < NEVER and len(said) >= allowed:
                    left[0] = NEVER  # Before the bytes go: who has them may ask again, and take the next cut.
                elif allowed < NEVER:
                    left[0] = allowed - len(said)
                found.sendall(said[:allowed])
                if ends:
                    self._cut(found, there)
                    return
        with suppress(OSError):
            found.shutdown(socket.SHUT_RDWR)  # The server hung up.

    def _cut(self, *lines: socket.socket) -> None:
        self.made += 1
        self.on_cut()
        for line in lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


class Liar(TcpServer):
    """Answers every request with the same bytes, or with what a function of the request makes of it."""

    def __init__(self, answer: bytes | Callable[[bytes], bytes], *, forever: bytes = b"") -> None:
        self.answer, self.forever, self.heard = answer, forever, b""
        super().__init__()

    def serve(self, found: socket.socket) -> None:
        said = found.recv(65536)
        self.heard += said
        found.sendall(self.answer if isinstance(self.answer, bytes) else self.answer(said))
        while self.forever:
            found.sendall(self.forever)


def http(body: bytes | str, *, status: str = "200 OK", more: str = "") -> bytes:
    """An answer as it travels."""
    content = body if isinstance(body, bytes) else body.encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n{more}"
    return f"{head}connection: close\r\n\r\n".encode() + content
