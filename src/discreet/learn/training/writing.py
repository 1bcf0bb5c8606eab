"""Write the parts of a training plan as JSON and read them back."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter
from discreet.learn.training.clips import AdaptiveClip, Automatic, Clip, Flat, PerLayer
from discreet.stored_names import stored_names

__all__ = ["pack", "read_object", "unpack_clip"]

# Stored in plans of training, in checkpoints and in the heads of weights: these names never change.
_RULES = stored_names(
    {
        Flat: "Flat: clip",
        Automatic: "Automatic: clip gamma",
        PerLayer: "PerLayer: clip",
        AdaptiveClip: "AdaptiveClip: initial quantile rate count_noise",
    }
)


def pack(value: object) -> Any:
    """Return what JSON can hold: fractions as text, a clipping rule by its name."""
    name = _RULES.get(type(value))
    if name is not None:
        return {"rule": name.tag} | {part: pack(held) for part, held in name.values(value)}
    return str(value) if isinstance(value, Fraction) else value


def unpack_clip(packed: Any) -> Clip:
    """Read a clipping rule that `pack` wrote."""
    values = dict(packed) if isinstance(packed, dict) else {}
    tag = values.pop("rule", "")
    for rule, name in _RULES.items():
        arguments = name.arguments(values) if name.tag == tag else None
        if arguments is not None:
            made: Clip = rule(**arguments)
            return made
    raise InvalidParameter("this is not a clipping rule that this release can read")


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError, TypeError):
        raise InvalidParameter("a training plan must be a JSON object") from None
    if not isinstance(values, dict):
        raise InvalidParameter("a training plan must be a JSON object")
    return values
