"""One release, made once: bundles of it are written as often as tests like."""

from __future__ import annotations

import shutil
from pathlib import Path

import bundle_worlds as worlds
import pytest

from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.published import Published


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("world")


@pytest.fixture(scope="session")
def published(world) -> Published:
    return worlds.release(world)


@pytest.fixture(scope="session")
def ledger(world, published) -> Path:
    return world / "hospital.ledger"


@pytest.fixture(scope="session")
def written(published, tmp_path_factory) -> Path:
    return write_bundle(published, tmp_path_factory.mktemp("written"))


@pytest.fixture
def bundle(written, tmp_path) -> Path:
    """A bundle of one's own, with its archive beside it, to spoil."""
    copied = tmp_path / "published" / written.name
    shutil.copytree(written, copied)
    shutil.copy2(written.with_suffix(".zip"), copied.with_suffix(".zip"))
    return copied
