"""One text for one output: no class names, no addresses, no order of hashing, and floats as said."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp

__all__ = ["canonical", "plain", "wordless"]

_DIGITS = 7


def canonical(value: object, *, rounded: bool = False) -> str:
    """Write a value as text; `rounded` keeps seven digits of each float, which no order of summation changes."""
    if isinstance(value, str):
        return value
    return json.dumps(plain(value, rounded=rounded), ensure_ascii=False)


def plain(value: Any, *, rounded: bool = False) -> Any:
    """Turn a value into what JSON holds: dataclasses become the list of their public fields, without names."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, float | np.floating):
        return _float(float(value), rounded)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(part, rounded=rounded) for key, part in value.items()}
    if isinstance(value, Set):
        return sorted(canonical(part, rounded=rounded) for part in value)
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, bytes):
        return [plain(part, rounded=rounded) for part in value]
    return _thing(value, rounded)


def wordless(text: str) -> Any:
    """Read JSON and leave out its sentences, which may change apart from numbers; what is no JSON is all words."""
    try:
        return _unsaid(json.loads(text))
    except json.JSONDecodeError:
        return ""


def _unsaid(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unsaid(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_unsaid(part) for part in value]
    return "…" if isinstance(value, str) and " " in value.strip() else value


def _float(value: float, rounded: bool) -> str:
    if not rounded:
        return repr(value)
    shown = f"{value:.{_DIGITS}g}"
    return "0" if float(shown) == 0 else shown


def _thing(value: Any, rounded: bool) -> Any:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, enum.Enum):
        return plain(value.value, rounded=rounded)
    if isinstance(value, np.generic):
        return plain(value.item(), rounded=rounded)
    if isinstance(value, Fraction | date):
        return str(value)
    if isinstance(value, Path):
        return value.name
    if isinstance(value, dp.privacy.Event):
        return json.loads(value.to_json())
    if isinstance(value, dp.NotPrivate):
        return plain(value.value, rounded=rounded)
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, name), rounded=rounded) for name in _fields(value)]
    if hasattr(value, "detach"):
        return plain(value.detach().numpy(), rounded=rounded)
    raise TypeError(f"no text for {type(value)}")


def _fields(value: Any) -> list[str]:
    names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
    return [name for name in names if not callable(getattr(value, name))]
