"""The second wall: private tables are read by a process that has nothing else, and that may die at any time."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from session_data import CUSTOMERS, FORMS, opened, shop

import discreet as dp
from discreet import seccomp_rules
from discreet.query import Resources
from discreet.query.engine import Deadline
from discreet.query.workers import lockdown, messages, worker_engine
from discreet.query.workers.worker_engine import Worker, WorkerEngine

QUERY = "SELECT COUNT(*) AS n FROM orders"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts and forbids")
SLACK = 5.0  # Seconds, for a machine that is busy.


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """Every worker that is started from here on."""
    seen: list[Worker] = []
    start = worker_engine.start_worker

    def started() -> Worker:
        seen.append(start())
        return seen[-1]

    monkeypatch.setattr("discreet.query.workers.worker_engine.start_worker", started)
    return seen


@contextmanager
def stopped_when_asked(monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGSTOP) -> Iterator[None]:
    """Send a signal to each worker just after it was asked a question."""
    send = worker_engine.send

    def sent(connection: Any, said: Any, **named: Any) -> None:
        send(connection, said, **named)
        if "do" in said and said["do"] not in ("fork", "kill"):
            os.kill(asked[-1].process, number)

    asked: list[Worker] = []
    ask = Worker.ask

    def noted(self: Worker, *given: Any, **named: Any) -> Any:
        asked.append(self)
        return ask(self, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(worker_engine, "send", sent)
        patched.setattr(Worker, "ask", noted)
        yield


def count(session: dp.Session) -> float:
    return float(session.sql(QUERY, epsilon=5).release()["n"][0].value)


def count_on(session: dp.Session) -> None:
    """Ask until it fails: a worker may be quicker than a signal."""
    while True:
        count(session)


def is_there(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def gone(number: int, seconds: float = 10 + SLACK) -> bool:
    end = time.monotonic() + seconds
    while is_there(number) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_there(number)


def killed(worker: Worker) -> bool:
    """Kill an idle worker. It is gone when its connection is: a thread of it may outlive the first for a moment."""
    os.kill(worker.process, signal.SIGKILL)
    end = time.monotonic() + 10 + SLACK
    while worker.lives and time.monotonic() < end:
        time.sleep(0.02)
    return not worker.lives and gone(worker.process)


@LINUX
@pytest.mark.parametrize("form", ["pandas", "parquet"])
def test_a_worker_has_no_ledger_no_environment_and_no_network(form: str, tmp_path: Path, workers: list[Worker]) -> None:
    os.environ["DISCREET_CANARY"] = "in the environment"
    try:
        with opened(tmp_path, {"orders": FORMS[form](shop(), tmp_path)}) as session:
            count(session)
            (worker,) = workers
            place = Path(f"/proc/{worker.process}")
            assert (place / "environ").read_bytes() == b""
            files = [os.readlink(file) for file in (place / "fd").iterdir()]
            files = [file for file in files if "/discreet-scratch-" not in file]
            assert not [file for file in files if "ledger" in file or "/dev/tty" in file]
            kinds = {file.partition(":")[0] for file in files}
            assert kinds <= {"/dev/null", "socket", "anon_inode", "/memfd", str(tmp_path / "orders.parquet")}, files
            assert sum(file.startswith("socket:") for file in files) == 1
            status = (place / "status").read_text()
            assert "Seccomp:\t2" in status
            assert "NoNewPrivs:\t1" in status
            limits = (place / "limits").read_text()
            assert [line.split()[4:6] for line in limits.splitlines() if line.startswith("Max core")] == [["0", "0"]]
            assert "unlimited" not in next(line for line in limits.splitlines() if line.startswith("Max data"))
    finally:
        del os.environ["DISCREET_CANARY"]


def tried(work: Callable[[], Any]) -> str:
    try:
        work()
    except (OSError, ValueError) as error:
        return type(error).__name__
    return "done"


def in_a_locked_child(work: Callable[[], Any]) -> Any:
    """Return what a child says that has locked itself as workers do."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            lockdown.forget_everything(theirs)
            lockdown.limit_memory(64 << 20, 1)
            lockdown.lock()
            os.write(theirs, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as said:
        text = said.read()
    os.waitpid(child, 0)
    return json.loads(text)


@LINUX
def test_a_locked_process_reaches_nobody() -> None:
    parent = os.getpid()

    def work() -> dict[str, Any]:
        here = os.getpid()
        return {
            "inet": tried(lambda: socket.socket(socket.AF_INET)),
            "unix": tried(lambda: socket.socket(socket.AF_UNIX)),
            "pair": tried(socket.socketpair),
            "fork": tried(os.fork),
            "exec": tried(lambda: os.execv(sys.executable, [sys.executable])),
            "spawn": tried(lambda: os.posix_spawn(sys.executable, [sys.executable], {})),
            "kill": tried(lambda: os.kill(parent, 0)),
            "limit": tried(lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))),
            "look": resource.getrlimit(resource.RLIMIT_DATA)[0] < 1 << 40,
            "thread": [thread.start() or thread.join() for thread in [threading.Thread(target=len, args=[""])]],
            "environment": len(os.environ),
            "files": [number for number in range(3, 200) if tried(partial(os.fstat, number)) == "done"],
            "same": os.getpid() == here,
            "umask": os.umask(0o077),
        }

    said = in_a_locked_child(work)
    for name in ("inet", "unix", "pair", "fork", "exec", "spawn", "kill"):
        assert said.pop(name) == "PermissionError", name
    assert len(said.pop("files")) == 1
    assert said == {
        "limit": said["limit"],
        "look": True,
        "thread": [None],
        "environment": 0,
        "same": True,
        "umask": 0o077,
    }
    assert said["limit"] != "done"


@LINUX
def test_a_locked_process_gets_no_more_memory_than_was_declared() -> None:
    def work() -> list[str]:
        def taken(size: int) -> str:
            try:
                np.ones(size, np.uint8)
            except MemoryError:
                return "refused"
            return "done"

        return [taken(32 << 20), taken(1 << 30)]

    assert in_a_locked_child(work) == ["done", "refused"]


NUMBERS = json.loads((Path(__file__).parents[2] / "vectors" / "system_calls.json").read_text())


def judged(rules: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Follow a filter as the kernel does."""
    seen = {0: number, 4: architecture}
    for place, argument in enumerate((*arguments, 0, 0, 0)[:3]):
        seen |= {16 + 8 * place: argument & 0xFFFFFFFF, 20 + 8 * place: argument >> 32}
    value, place = 0, 0
    while True:
        code, yes, no, constant = struct.unpack_from("=HBBI", rules, 8 * place)
        place += 1
        if code == 0x20:
            value = seen[constant]
        elif code == 0x54:
            value &= constant
        elif code == 0x06:
            return int(constant)
        else:
            assert code == 0x15
            place += yes if value == constant else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_is_named_and_allows_the_rest(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp_rules, "platform", SimpleNamespace(machine=lambda: machine))
    monkeypatch.setattr(seccomp_rules, "sys", SimpleNamespace(platform="linux"))
    rules, known = lockdown.worker_filter(), NUMBERS[machine]
    assert rules is not None
    architecture, calls = known["architecture"], known["calls"]
    allow = seccomp_rules.ALLOW
    special = {"clone", "clone3", "tgkill", "prlimit64"}
    for name, number in calls.items():
        if name not in special:
            assert (judged(rules, architecture, number) != allow) == (name in lockdown._REFUSED), name
    missing = {name for name in lockdown._REFUSED if name not in calls}
    assert missing <= {"fork", "vfork"}
    thread, here = 0x10000 | 0x100, os.getpid()
    assert judged(rules, architecture, calls["clone"], thread) == allow
    assert judged(rules, architecture, calls["clone"], 0x100) == seccomp_rules.DENY
    assert judged(rules, architecture, 435) == seccomp_rules.UNKNOWN
    assert judged(rules, architecture, calls["tgkill"], here) == allow
    assert judged(rules, architecture, calls["tgkill"], here + 1) == seccomp_rules.DENY
    assert judged(rules, architecture, calls["prlimit64"], 0, 2, 0) == allow
    for pointer in (1, 1 << 32):
        assert judged(rules, architecture, calls["prlimit64"], 0, 2, pointer) == seccomp_rules.DENY
    assert judged(rules, architecture, 0x40000000 | calls["read"]) != allow
    assert judged(rules, architecture ^ 1, calls["read"]) == seccomp_rules.KILL


# By how calls are named: networks, programs, other processes and their memory, other file systems, the kernel's own.
OUTSIDE = re.compile(
    r"socket|connect|bind|listen|accept|v?fork|exec|t?kill$|rt_(tg)?sigqueueinfo|pidfd_|ptrace|process_vm_|kcmp"
    r"|u?mount|move_mount|pivot_root|chroot|unshare|setns|open_tree|open_by_handle|fs(open|config|mount|pick)"
    r"|io_uring_|bpf|perf_event|userfaultfd|(add|request)_key|keyctl|setrlimit|process_mrelease"
    r"|(shm|msg|sem)(?!dt|timedop_time64)|mq_open|(f?init|delete)_module|kexec|reboot"
)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_call_that_reaches_outside_is_left_out_of_the_filter(machine: str) -> None:
    reaching = {name for name in NUMBERS[machine]["calls"] if OUTSIDE.match(name)}
    assert len(reaching) > 40
    assert reaching - lockdown._REFUSED.keys() == set()


@LINUX
def test_a_worker_that_is_killed_is_a_constant_failure_and_the_next_question_is_answered(
    tmp_path: Path, workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as session:
        count(session)
        with stopped_when_asked(monkeypatch, signal.SIGKILL), pytest.raises(dp.AnswerFailed) as failed:
            count_on(session)
        assert str(failed.value) == str(dp.AnswerFailed())
        assert failed.value.__context__ is None
        assert abs(count(session) - 1.5 * CUSTOMERS) < 100
        assert len(workers) >= 2


@LINUX
def test_a_worker_that_dies_while_nobody_asks_is_replaced(tmp_path: Path, workers: list[Worker]) -> None:
    with opened(tmp_path) as session:
        count(session)
        assert killed(workers[0])
        count(session)
        assert len(workers) == 2


@LINUX
def test_a_question_ends_at_its_deadline_whatever_the_worker_does(
    tmp_path: Path, workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is stopped stands for code that no interrupt reaches."""
    seconds = 1.0
    with opened(tmp_path, resources=Resources(seconds=seconds)) as session:
        count(session)
        with stopped_when_asked(monkeypatch):
            started = time.monotonic()
            with pytest.raises(dp.AnswerFailed):
                count_on(session)
            took = time.monotonic() - started
        assert seconds <= took < seconds + 0.5 + SLACK
        assert gone(workers[-1].process)
        assert count(session) > 0


@LINUX
def test_an_interrupt_ends_the_work(tmp_path: Path, workers: list[Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(gone: float, allowed: float) -> None:
        if armed:
            raise KeyboardInterrupt

    armed: list[int] = []
    with opened(tmp_path, resources=Resources(on_progress=interrupt)) as session:
        count(session)
        armed.append(1)
        with stopped_when_asked(monkeypatch), pytest.raises(KeyboardInterrupt):
            count_on(session)
        armed.clear()
        assert gone(workers[0].process)
        assert count(session) > 0


@LINUX
def test_who_is_told_of_progress_and_fails_does_not_fail_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(gone: float, allowed: float) -> None:
        heard.append(gone)
        raise ValueError("no display")

    heard: list[float] = []
    with (
        opened(tmp_path, resources=Resources(seconds=2, on_progress=fails)) as session,
        stopped_when_asked(monkeypatch),
        pytest.warns(RuntimeWarning, match="not called again"),
        pytest.raises(dp.AnswerFailed),
    ):
        count_on(session)
    assert len(heard) == 1


@pytest.mark.long
@LINUX
def test_no_worker_outlives_the_process_that_asks(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    host = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "worker_host.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert host.stdout is not None
    worker = int(host.stdout.readline())
    assert is_there(worker)
    assert list(scratch.glob("discreet-scratch-*"))
    host.kill()
    host.wait()
    host.stdout.close()
    assert gone(worker)
    end = time.monotonic() + 10 + SLACK
    while list(scratch.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert list(scratch.iterdir()) == []


@LINUX
def test_a_forked_child_keeps_no_worker_alive(tmp_path: Path, workers: list[Worker]) -> None:
    with opened(tmp_path) as session:
        count(session)
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(theirs)
            os.read(ours, 1)
            os._exit(0)
        try:
            session.close()
            assert gone(workers[0].process)
        finally:
            os.close(theirs)
            os.close(ours)
            os.waitpid(child, 0)


@LINUX
def test_scratch_goes_with_its_worker(tmp_path: Path, workers: list[Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with opened(tmp_path) as session:
        count(session)
        assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in scratch.iterdir())
        assert killed(workers[0])
        count(session)
    end = time.monotonic() + 10 + SLACK
    while list(scratch.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert list(scratch.iterdir()) == []


def test_questions_of_several_threads_have_a_worker_each(tmp_path: Path, workers: list[Worker]) -> None:
    """One that overruns ends nobody else's."""
    meeting = threading.Barrier(3, timeout=60)
    ask = Worker.ask

    def meet(self: Worker, said: Any, *given: Any, **named: Any) -> Any:
        if "do" in said:
            meeting.wait()
        return ask(self, said, *given, **named)

    found: list[float] = []
    with opened(tmp_path) as session, pytest.MonkeyPatch.context() as patched:
        patched.setattr(Worker, "ask", meet)
        threads = [threading.Thread(target=lambda: found.append(count(session))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 3
    assert len({worker.process for worker in workers}) == 3


def test_one_worker_answers_one_question_after_the_other(tmp_path: Path, workers: list[Worker]) -> None:
    with opened(tmp_path) as session:
        assert workers == []  # Nothing is started before something is read.
        for _ in range(5):
            count(session)
        assert len(workers) == 1


def test_tables_in_memory_are_handed_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = messages.write_table
    monkeypatch.setattr(
        "discreet.query.workers.worker_engine.write_table", lambda *given: written.append(1) or write(*given)
    )
    with opened(tmp_path) as session:
        assert written == []  # Rows are not looked at before a question is paid.
        for _ in range(3):
            count(session)
    assert written == [1]


@LINUX
def test_what_was_handed_over_cannot_be_changed() -> None:
    file = messages.nameless_file()
    try:
        messages.write_table(shop(), file)
        assert messages.read_table(file).equals(shop())
        for change in (
            lambda: os.pwrite(file, b"x", 0),
            lambda: os.ftruncate(file, 0),
            lambda: os.ftruncate(file, 1 << 30),
        ):
            with pytest.raises(OSError, match="not permitted"):
                change()
    finally:
        os.close(file)


WITHOUT = (
    "import types; import discreet.seccomp_rules as rules, discreet.query.workers.lockdown as locking; "
    "rules.sys = locking.sys = types.SimpleNamespace(platform='other'); "
)


@pytest.mark.parametrize("missing", ["memory files", "kernel rules"])
@pytest.mark.parametrize("form", ["pandas", "csv"])
def test_systems_that_lack_a_wall_answer_all_the_same(
    missing: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: list[Worker]
) -> None:
    if missing == "memory files":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    else:
        script = worker_engine._SCRIPT.replace("from discreet", WITHOUT + "from discreet")
        monkeypatch.setattr(worker_engine, "_SCRIPT", script)
        monkeypatch.setattr(worker_engine, "_zygote", None)
    with opened(tmp_path, {"orders": FORMS[form](shop(), tmp_path)}) as session:
        assert abs(count(session) - 1.5 * CUSTOMERS) < 100
        assert session.sql(QUERY, epsilon=1).release()["n"]
        if missing == "kernel rules" and sys.platform == "linux":
            assert "Seccomp:\t0" in Path(f"/proc/{workers[-1].process}/status").read_text()
    if missing == "kernel rules" and worker_engine._zygote is not None:
        worker_engine._zygote.end()


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@LINUX
def test_what_needs_more_memory_than_declared_fails_and_takes_none_of_ours(workers: list[Worker]) -> None:
    rows = 4_000_000  # A text of 300 bytes each: 1.2 GB, and the worker may take 64 MB and what libraries take.
    small = pa.table({"s": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), ["x" * 300])})
    with closing(WorkerEngine({"t": small}, memory=64 << 20, threads=1)) as engine:
        before = rss()
        started = time.monotonic()
        with pytest.raises(dp.AnswerFailed):
            engine.rows("t", ["s"], [], deadline=Deadline.after(60))
        assert time.monotonic() - started < 60
        assert rss() - before < 200 << 20
        assert len(workers) == 1
        assert gone(workers[0].process)
        with pytest.raises(dp.AnswerFailed):
            engine.rows("t", ["s"], [], deadline=Deadline.after(60))
        assert len(workers) == 2  # The next question starts afresh.


def test_a_process_that_cannot_be_started_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker_engine, "_SCRIPT", "raise SystemExit(1)")
    monkeypatch.setattr(worker_engine, "_zygote", None)
    with pytest.raises(dp.Refused, match="cannot be started"):
        worker_engine.start_worker()
    monkeypatch.undo()
