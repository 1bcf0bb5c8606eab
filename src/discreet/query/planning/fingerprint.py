"""A text that is the same for the same plan, and for no other."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter, Refused

__all__ = ["canonical", "fingerprint"]

_FORMAT = "discreet plan 1"  # Another one where the meaning of a plan or of its answer changes.
_LATER = frozenset({("TableColumn", "format")})  # Came later: left out where it says nothing, as plans were before.
_LONG = 32  # Items; a longer list is written once, and named by its digest where it stands.


def fingerprint(*parts: Any) -> str:
    """Digest public values. A query that nests too deep to be written is refused here, before it is charged."""
    try:
        return _digest("\n".join((_FORMAT, canonical(parts))))
    except RecursionError:
        raise Refused(
            "this query nests too deep",
            reason="it costs time before anything is paid",
            way_out="split it, or put long lists into a public table",
        ) from None


def _digest(written: str) -> str:
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: Any) -> str:
    """Write a public value so that different ones differ: every part with its type, texts with their length."""
    return _written(value, {})


def _written(value: Any, known: dict[int, str]) -> str:
    """Write a value; `known` are long lists by identity: they live as long as the whole."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = (
            f"{field.name}={_written(getattr(value, field.name), known)}"
            for field in fields(value)
            if (type(value).__name__, field.name) not in _LATER or getattr(value, field.name) is not None
        )
        return f"{type(value).__name__}({','.join(parts)})"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        return f"s{len(value)}:{value}"
    if value is None or isinstance(value, (bool, int, float, Fraction, date)):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, tuple):
        return _listed(value, known)
    raise InvalidParameter(f"a plan cannot hold a {type(value).__name__}")


def _listed(values: tuple[Any, ...], known: dict[int, str]) -> str:
    if id(values) not in known:
        written = f"[{','.join(_written(value, known) for value in values)}]"
        known[id(values)] = f"#{_digest(written)}" if len(values) > _LONG else written
    return known[id(values)]
