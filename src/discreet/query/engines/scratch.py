"""Scratch folders of the engine: for nobody else, encrypted by the engine, and swept if their process died.

A folder is in use as long as somebody holds the lock of the file in it. The kernel lets go of that lock whenever a
process ends, however it ends, and no number of a process is looked at, which may have been given to another since.
"""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import final

__all__ = ["Scratch", "sweep"]

_PREFIX = "discreet-scratch-"
_MAKING = ".discreet-making-"  # While it has no lock yet, it is called so, and nobody sweeps it.
_LOCK = ".discreet-in-use"
# The default access list of a folder: whatever a library says, files in it are for their owner only (0600).
_OWNER, _GROUP, _OTHERS, _NOBODY = 0x01, 0x04, 0x20, 0xFFFFFFFF
_ACCESS = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", who, allowed, _NOBODY) for who, allowed in ((_OWNER, 7), (_GROUP, 0), (_OTHERS, 0))
)


@final
class Scratch:
    """A folder for the files of one engine, removed with it, or by the next one if its process was killed."""

    def __init__(self) -> None:
        sweep(Path(tempfile.gettempdir()))
        making = Path(tempfile.mkdtemp(prefix=_MAKING))  # 0700
        with suppress(OSError, AttributeError):  # Not every file system has such lists; the folder is closed anyway.
            os.setxattr(making, "system.posix_acl_default", _ACCESS)
        lock = _locked(making / _LOCK, create=True)
        self.folder = str(making.with_name(_PREFIX + making.name.removeprefix(_MAKING)))
        os.rename(making, self.folder)
        self.remove = weakref.finalize(self, _remove, self.folder, lock, os.getpid())


def _remove(folder: str, lock: int | None, process: int) -> None:
    """Remove scratch files; a forked child leaves those of its parent alone."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(place: Path) -> None:
    """Remove what processes of this user left behind that are no more."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if not folder.is_symlink() and hasattr(os, "getuid") and found.st_uid == os.getuid():
                lock = _locked(folder / _LOCK, create=False)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _locked(file: Path, *, create: bool) -> int | None:
    """Take the lock of a folder; None if it is taken, or if there is none to take."""
    import fcntl

    made = os.O_CREAT | os.O_EXCL if create else 0
    descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | made, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        if create:  # A file system without locks: then nobody may take this folder for left behind.
            file.unlink()
        return None
    return descriptor
