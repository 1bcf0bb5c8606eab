"""Names, addresses and files with which servers were made to read or fetch what is not theirs to give; and canaries.

`places` lists texts that aim at a canary file and a canary server on loopback; `files` lists uploads. `Canaries` sees
whether the file was opened, by any process, or the server was connected to. Whatever takes a name, an address or a file
is tried with all of them: `test_server_places.py` does for all endpoints and pages.
"""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import socket
import struct
import zipfile
from pathlib import Path
from threading import Thread
from urllib.parse import quote

SECRET = "canary-file-2b91d7"
_IN_ACCESS, _IN_OPEN = 0x1, 0x20
_LAST = b"the last of all"


def places(path: Path, port: int) -> list[str]:
    """Texts that mean the canary file, one that everybody has, or the canary server, if something follows them."""
    file, up = str(path), "../" * 12
    below = file.lstrip("/")
    hosts = ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "127.1", "2130706433", "0x7f000001", "017700000001",
             "127.0.0.1.", "[::ffff:127.0.0.1]", "user@127.0.0.1", "127.0.0.1#.example.com"]  # fmt: skip
    schemes = ["http", "https", "ftp", "gopher", "dict", "ldap", "s3", "gs", "hf", "postgresql", "jdbc:postgresql",
               "sqlite", "md", "motherduck"]  # fmt: skip
    found = [f"http://{host}:{port}/x.csv" for host in hosts]
    found += [f"{scheme}://127.0.0.1:{port}/x" for scheme in schemes]
    found += [file, up + below, up.replace("/", "\\") + below, quote(up + below, safe=""), quote(up, safe="") + below]
    found += [up.replace("../", "..%2f") + below, up.replace("../", "%2e%2e/") + below]
    found += [up.replace("../", "..%252f") + below, up.replace("../", "..%c0%af") + below]
    found += [up.replace("../", "....//") + below, up.replace("../", "..;/") + below, "one/" + up + below]
    found += [f"one%00{file}", f"{file}%00.csv", f"{file}\x00.csv", f"one/../../{below}", f"/proc/self/root{file}"]
    found += [
        f"file://{file}",
        f"file:{file}",
        f"file://localhost{file}",
        f"FILE:///{below}",
        f"file:///proc/self/cwd/{below}",
    ]
    found += [
        f"\\\\127.0.0.1@{port}\\share\\x",
        f"//127.0.0.1:{port}/x",
        f"\\\\?\\{file}",
        "\\\\.\\pipe\\x",
        "C:\\boot.ini",
    ]
    found += [
        "/etc/passwd",
        up + "etc/passwd",
        "/proc/self/environ",
        "/proc/self/mem",
        "/dev/stdin",
        "~/.ssh/id_rsa",
        "$HOME/x",
    ]
    found += [
        f"`cat {file}`",
        f"$(cat {file})",
        f"|cat {file}",
        f"; COPY t TO '{file}'",
        f"{{{{ open('{file}').read() }}}}",
    ]
    found += [
        f"${{jndi:ldap://127.0.0.1:{port}/x}}",
        f"<!ENTITY x SYSTEM 'file://{file}'>",
        f"!!python/object/apply:open ['{file}']",
    ]
    found += [
        f"read_csv('{file}')",
        f"SELECT COUNT(*) AS n FROM '{file}'",
        f"SELECT COUNT(*) AS n FROM read_text('{file}')",
    ]
    found += [
        f"SELECT COUNT(*) AS n FROM 'http://127.0.0.1:{port}/x.parquet'",
        f"ATTACH 'http://127.0.0.1:{port}/x' AS x",
    ]
    found += [
        "data:text/csv;base64,eA==",
        f"zip://{file}",
        f"gzip:{file}",
        f"glob('{path.parent}/*')",
        "con",
        "nul.csv",
        ".",
    ]
    found += [
        "..",
        "*",
        "%2e",
        "one\r\nx-injected: 1",
        "one\u202e",
        "оne",
        "ONE",
        " one",
        "one/",
        "./one",
        "one?x",
        "one#x",
    ]
    return found


class _Runs:
    """What a pickle runs that is loaded."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self._command,)


def files(path: Path) -> dict[str, bytes]:
    """Uploads: what runs, what grows, what leads elsewhere. Whatever runs one leaves a file `path`.ran."""
    ran = f"touch {path}.ran"
    bomb, linked = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", b"0" * (20 << 20))
    with zipfile.ZipFile(linked, "w") as archive:
        link = zipfile.ZipInfo("x.csv")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(path))
        archive.writestr("../../../../../../tmp/climbed.csv", b"x")
    return {
        "pickle": pickle.dumps(_Runs(ran)),
        "old pickle": pickle.dumps(_Runs(ran), protocol=0),
        "yaml": f"!!python/object/apply:os.system ['{ran}']".encode(),
        "zip bomb": bomb.getvalue(),
        "zip of a link": linked.getvalue(),
        "parquet bomb": b"PAR1" + b"\x15" * 64 + struct.pack("<I", 2**31 - 1) + b"PAR1",
        "arrow bomb": b"ARROW1\0\0" + struct.pack("<iI", -1, 2**31 - 1) + b"\0" * 64,
        "json of depth": b"[" * 30_000,
        "csv of one cell": b'x\n"' + b"a" * 60_000,
    }


class Canaries:
    """A file that nobody has to read, and a server that nobody has to ask."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "canary.csv"
        self.path.write_text(SECRET)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watch = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._libc.inotify_add_watch(self._watch, str(self.path).encode(), _IN_ACCESS | _IN_OPEN)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._heard: list[bytes] = []
        Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                self._heard.append(connection.recv(100))

    @property
    def connected(self) -> list[bytes]:
        """What was sent to the server so far, by whoever connected."""
        with socket.create_connection(("127.0.0.1", self.port)) as last:  # It is heard after all others.
            last.sendall(_LAST)
            last.shutdown(socket.SHUT_WR)
            last.recv(1)
        return [said for said in self._heard if said != _LAST]

    @property
    def opened(self) -> int:
        """How often the file was opened or read since this was asked last, by any process."""
        try:
            return len(os.read(self._watch, 1 << 16)) // 16
        except BlockingIOError:
            return 0

    @property
    def places(self) -> list[str]:
        return places(self.path, self.port)

    @property
    def ran(self) -> bool:
        """Whether one of the files was run."""
        return Path(f"{self.path}.ran").exists()

    def close(self) -> None:
        self._listening.close()
        os.close(self._watch)
