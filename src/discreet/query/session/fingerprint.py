"""What makes two plans the same: all of the tree, and all of the price, in one text that is hashed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from hashlib import sha256

from discreet.errors import InvalidParameter
from discreet.privacy.events import Event

__all__ = ["fingerprint"]


def fingerprint(*values: object) -> str:
    """Hash frozen values. Two that differ in anything, down to 1 and True, have different texts."""
    return sha256("\n".join(map(_text, values)).encode("utf-8", "surrogatepass")).hexdigest()


def _text(value: object) -> str:
    match value:
        case None | bool() | int() | str():
            return f"{type(value).__name__}:{value!r}"
        case Fraction():
            return f"ratio:{value}"
        case date():  # Timestamps too.
            return f"{type(value).__name__}:{value.isoformat()}"
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case Event():
            return value.to_json()
        case tuple() | list():
            return f"[{','.join(map(_text, value))}]"
        case Mapping():
            return "{" + ",".join(sorted(f"{_text(name)}={_text(part)}" for name, part in value.items())) + "}"
        case _ if is_dataclass(value):
            inside = ",".join(f"{field.name}={_text(getattr(value, field.name))}" for field in fields(value))
            return f"{type(value).__name__}({inside})"
    raise InvalidParameter(f"a plan cannot hold {type(value).__name__}")
