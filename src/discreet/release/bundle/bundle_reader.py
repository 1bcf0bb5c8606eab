"""What is in a bundle on disk, folder or .zip: read with limits, and nothing followed out of it."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import final

from discreet.errors import InvalidParameter
from discreet.file_locks import BINARY, CLOSE_ON_EXEC, NO_FOLLOW

__all__ = ["BundleContents", "hold"]

_LARGEST = 1 << 31  # Bytes of a bundle, unpacked.
_MOST_FILES = 10_000
_CHUNK = 1 << 20
_LOCAL = struct.Struct("<4s5H3L2H")  # The head of a file within a .zip file.
_END, _END_SIZE = b"PK\5\6", 22  # The end of a .zip file without a remark.
_SIZED_LATER = 8  # The flag of an entry whose size only follows it.
_OTHER_NAME = b"up"  # The mark of an extra field with another name for the same file.


@final
@dataclass(frozen=True, slots=True)
class BundleContents:
    """The files of a bundle by their paths, and what was found that is no plain file."""

    files: dict[str, bytes]
    odd: tuple[str, ...]


def hold(path: Path) -> BundleContents:
    """Read a bundle from a folder or from a .zip file."""
    if path.is_dir() and not path.is_symlink():
        return _folder(path)
    if path.is_file() and path.suffix == ".zip":
        try:
            return _archive(path)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError):
            raise InvalidParameter("this .zip file is damaged, encrypted or no .zip file") from None
    raise InvalidParameter("there is no bundle here: name the folder of a bundle, or its .zip file")


def _folder(path: Path) -> BundleContents:
    files: dict[str, bytes] = {}
    odd: list[str] = []
    left = _LARGEST
    for found in _walk(path):
        name = found.relative_to(path).as_posix()
        if not stat.S_ISREG(found.lstat().st_mode):
            odd.append(name)
            continue
        left = _room(left - found.lstat().st_size, len(files))
        files[name] = _read_plain(found)
    return BundleContents(files, tuple(odd))


def _walk(path: Path) -> Iterator[Path]:
    """List everything below a folder in order; links are listed, never followed."""
    for found in sorted(path.iterdir()):
        if found.is_dir() and not found.is_symlink():
            yield from _walk(found)
        else:
            yield found


def _read_plain(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | NO_FOLLOW | CLOSE_ON_EXEC | BINARY)
    with os.fdopen(file, "rb") as held:
        return held.read(_LARGEST)


def _archive(path: Path) -> BundleContents:
    files: dict[str, bytes] = {}
    odd: list[str] = []
    folders: set[str] = set()
    left = _LARGEST
    with zipfile.ZipFile(path) as archive:
        odd += _unlisted(path, archive)
        for entry in archive.infolist():
            place = _place(entry)
            if place is None or place[1] in files:
                odd.append(entry.filename)
                continue
            folders.add(place[0])
            files[place[1]] = held = _unpacked(archive, entry, left)
            left = _room(left - len(held), len(files))
    several = sorted(folders) if len(folders) > 1 else []
    return BundleContents(files, tuple(dict.fromkeys([*odd, *(f"{each}/" for each in several)])))


def _unlisted(path: Path, archive: zipfile.ZipFile) -> Iterator[str]:
    """Name entries before or after which something lies that is not listed, or whose own head says otherwise.

    Programs that unpack a stream read heads one after the other and never the list at the end: both must tell of the
    same files, or a bundle could be checked that nobody unpacks.
    """
    at = 0
    with open(path, "rb") as held:
        for entry in sorted(archive.infolist(), key=lambda one: one.header_offset):
            held.seek(entry.header_offset)
            head = held.read(_LOCAL.size)
            if entry.header_offset != at or len(head) < _LOCAL.size:
                yield entry.filename
                return
            _, _, flags, method, _, _, crc, packed, size, name, extra = _LOCAL.unpack(head)
            more = held.read(name + extra)[name:] + entry.extra
            said = (method, crc, packed, size) == (entry.compress_type, entry.CRC, entry.compress_size, entry.file_size)
            if not said or flags & _SIZED_LATER or _OTHER_NAME in more:
                yield entry.filename
            at = entry.header_offset + _LOCAL.size + name + extra + entry.compress_size
        held.seek(-_END_SIZE, os.SEEK_END)
        if at != archive.start_dir or held.read(len(_END)) != _END:  # Nothing may follow the list either.
            yield path.name


def _place(entry: zipfile.ZipInfo) -> tuple[str, str] | None:
    """Return folder and path of an entry; None for one that is no plain file below one folder."""
    parts = PurePosixPath(entry.filename).parts
    kind = stat.S_IFMT(entry.external_attr >> 16)
    plain = kind in (0, stat.S_IFREG) and not entry.is_dir() and "\\" not in entry.filename
    inside = len(parts) > 1 and not {"..", "/", "."} & set(parts) and not entry.filename.startswith("/")
    return (parts[0], "/".join(parts[1:])) if plain and inside else None


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> bytes:
    """Unpack an entry piece by piece: what its head says of its size is not believed."""
    parts, size = [], 0
    with archive.open(entry) as packed:
        while part := packed.read(_CHUNK):
            size += len(part)
            _room(left - size, 0)
            parts.append(part)
    return b"".join(parts)


def _room(left: int, files: int) -> int:
    if left < 0 or files > _MOST_FILES:
        raise InvalidParameter("this is too large for a bundle: it was not read to its end")
    return left
