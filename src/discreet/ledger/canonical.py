"""One way to write a record, and its hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["canonical", "digest"]

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    """Write JSON in the one form that is hashed: sorted keys, no blanks, ASCII only, no NaN."""
    return _ENCODER.encode(value)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
