"""Files that are there as a whole or not at all, and stay there when the power fails."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.ledger.files import private, sync, sync_folder

__all__ = ["place"]


def place(path: Path, content: bytes) -> None:
    """Write a file, force it to the disk, and give it its name in one step, which is forced too."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    file = private(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        sync(file)
    finally:
        os.close(file)
    os.replace(draft, path)
    sync_folder(path.parent)
