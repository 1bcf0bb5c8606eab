"""Places for ledgers: a folder in memory, if there is one; and for what holds of every store, a file and a server."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from system_parts import needs_postgres


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    shared = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else tmp_path))
    yield place
    shutil.rmtree(place)


@pytest.fixture(params=["file", pytest.param("server", marks=needs_postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    """Where a new ledger can be: in a file, or on a PostgreSQL server whose anchor is in the folder of the test."""
    if request.param == "file":
        return tmp_path / "ledger"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return f"{request.getfixturevalue('postgres_database')}?schema=t_{secrets.token_hex(6)}"


@pytest.fixture
def server_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_database: str) -> str:
    """Where a new ledger can be on a PostgreSQL server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return f"{postgres_database}?schema=t_{secrets.token_hex(6)}"
