"""What tests of the client share with those of the server: its world."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

from client_world import Listening
from server_world import prepare


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server for a file of tests."""
    folder = tmp_path_factory.mktemp("client")
    prepare(folder)
    with Listening(folder) as found:
        yield found
