"""States to be tried: a file, and a schema of a database."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from system_parts import needs_postgres

from discreet.server.state_file import StateFile
from discreet.server.state_server import PostgresState
from discreet.server.state_store import ServerState, state_place

Opener = Callable[..., ServerState]
both_stores = pytest.mark.parametrize("kind", ["file", pytest.param("server", marks=needs_postgres)])


def place_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Name a place where no state is yet."""
    if kind == "file":
        return str(folder / "state.db")
    return f"{request.getfixturevalue('postgres_database')}?schema=s_{secrets.token_hex(6)}"


def opener(place: str, folder: Path) -> Opener:
    """Return what opens the state at a place, as often as it is called; `machine` has an anchor of its own."""

    def opened(*, machine: str = "here", **more: object) -> ServerState:
        found = state_place(place)
        anchor = folder / f"{machine}.anchor"
        if isinstance(found, Path):
            return StateFile(found, anchor=anchor, **more)  # type: ignore[arg-type]
        return PostgresState(found, anchor=anchor, **more)  # type: ignore[arg-type]

    return opened
