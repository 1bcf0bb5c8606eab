"""Files that hold the record: private, forced to disk, there as a whole or not at all."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import LedgerUnavailable, NotAuthorised, Refused
from discreet.file_locks import control

__all__ = ["check_private", "create_private", "place", "private", "reachable", "refuse_network", "sync", "sync_folder"]

# --- files: Files that hold the record: private, forced to disk, on a disk of this machine. ---


_NETWORK = (
    "nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "9p", "ncpfs", "gfs2",
    "ocfs2", "beegfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.ceph",
)  # fmt: skip
_ESCAPED = re.compile(r"\\([0-7]{3})")  # How the system writes blanks in the place of a mount.


@contextmanager
def reachable() -> Iterator[None]:
    """Say in our words why a file cannot be opened."""
    try:
        yield
    except (LedgerUnavailable, NotAuthorised):
        raise
    except PermissionError:
        raise NotAuthorised("this user may not open or make the ledger here: ask whoever holds the data") from None
    except OSError as error:
        raise LedgerUnavailable(f"the ledger cannot be opened or made here: {error.strerror}") from None


def private(path: str | Path, flags: int) -> int:
    """Open a file; one that is made here can be read and written by its owner only."""
    return os.open(path, flags, 0o600)


def create_private(path: Path) -> None:
    """Make an empty file that only its owner can read or write; leave one that is there."""
    try:
        os.close(private(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC))
    except FileExistsError:
        return
    sync_folder(path.parent)


def check_private(path: Path) -> None:
    """Refuse a file that others may read or write, or that belongs to another user."""
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode):
        raise Refused("a ledger must be a regular file")
    if facts.st_mode & 0o077:
        raise Refused("others may read or write this ledger: take their permissions away (chmod 600)")
    if facts.st_nlink > 1:
        # sqlite3 keeps a log beside each name, so two names are two ledgers that share one budget.
        raise Refused("this ledger has a second name (a hard link), under which it could be spent from: remove it")
    if facts.st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
        raise NotAuthorised("this ledger belongs to another user: ask whoever holds the data")


def sync(file: int) -> None:
    """Force the contents of a file to the disk itself."""
    full = getattr(control, "F_FULLFSYNC", None)  # On macOS fsync stops at the cache of the drive.
    if full is not None:
        control.fcntl(file, full)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def refuse_network(path: Path) -> None:
    """Refuse a folder on a network: locks and forced writes do not hold between machines there."""
    kind = _kind_of_mount(path.parent)
    if kind in _NETWORK:
        raise Refused(
            f"a ledger cannot live on a network file system ({kind}), where two machines could spend the same budget: "
            "use a local disk, and put the anchor on the network if you like"
        )


def _kind_of_mount(folder: Path) -> str:
    """Return the type of the file system a folder is on; empty where this system does not say."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), before.split()[4])
        inside = folder == Path(point) or Path(point) in folder.parents
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


# --- placing: Files that are there as a whole or not at all, and stay there when the power fails. ---


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
