"""`discreet backup`: what is refused, with which exit code."""

from __future__ import annotations

import shutil

import pytest

WRONG = [
    (("backup", "make"), 2),
    (("backup", "make", "new.db"), 2),
    (("backup", "check"), 2),
    (("backup", "check", "nowhere.db"), 2),
    (("backup", "check", "policy.toml"), 3),
    (("backup", "restore", "nowhere.db", "--reason", "x"), 2),
    (("backup", "restore", "--reason", "x"), 2),
    (("backup", "restore", "nowhere.db"), 2),
    (("backup", "make", "copy.db", "--state", "postgresql://ana:geheim@db.example/states"), 3),
    (("backup", "make", "policy.toml"), 2),
]


@pytest.mark.parametrize(
    ("arguments", "code"), WRONG, ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else ""
)
def test_what_is_wrong_is_refused(arguments, code, folder, discreet):
    ran = discreet(*arguments)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert "geheim" not in ran.err


@pytest.mark.long
def test_an_old_copy_is_refused_by_every_command_until_it_is_restored(folder, discreet):
    assert discreet("user", "add", "olga", "--role", "owner").code == 0
    assert discreet("backup", "make", "old.db", "--json").json["decisions"] == 2
    made = discreet("user", "add", "ana", "--role", "analyst", "--json").json
    for beside in folder.glob("discreet-server.db-*"):
        beside.unlink()
    shutil.copy(folder / "old.db", folder / "discreet-server.db")
    for command in (("user", "list"), ("backup", "check"), ("token", "list")):
        ran = discreet(*command)
        assert (ran.code, "backup restore" in ran.err) == (3, True)
    restored = discreet("backup", "restore", "--reason", "tried", "--json").json
    assert list(restored["invitations"]) == ["olga"]
    assert restored["state"]["decisions"] == 3
    assert discreet("backup", "check").code == 0
    assert made["secret"] not in str(discreet("user", "list").out)


@pytest.mark.long
def test_the_anchor_may_be_kept_elsewhere(folder, discreet, monkeypatch):
    monkeypatch.setenv("DISCREET_STATE_ANCHOR", str(folder / "elsewhere" / "state.anchor"))
    assert discreet("user", "add", "olga", "--role", "owner").code == 0
    assert (folder / "elsewhere" / "state.anchor").exists()
    assert not (folder / "discreet-server.db.anchor").exists()
    assert discreet("backup", "check").code == 0
    monkeypatch.delenv("DISCREET_STATE_ANCHOR")
    assert discreet("user", "list").code == 3  # Nobody knows whether this is an old copy.
    assert discreet("backup", "check", "--state-anchor", "elsewhere/state.anchor").code == 0
