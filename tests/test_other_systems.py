"""On a system without locks of files and without fork, as Windows is, everything else works, and these are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Libraries come first: they have builds of their own for Windows. Then all that Windows does not have is taken away.
LIBRARIES = """
import concurrent.futures.thread, importlib, logging, multiprocessing, os, pathlib, pkgutil, random, signal, socket
import subprocess, sys, tempfile, threading, zipfile
import cryptography.hazmat.primitives.ciphers, duckdb, flint, numpy, pyarrow, pydantic, scipy.special, sqlglot
"""
WINDOWS = """
MISSING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog"}

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Gate())
gone = "fork forkpty register_at_fork getuid geteuid getgid uname memfd_create fdatasync pread pwrite fchmod"
for name in [*gone.split(), "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "sched_getaffinity", "setxattr", "killpg"]:
    if hasattr(os, name):
        delattr(os, name)
del socket.send_fds, socket.recv_fds, signal.SIGKILL

import discreet as dp

account = dp.ledger.Account("people", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
"""


def run(script: str, folder: Path, *, libraries: str = "") -> None:
    program = LIBRARIES + libraries + WINDOWS + script
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_module_is_imported_but_those_of_workers(tmp_path: Path) -> None:
    run(
        """
missing = set()
for found in pkgutil.walk_packages(dp.__path__, "discreet."):
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        assert error.name in MISSING, error
        missing.add(found.name)
# These are loaded in a process of their own, and there only.
alone = {f"discreet.query.workers.{name}" for name in ("lockdown", "serving", "zygote")}
assert missing == alone | {"discreet.server.work.fit_child"}, missing
""",
        tmp_path,
        libraries="import altair, pandas, rich.console, scipy.optimize, sklearn.base, torch, typer\n",
    )


def test_what_needs_no_lock_works(tmp_path: Path) -> None:
    bundle = ROOT / "tests" / "vectors" / "formats" / "bundle" / "bundle"
    run(
        f"""
from discreet.release import verify_bundle

answer = dp.mean([34, 29, 61, 45] * 500, bounds=(0, 120), epsilon=1, relation=dp.Relation.ADD_REMOVE)
assert 0 <= answer.value <= 120
assert dp.privacy.epsilon(answer.event, delta=0) == 1
with dp.ledger.Ledger.open("memory", account) as ledger:
    ledger.charge(answer.event, relation=dp.Relation.ADD_REMOVE, purpose="a mean")
checks = verify_bundle({str(bundle)!r}).checks
assert all(check.ok for check in checks if not check.what.startswith("everything else")), checks
""",
        tmp_path,
    )


def test_what_needs_locks_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    run(
        """
from discreet.release.signatures import new_key

def refused(work):
    try:
        work()
    except dp.Refused as error:
        assert "this system" in str(error) and "WSL 2" in str(error), error
    else:
        raise AssertionError("it was not refused")

pathlib.Path("t.csv").write_text("age\\n1\\n2\\n")
opened = dict(unit="row", budget=account.budget, columns={"age": dp.between(0, 120, whole=True)}, dataset="t")
domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 120, whole=True, bins=12)})
refused(lambda: dp.ledger.Ledger.open("people.ledger", account))
refused(lambda: dp.Session("t.csv", **opened, ledger="memory", principal="me"))
refused(lambda: dp.Session(pyarrow.table({"age": [1, 2]}), **opened, ledger="memory", principal="me"))
refused(lambda: dp.synthesize("t.csv", domain=domain, epsilon=1, delta=1e-9))
refused(lambda: new_key("signing.key"))
assert [path.name for path in pathlib.Path().iterdir()] == ["t.csv"]
""",
        tmp_path,
    )
