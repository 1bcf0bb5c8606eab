"""A real PostgreSQL: one cluster for a whole run of pytest, also with several workers, and a database for each file.

It is made by the first test that asks for it and ends with the run, however that ends: a process that watches the run
stops the server and deletes its files. The server runs as a user who is not root, which initdb refuses. Commits are
flushed (`fsync` is on), for what a ledger promises is tested here.

    def test_a(postgres_database: str) -> None:  # postgresql://postgres@127.0.0.1:…/test_…
        ...

A test that kills or restarts the server makes one of its own: `with own_cluster() as cluster: cluster.restart()`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from system_parts import POSTGRES

from discreet.file_locks import lock_file, unlock_file

# Small, but with room for many clients; checkpoints and the collector of statistics do not disturb. Not fsync = off.
SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
    "lc_messages": "C",
}
# Whoever is called with_password or is a member of it must know one, if they do not come through the socket.
ACCESS = """
local all all trust
host all with_password 127.0.0.1/32 scram-sha-256
host all +with_password 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""
SUPERUSER = "postgres"


@dataclass(frozen=True)
class Cluster:
    """A server with its files in `folder`, which also has its socket."""

    folder: Path
    port: int

    @classmethod
    def make(cls, folder: Path) -> Cluster:
        """Make and start one in an empty folder; the folder becomes its user's."""
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            made = cls(folder, free.getsockname()[1])
        if os.getuid() == 0:
            os.chown(folder, _user().pw_uid, _user().pw_gid)
        folder.chmod(0o700)
        made._run("initdb", "-D", made._data, "-U", SUPERUSER, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-N")
        lines = [f"{name} = '{value}'" for name, value in SETTINGS.items()]
        lines += [f"port = {made.port}", f"unix_socket_directories = '{folder}'"]
        with (folder / "data" / "postgresql.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")
        (folder / "data" / "pg_hba.conf").write_text(ACCESS)
        made.start()
        return made

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    @property
    def log(self) -> str:
        """What the server has written."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "start", "-w", "-t", "60", "-D", self._data, "-l", str(self.folder / "log"), "-s")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast`, or `immediate` as if the power had failed."""
        self._run("pg_ctl", "stop", "-w", "-t", "60", "-D", self._data, "-m", mode, "-s")

    def restart(self, mode: str = "immediate") -> None:
        """Stop it and start it again; `immediate` makes it recover from its log."""
        self.stop(mode)
        self.start()

    def _run(self, program: str, *words: str) -> None:
        assert POSTGRES is not None
        as_user: dict[str, Any] = {}
        if os.getuid() == 0:
            as_user = {"user": _user().pw_uid, "group": _user().pw_gid, "extra_groups": []}
        # The server keeps what it inherits open, so output goes to a file and not into a pipe that never ends.
        with (self.folder / "made").open("ab") as said:
            done = subprocess.run(
                [str(POSTGRES / program), *words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd="/",
                **as_user,
            )
        assert done.returncode == 0, f"{program} failed: {(self.folder / 'made').read_text(errors='replace')[-2000:]}"

    def dsn(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """Name a database of it, over the loopback."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser and return its rows, if it has any."""
        import psycopg

        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            found = connection.execute(statement)  # type: ignore[arg-type, unused-ignore]
            return found.fetchall() if found.description else []

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a database, and drop it in the end."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            yield self.dsn(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _user() -> pwd.struct_passwd:
    """Say who runs the server where tests are run by root."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise LookupError("there is no user postgres or nobody to run the server")


def _short_folder() -> Path:
    """Return the folder for sockets: their paths are short, and the user of the server must reach it."""
    return Path(os.environ.get("DISCREET_POSTGRES_FOLDER", "/tmp"))


def _run_process() -> int:
    """Return the process that lasts as long as the run: workers of pytest-xdist are its children."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def shared_cluster() -> Cluster:
    """Return the cluster of this run; the first who asks makes it, others wait for that."""
    folder = _short_folder() / f"discreet-postgres-{_run_process()}"
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        lock_file(lock)
        known = os.pread(lock, 64, 0).decode().split()
        if known and int(known[0]) == _run_process() and _runs(int(known[2])):
            return Cluster(folder, int(known[1]))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(0o700)
        made = Cluster.make(folder)
        watcher = subprocess.Popen(
            [sys.executable, __file__, str(_run_process()), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        )
        watcher.returncode = 0  # It outlives this process, which is not to complain of that.
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{_run_process()} {made.port} {watcher.pid}".encode(), 0)
        return made
    finally:
        unlock_file(lock)
        os.close(lock)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _watch(run: int, folder: Path) -> None:
    """Wait for the end of a run, then stop its server and delete everything."""
    while _runs(run):
        time.sleep(0.2)
    with suppress(AssertionError):
        Cluster(folder, 0).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)
    Path(f"{folder}.lock").unlink(missing_ok=True)


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """Make a cluster that a test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-", dir=_short_folder()))
    try:
        cluster = Cluster.make(folder)
        yield cluster
        cluster.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_cluster() -> Cluster:
    """The server of this run."""
    if POSTGRES is None:
        pytest.skip("POSTGRESQL IS MISSING: nothing was tested on a server")
    return shared_cluster()


@pytest.fixture(scope="module")
def postgres_database(postgres_cluster: Cluster) -> Iterator[str]:
    """The address of a database that only the tests of one file use."""
    with postgres_cluster.database() as dsn:
        yield dsn


if __name__ == "__main__":
    _watch(int(sys.argv[1]), Path(sys.argv[2]))
