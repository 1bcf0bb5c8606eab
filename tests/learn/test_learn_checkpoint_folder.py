"""The folder of a run: claims only grow, one process at a time, and nothing in it is run when it is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch

from discreet.errors import Refused
from discreet.learn.torch.checkpoints import RunFolder, pack, unpack
from discreet.ledger.private_files import place

RUN = {"plan": "a plan", "model": [["weight", [2, 3]]], "name": "people"}


def again(folder: RunFolder, path, run=None) -> RunFolder:
    folder.close()
    return RunFolder(path, RUN if run is None else run)


def test_claims_and_checkpoints_are_found_again(tmp_path):
    folder = RunFolder(tmp_path / "run", RUN)
    assert folder.claimed == 0
    assert folder.latest() is None
    assert not folder.charged
    folder.mark_charged()
    folder.claim(10)
    folder.save(10, b"ten")
    folder.claim(20)
    found = again(folder, tmp_path / "run")
    assert (found.claimed, found.latest(), found.charged, found.key) == (20, b"ten", True, folder.key)


def test_claims_never_shrink(tmp_path):
    folder = RunFolder(tmp_path, RUN)
    folder.claim(10)
    folder.claim(5)
    assert folder.claimed == 10
    assert again(folder, tmp_path).claimed == 10


def test_only_the_newest_checkpoint_is_kept_and_half_written_ones_are_none(tmp_path):
    folder = RunFolder(tmp_path, RUN)
    folder.claim(120)
    folder.save(9, b"nine")
    folder.save(100, b"hundred")
    (tmp_path / ".step-00000110.safetensors.draft").write_bytes(b"hal")
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-00000100.safetensors"]
    assert again(folder, tmp_path).latest() == b"hundred"


def test_two_runs_have_two_keys(tmp_path):
    assert RunFolder(tmp_path / "a", RUN).key != RunFolder(tmp_path / "b", RUN).key


@pytest.mark.parametrize("changed", [{"plan": "another"}, {"model": []}, {"name": "others"}])
def test_another_run_is_refused_and_named(tmp_path, changed):
    folder = RunFolder(tmp_path, RUN)
    with pytest.raises(Refused, match=f"differs in {next(iter(changed))}"):
        again(folder, tmp_path, RUN | changed)
    assert again(folder, tmp_path).claimed == 0  # A refused attempt lets go of the folder.


def test_a_second_process_and_a_second_run_in_this_one_are_refused(tmp_path):
    folder = RunFolder(tmp_path, RUN)
    with pytest.raises(Refused, match="another process"):
        RunFolder(tmp_path, RUN)
    code = f"import fcntl; fcntl.flock(open({str(tmp_path / 'lock')!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    assert b"BlockingIOError" in subprocess.run([sys.executable, "-c", code], capture_output=True).stderr
    folder.close()
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_forked_child_claims_nothing(tmp_path):
    folder = RunFolder(tmp_path, RUN)
    child = os.fork()
    if child == 0:
        try:
            folder.claim(5)
        except Refused:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert folder.claimed == 0


def test_a_closed_folder_claims_nothing(tmp_path):
    folder = RunFolder(tmp_path, RUN)
    folder.close()
    with pytest.raises(Refused, match="closed"):
        folder.claim(1)


@pytest.mark.parametrize("name", ["run.json", "claims.json"])
@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe"])
def test_damaged_records_are_refused(tmp_path, name, content):
    folder = RunFolder(tmp_path, RUN)
    folder.claim(3)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Refused, match="damaged"):
        again(folder, tmp_path)


@pytest.mark.parametrize("gone", ["run.json", "claims.json"])
def test_a_record_that_was_taken_away_is_missed(tmp_path, gone):
    """Without its claims a run would begin again at step 0, and draw noise for steps that were seen."""
    folder = RunFolder(tmp_path, RUN)
    folder.claim(3)
    folder.save(3, b"three")
    (tmp_path / gone).unlink()
    with pytest.raises(Refused):
        again(folder, tmp_path)


def test_claims_of_another_run_are_refused(tmp_path):
    folder = RunFolder(tmp_path, RUN)
    folder.claim(3)
    (tmp_path / "claims.json").write_text(json.dumps({"run": "00", "claimed": 0}))
    with pytest.raises(Refused, match="another run"):
        again(folder, tmp_path)


def test_only_the_owner_can_read_what_is_written(tmp_path):
    folder = RunFolder(tmp_path / "run", RUN)
    folder.claim(1)
    folder.save(1, b"one")
    for path in [tmp_path / "run", *(tmp_path / "run").iterdir()]:
        assert path.stat().st_mode & 0o077 == 0


def test_a_file_is_forced_to_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    order = []
    for name in ("fdatasync", "fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, real=real, name=name: (order.append(name), real(*args))[1])
    place(tmp_path / "a", b"content")
    assert order == ["fdatasync", "replace", "fsync"]


def test_states_come_back_as_they_were():
    value = {
        "step": 3,
        "rate": 0.1,
        "nothing": None,
        "betas": (0.9, 0.999),
        "list": [1, [torch.tensor(2.0)], "x"],
        "state": {0: {"m": torch.arange(6.0).reshape(2, 3)}, 1: {}},
        "counter": Counter({5: 1}),
        "transposed": torch.arange(6).reshape(2, 3).T,
        "empty": torch.zeros(0, 3),
        "inf": float("inf"),
    }
    found = unpack(pack(value))
    assert str(found) == str(value | {"counter": {5: 1}})
    assert isinstance(found["betas"], tuple)
    assert list(found["state"]) == [0, 1]


def test_what_is_neither_tensor_nor_plain_is_refused_by_its_place():
    with pytest.raises(Refused, match="a function at scheduler/lambda cannot be kept"):
        pack({"scheduler": {"lambda": test_two_runs_have_two_keys}})


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:9] + b"!" + b[10:], lambda b: bytes(64)]
)
def test_a_damaged_checkpoint_is_refused(damage):
    with pytest.raises(Refused, match="damaged"):
        unpack(damage(pack({"a": torch.ones(3), "b": 1})))


def test_shared_tensors_are_kept_in_both_places():
    weight = torch.ones(2, 2)
    found = unpack(pack({"a": weight, "b": weight[0]}))
    assert found["a"].tolist() == [[1, 1], [1, 1]]
    assert found["b"].tolist() == [1, 1]
