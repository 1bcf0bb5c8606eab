"""Sample sheets of pictures, inside the page."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.page.marks import paragraph, section, words

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["pictures_part", "png"]


def pictures_part(evaluation: Evaluation) -> str:
    """Write the section; nothing if the table is no pictures."""
    sheets = evaluation.likeness.sheets
    if sheets is None:
        return ""
    shown = [
        ("Synthetic pictures, one row a class", sheets.synthetic),
        ("Real pictures", sheets.real),
        ("The mean of each class: synthetic above, real below", sheets.means),
        ("Synthetic pictures, and below each the real one that is closest", sheets.closest),
    ]
    figures = "".join(_figure(title, picture) for title, picture in shown)
    told = f"Classes, from top to bottom: {', '.join(sheets.classes)}."
    return section("pictures", "Sample sheets", [paragraph(told), f'<div class="pictures maps">{figures}</div>'])


def _figure(title: str, picture: NDArray[np.uint8]) -> str:
    data = base64.b64encode(png(picture)).decode()
    height, width = picture.shape
    zoom = max(1, round(460 / width))
    return (
        f'<figure><img class="sheet" alt="{words(title)}" width="{zoom * width}" height="{zoom * height}" '
        f'src="data:image/png;base64,{data}"><figcaption>{words(title)}</figcaption></figure>'
    )


def png(picture: NDArray[Any]) -> bytes:
    """Write a grey picture of 0 to 255 as a PNG file."""
    height, width = picture.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), np.asarray(picture, np.uint8)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
