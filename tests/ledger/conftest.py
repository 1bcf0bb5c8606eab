"""A folder in memory, if there is one: where the order of calls counts, not how long the disk takes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    shared = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else tmp_path))
    yield place
    shutil.rmtree(place)
