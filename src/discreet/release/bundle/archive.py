"""A bundle as one .zip file: sorted, without times, so that the same files make the same bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

__all__ = ["zip_bytes"]

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # The first moment that the format knows.
_READABLE = 0o100644 << 16


def zip_bytes(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Pack files below one folder."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, held in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{folder}/{name}", _FIRST_DAY)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _READABLE, 3
            archive.writestr(entry, held)
    return packed.getvalue()
