"""Folders to run commands in."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_folder import Ran, prepare

from discreet.cli.command_runner import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and a policy, in which we are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("DISCREET_POLICY", "DISCREET_PRINCIPAL", "DISCREET_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return prepare(tmp_path)


@pytest.fixture
def discreet(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command in this process, without a terminal."""

    def called(*arguments: str, given: str = "") -> Ran:
        capfd.readouterr()
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        code = run(arguments)
        return Ran(int(code), *capfd.readouterr())

    return called
