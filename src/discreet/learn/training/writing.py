"""Write the parts of a training plan as JSON and read them back."""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter
from discreet.learn.training.clips import AdaptiveClip, Automatic, Clip, Flat, PerLayer

__all__ = ["pack", "read_object", "unpack_clip"]

_RULES: dict[str, type[Flat] | type[Automatic] | type[PerLayer] | type[AdaptiveClip]] = {
    rule.__name__: rule for rule in (Flat, Automatic, PerLayer, AdaptiveClip)
}


def pack(value: object) -> Any:
    """Return what JSON can hold: fractions as text, a clipping rule by its name."""
    if isinstance(value, Flat | Automatic | PerLayer | AdaptiveClip):
        named = {field.name: pack(getattr(value, field.name)) for field in fields(value)}
        return {"rule": type(value).__name__} | named
    return str(value) if isinstance(value, Fraction) else value


def unpack_clip(packed: Any) -> Clip:
    """Read a clipping rule that `pack` wrote."""
    values = dict(packed) if isinstance(packed, dict) else {}
    rule = _RULES.get(str(values.pop("rule", "")))
    if rule is None or values.keys() != {field.name for field in fields(rule)}:
        raise InvalidParameter("this is not a clipping rule that this release can read")
    return rule(**values)


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError, TypeError):
        raise InvalidParameter("a training plan must be a JSON object") from None
    if not isinstance(values, dict):
        raise InvalidParameter("a training plan must be a JSON object")
    return values
