"""Named curves, read and checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["MOST", "Curves", "Floats", "Read", "read_curves"]

Floats: TypeAlias = NDArray[np.float64]
Curves: TypeAlias = "Mapping[str, tuple[Sequence[float] | Floats, Sequence[float] | Floats]]"  # name: (x, y)
Read: TypeAlias = dict[str, tuple[Floats, Floats]]

MOST = 7  # Curves in one chart: as many as there are colours that everybody can tell apart.
_LONGEST = 10_000  # Points of a curve; a chart has a few hundred pixels.


def read_curves(curves: Curves, *, horizontal: str, vertical: str) -> Read:
    """Read curves, each sorted by x; refuse what cannot be drawn."""
    if not isinstance(curves, Mapping) or not all(isinstance(name, str) and name for name in curves):
        raise InvalidParameter("curves must map a name to a pair of sequences, x and y")
    if not 1 <= len(curves) <= MOST:
        raise InvalidParameter(f"a chart takes one to {MOST} curves; split it into several charts")
    return {name: _read_pair(pair, horizontal, vertical) for name, pair in curves.items()}


def _read_pair(pair: Any, horizontal: str, vertical: str) -> tuple[Floats, Floats]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidParameter("a curve must be a pair of sequences, x and y")
    x, y = _numbers(pair[0], horizontal), _numbers(pair[1], vertical)
    if x.size != y.size or not 2 <= x.size <= _LONGEST:
        raise InvalidParameter(f"a curve must have 2 to {_LONGEST} points, as many x as y")
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _numbers(values: Any, name: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a sequence of numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all() or (numbers < 0).any():
        raise InvalidParameter(f"{name} must be a flat sequence of finite numbers, none of them negative")
    return numbers
