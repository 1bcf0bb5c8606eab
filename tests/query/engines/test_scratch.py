"""What the engine writes to disk holds no raw value, is for its owner only, and is swept once its process is gone."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.query.engines.duckdb_sandbox import Sandbox, Scratch

CANARY = b"canary-of-somebody"
# Both ways of working on disk: a sort that the engine spills, and rows that NumPy shares out to files of its own.
SPILLING = """
import tempfile, time
from discreet.query.engines.duckdb_sandbox import Sandbox

cage = Sandbox([], memory=150 << 20, threads=2)
connection = cage.connection()
texts = "SELECT 'canary-of-somebody-' || i || repeat('x', 100) AS s FROM range(3000000) t(i) ORDER BY hash(i)"
reader = connection.sql(texts).to_arrow_reader(10_000)
reader.read_next_batch()
plain = tempfile.TemporaryFile()
plain.write(b"canary-of-somebody" * 1000)
plain.flush()
print("spilled", flush=True)
time.sleep(600)
"""


def kill_while_it_spills(place: Path) -> None:
    environment = dict(os.environ, TMPDIR=str(place))
    process = subprocess.Popen([sys.executable, "-c", SPILLING], env=environment, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"spilled\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.long
def test_a_killed_process_leaves_no_raw_value_and_the_next_one_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_while_it_spills(tmp_path)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in left) > 10 << 20, "it did spill"
    assert not any(CANARY in path.read_bytes() or b"x" * 20 in path.read_bytes() for path in left)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in left)
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in tmp_path.iterdir())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Sandbox([], memory=1 << 28, threads=1).close()
    assert not list(tmp_path.iterdir())


def test_folders_in_use_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = Scratch(), Scratch()
    assert Path(first.folder).is_dir()
    assert Path(second.folder).is_dir()
    first.remove()
    assert [str(path) for path in tmp_path.iterdir()] == [second.folder]
    second.remove()
    assert not list(tmp_path.iterdir())


def test_a_child_that_was_forked_neither_removes_nor_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = Scratch()
    child = os.fork()
    if child == 0:
        Scratch().remove()
        ours.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert Path(ours.folder).is_dir()
    ours.remove()


def test_what_is_not_a_scratch_folder_of_ours_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    without, elsewhere = tmp_path / "discreet-scratch-mine", tmp_path / "elsewhere"
    without.mkdir()
    elsewhere.mkdir()
    (elsewhere / ".discreet-in-use").touch()
    (elsewhere / "keep").touch()
    (tmp_path / "discreet-scratch-link").symlink_to(elsewhere)
    (tmp_path / "discreet-scratch-file").touch()
    Scratch().remove()
    assert without.is_dir()
    assert (elsewhere / "keep").exists()
    assert (tmp_path / "discreet-scratch-file").exists()


def test_scratch_files_are_encrypted_on_every_connection() -> None:
    cage = Sandbox([], memory=1 << 28, threads=1)
    try:
        asked = "SELECT current_setting('temp_file_encryption'), current_setting('temp_directory')"
        assert cage.connection().execute(asked).fetchone() == (True, cage._scratch.folder)
    finally:
        cage.close()


def test_the_sweep_takes_little_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held = [Scratch() for _ in range(20)]
    start = time.process_time()
    Scratch().remove()
    assert time.process_time() - start < 1
    for one in held:
        one.remove()
