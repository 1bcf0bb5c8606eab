"""Weights kept inside a convex set that is chosen beforehand: free, since it looks at noisy weights only.

Projected gradient descent is what most theorems on private learning are about. [BST14]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import torch
from torch import Tensor

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive

__all__ = ["Box", "L2Ball", "Projection"]


class Projection(Protocol):
    """What brings weights back into a set, after every step."""

    def apply(self, weights: Sequence[Tensor]) -> None:
        """Move the weights to the nearest point of the set, in place."""


@final
@dataclass(frozen=True, slots=True)
class L2Ball:
    """All weights together have at most this l2 norm."""

    radius: Number

    def __post_init__(self) -> None:
        positive(self.radius, name="radius")

    def apply(self, weights: Sequence[Tensor]) -> None:
        """Shrink all weights by one factor if their norm is above the radius."""
        with torch.no_grad():
            norm = torch.stack([weight.double().norm() for weight in weights]).norm()
            factor = min(1.0, float(exact(self.radius)) / max(float(norm), 1e-300))
            if factor < 1:
                torch._foreach_mul_(list(weights), factor)


@final
@dataclass(frozen=True, slots=True)
class Box:
    """Every weight lies between `low` and `high`."""

    low: Number
    high: Number

    def __post_init__(self) -> None:
        if exact(self.low, name="low") >= exact(self.high, name="high"):
            raise InvalidParameter("low must be below high")

    def apply(self, weights: Sequence[Tensor]) -> None:
        """Clamp every weight."""
        with torch.no_grad():
            for weight in weights:
                weight.clamp_(float(exact(self.low)), float(exact(self.high)))
