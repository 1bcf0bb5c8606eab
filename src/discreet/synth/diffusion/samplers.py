"""From noise to pictures: the ways to follow a denoiser down the levels. All of it is post-processing.

`guess(pictures, level)` is what a denoiser says the clean pictures are. Noise goes down from `highest` to `lowest` by
the levels of [KAAL22], which lie evenly on the scale of the seventh root.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import sqrt
from typing import TypeAlias

import torch
from torch import Tensor

from discreet.synth.diffusion.options import Ddim, Heun, Sampler

__all__ = ["HIGHEST", "LOWEST", "Draw", "Guess", "follow", "guided", "levels"]

Guess: TypeAlias = Callable[[Tensor, float], Tensor]
Draw: TypeAlias = Callable[[], Tensor]  # fresh normal numbers, one for each of the pictures' places

HIGHEST, LOWEST = 80.0, 0.002
_ROOT = 7.0


def levels(steps: int, highest: float = HIGHEST, lowest: float = LOWEST) -> list[float]:
    """Return `steps` levels from the highest to the lowest."""
    high, low = highest ** (1 / _ROOT), lowest ** (1 / _ROOT)
    return [(high + place / max(1, steps - 1) * (low - high)) ** _ROOT for place in range(steps)]


def follow(sampler: Sampler, guess: Guess, start: Tensor, draw: Draw, *, highest: float = HIGHEST) -> Tensor:
    """Take pictures that are noisy at the highest level down to clean ones."""
    path = levels(sampler.steps, highest)
    return (
        _heun(sampler, guess, start, draw, path)
        if isinstance(sampler, Heun)
        else _ddim(sampler, guess, start, draw, path)
    )


def _heun(sampler: Heun, guess: Guess, pictures: Tensor, draw: Draw, path: list[float]) -> Tensor:
    """Follow the slope (pictures - guess) / level; correct each step by the slope at its end. [KAAL22]"""
    for level, following in zip(path, [*path[1:], 0.0], strict=True):
        churned = sampler.churn_from <= level <= sampler.churn_to
        risen = level * (1 + min(sampler.churn / sampler.steps, sqrt(2) - 1)) if churned else level
        if risen > level:
            pictures = pictures + sqrt(risen**2 - level**2) * draw()
        slope = (pictures - guess(pictures, risen)) / risen
        moved = pictures + (following - risen) * slope
        if following > 0:
            second = (moved - guess(moved, following)) / following
            moved = pictures + (following - risen) * (slope + second) / 2
        pictures = moved
    return pictures


def _ddim(sampler: Ddim, guess: Guess, pictures: Tensor, draw: Draw, path: list[float]) -> Tensor:
    """Follow the slope; or go twice as far and let noise bring half of it back. The last guess is the picture."""
    for level, following in pairwise(path):
        step = following - level
        slope = (pictures - guess(pictures, level)) / level
        if sampler.stochastic:
            pictures = pictures + 2 * step * slope + sqrt(2 * -step * level) * draw()
        else:
            pictures = pictures + step * slope
    return guess(pictures, path[-1])


def guided(told: Guess, untold: Guess, weight: float) -> Guess:
    """Go further where the class says so: (1 + w) of what is guessed with the class less w of that without. [HS21]"""
    if weight == 0:
        return told
    return lambda pictures, level: torch.lerp(untold(pictures, level), told(pictures, level), 1 + weight)
