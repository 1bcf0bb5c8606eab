"""A real Spark for tests: one session at a time, on two cores of this process or on a cluster of processes.

A process has one Spark. The scheduler in `conftest` gives every test with "spark" in its name to one process, and a
session lasts until a file asks for another kind: so a whole run of pytest starts one JVM, and one local session.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
SAFE = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
STARTED = 120  # Seconds that a process of a cluster may take to start on a busy machine.


class SparkSessions:
    """The one session of this process: another kind of it is started when the one before was stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._kind = folder, None
        self._session: Any = None

    def on(self, master: str, settings: Mapping[str, str]) -> Any:
        """Return the session of this kind, which may be running."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        kind: Any = (master, *sorted(settings.items()))
        if self._kind != kind:
            self.stop()
            os.environ["PYSPARK_PYTHON"] = sys.executable
            os.environ["PYTHONPATH"] = paths()
            SparkContext._ensure_initialized()  # The JVM itself gets no setting, which the next session would have too.
            builder = SparkSession.builder.master(master).config("spark.eventLog.dir", self._folder.as_uri())
            for name, value in {**SETTINGS, **settings}.items():
                builder = builder.config(name, value)
            self._session, self._kind = builder.getOrCreate(), kind
        return self._session

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
        self._session = self._kind = None


def paths() -> str:
    """Return where executors find what tests import."""
    return os.pathsep.join(path for path in sys.path if path)


@pytest.fixture(scope="session")
def spark_sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSessions]:
    sessions = SparkSessions(tmp_path_factory.mktemp("events"))
    yield sessions
    sessions.stop()


@pytest.fixture(scope="module")
def spark(spark_sessions: SparkSessions) -> Any:
    return spark_sessions.on("local[2]", {})


# --- a cluster ---


@contextmanager
def standalone(folder: Path, settings: Mapping[str, str], *, workers: int) -> Iterator[str]:
    """Run a standalone master and workers with one core each, processes on loopback; give the master's address.

    Workers have addresses of their own: a task that lags is run a second time only on another host.
    """
    options = " ".join(f"-D{name}={value}" for name, value in settings.items())
    with ExitStack() as stack:
        said = r"at (spark://127.0.0.1:\d+)"
        master = stack.enter_context(_running(folder / "master", "master.Master", "127.0.0.1", [], said, options))
        for number in range(1, workers + 1):
            place = folder / f"worker-{number}"
            words = ["--cores", "1", "--memory", "1g", "--work-dir", str(place / "work"), master]
            said = r"(registered with master)"
            stack.enter_context(_running(place, "worker.Worker", f"127.0.0.{number}", words, said, options))
        yield master


@contextmanager
def _running(folder: Path, kind: str, host: str, words: list[str], said: str, options: str) -> Iterator[str]:
    """Run a process of Spark until the end of the context, from when it says what is waited for."""
    import pyspark

    folder.mkdir(parents=True)
    home = Path(pyspark.__file__).parent
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
    settings |= {"SPARK_DAEMON_JAVA_OPTS": options, "SPARK_LOCAL_DIRS": str(folder / "local")}
    log, at = folder / "log", ["--host", host, "--port", "0", "--webui-port", "0"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *at, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings},
            start_new_session=True,
        )
    try:
        end = time.monotonic() + STARTED
        while not (found := re.search(said, log.read_text())):
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(log.read_text()[-2000:])
            time.sleep(0.1)
        yield found[1]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def spark_table(session: Any, folder: Path, name: str, table: pa.Table) -> Any:
    """Write a table to two files and read it with Spark."""
    place = folder / name
    place.mkdir()
    half = max(1, table.num_rows // 2)
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, place / f"{number}.parquet")
    return session.read.parquet(str(place))
