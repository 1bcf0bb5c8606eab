"""Vectors of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import integer

__all__ = ["read_vector"]


def read_vector(answer: Sequence[int], dimension: int) -> tuple[int, ...]:
    """Read a private vector of the public length."""
    values = answer.tolist() if isinstance(answer, np.ndarray) else answer
    if len(values) != dimension:
        raise InvalidParameter("the answer must have the declared dimension")
    return tuple(integer(value, name="answer") for value in values)
