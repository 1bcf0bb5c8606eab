"""A server for a file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")

from server_world import World, prepare, running


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("server")
    prepare(folder)
    with running(folder) as found:
        yield found
