"""How a denoiser scales what goes in and what comes out, by the noise level. [KAAL22]"""

from __future__ import annotations

from torch import Tensor

__all__ = ["kept", "left", "scaled"]

# Theorem: for a pixel with deviation s around its centre, and noise of deviation t, the best linear guess of how far
# it is from the centre is kept(t, s) times how far the noisy one is, and the error of that guess has the deviation
# left(t, s). So with these scalings what the network sees and what it should say both have variance 1. [KAAL22]


def kept(level: Tensor, spread: Tensor) -> Tensor:
    """c_skip: the part of a noisy pixel's distance from its centre that is believed, s^2 / (t^2 + s^2)."""
    return spread.square() / (level.square() + spread.square())


def left(level: Tensor, spread: Tensor) -> Tensor:
    """c_out: what the network may add, s t / sqrt(t^2 + s^2)."""
    return level * spread * (level.square() + spread.square()).rsqrt()


def scaled(level: Tensor, spread: Tensor) -> Tensor:
    """c_in: brings what the network sees to variance 1, 1 / sqrt(t^2 + s^2)."""
    return (level.square() + spread.square()).rsqrt()
