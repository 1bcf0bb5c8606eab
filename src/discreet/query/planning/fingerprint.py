"""A text that is the same for the same plan, and for no other."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter

__all__ = ["canonical", "fingerprint"]

_FORMAT = "discreet plan 1"  # Another one where the meaning of a plan or of its answer changes.


def fingerprint(*parts: Any) -> str:
    """Digest public values."""
    written = "\n".join((_FORMAT, *(canonical(part) for part in parts)))
    return hashlib.sha256(written.encode()).hexdigest()


def canonical(value: Any) -> str:
    """Write a public value so that different ones differ: every part with its type, texts with their length."""
    if is_dataclass(value) and not isinstance(value, type):
        inside = ",".join(f"{field.name}={canonical(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({inside})"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        return f"s{len(value)}:{value}"
    if value is None or isinstance(value, (bool, int, float, Fraction, date)):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(canonical(part) for part in value)}]"
    if isinstance(value, dict):
        return f"{{{','.join(sorted(f'{canonical(key)}:{canonical(part)}' for key, part in value.items()))}}}"
    raise InvalidParameter(f"a plan cannot hold a {type(value).__name__}")
