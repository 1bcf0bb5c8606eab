"""In which order a location is asked for, and what is spent on each question. All of it is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, integer, positive, positive_integer
from discreet.mechanisms.fields import read_flag, settle
from discreet.mechanisms.grid import Grid
from discreet.robust.dialogue import AdaptiveQuery
from discreet.robust.location_questions import GradientStep, HalveCentre, HalveScale, NewtonStep, Place, Slope, Square
from discreet.robust.psi import Psi, Quantile

__all__ = ["GradientDescent", "LocationSchedule", "Newton", "shares_of"]

Questions: TypeAlias = tuple[AdaptiveQuery[Place], ...]

_FINEST = 20  # Halvings of the bounds, and the logarithm of the least scale that is looked for.
_CLOSER = 2  # Halvings of a bracket that is one scale wide.


class LocationSchedule(Protocol):
    """A public plan of questions about a location."""

    @property
    def inference(self) -> bool:
        """Whether it asks for what an interval needs."""

    def questions(self, *, psi: Psi, grid: Grid, scale: Fraction | None, resolution: int) -> Questions: ...

    def begin(self, *, grid: Grid, scale: Fraction | None) -> Place: ...

    def standard_error(self, place: Place) -> float:
        """Return the error of sampling and of the noise, infinite if it cannot be told."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Newton:
    """Halve a bracket to get near, then take few long steps, the last of which gets the largest share. [ABL23]

    One Newton step from a good start is as accurate as the root itself, so the budget need not be spread over many.
    """

    halvings: int | None = None  # for the start; by default until the bracket is as wide as a scale
    scale_halvings: int = 11  # for the scale, where none is declared
    steps: int = 2
    inference: bool = True

    def __post_init__(self) -> None:
        settle(
            self,
            halvings=None if self.halvings is None else _not_negative(self.halvings, name="halvings"),
            scale_halvings=positive_integer(self.scale_halvings, name="scale_halvings"),
            steps=positive_integer(self.steps, name="steps"),
            inference=read_flag(self.inference, name="inference"),
        )

    def questions(self, *, psi: Psi, grid: Grid, scale: Fraction | None, resolution: int) -> Questions:
        halvings = _halvings(self.halvings, grid, scale)
        bounds = (float(grid.low), float(grid.high))
        weights = [3 * bool(halvings), 3 * (scale is None), *[1, 2] * (self.steps - 1), 2, 8, 2 * self.inference]
        first, spread, *pairs, square = shares_of(weights)
        moves: list[AdaptiveQuery[Place]] = []
        for slope, score in zip(pairs[::2], pairs[1::2], strict=True):
            moves.append(Slope(share=slope, psi=psi, resolution=resolution))
            moves.append(NewtonStep(share=score, psi=psi, resolution=resolution, bounds=bounds))
        if square:
            moves.append(Square(share=square, psi=psi, resolution=resolution))
        return (*_start(psi, halvings, first), *_scales(self.scale_halvings, spread), *moves)

    def begin(self, *, grid: Grid, scale: Fraction | None) -> Place:
        return _begin(grid, scale, None)

    def standard_error(self, place: Place) -> float:
        if not place.slope > 0:
            return math.inf
        return place.scale * math.sqrt(place.square + place.noise**2) / place.slope


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent:
    """Equal steps along the mean of psi, each paid alike. [ABL23]

    For T steps and nothing else the noise on the mean has deviation (D / n) sqrt(T) / mu, or scale D T / (epsilon n)
    for Laplace noise, where D is the largest |psi| under add-remove and twice that under replace-one.
    """

    iterations: int
    divisor: int  # a public number of rows: the exact one under replace-one, a guess under add-remove
    rate: Number = Fraction(1)  # in units of the scale
    start: Number | None = None  # a public place, the middle of the bounds without one
    halvings: int = 0  # of a bracket, to get near before the first step
    scale_halvings: int = 11
    inference: bool = True

    def __post_init__(self) -> None:
        settle(
            self,
            iterations=positive_integer(self.iterations, name="iterations"),
            divisor=positive_integer(self.divisor, name="divisor"),
            rate=positive(self.rate, name="rate"),
            start=exact_or_none(self.start, name="start"),
            halvings=_not_negative(self.halvings, name="halvings"),
            scale_halvings=positive_integer(self.scale_halvings, name="scale_halvings"),
            inference=read_flag(self.inference, name="inference"),
        )
        if self.start is not None and self.halvings:
            raise InvalidParameter("say either start or halvings: halving starts in the middle of the bounds")

    def questions(self, *, psi: Psi, grid: Grid, scale: Fraction | None, resolution: int) -> Questions:
        start = Fraction(self.iterations, 4)
        weights = [start * bool(self.halvings), start * (scale is None), *[Fraction(1)] * self.iterations]
        first, spread, *steps, slope, square = shares_of([*weights, *[Fraction(self.inference)] * 2])
        moves: list[AdaptiveQuery[Place]] = [self._move(psi, grid, resolution, part) for part in steps]
        if self.inference:
            moves.append(Slope(share=slope, psi=psi, resolution=resolution))
            moves.append(Square(share=square, psi=psi, resolution=resolution))
        return (*_start(psi, self.halvings, first), *_scales(self.scale_halvings, spread), *moves)

    def _move(self, psi: Psi, grid: Grid, resolution: int, share: Fraction) -> GradientStep:
        return GradientStep(
            share=share,
            psi=psi,
            resolution=resolution,
            bounds=(float(grid.low), float(grid.high)),
            rate=float(self.rate),
            divisor=self.divisor,
        )

    def begin(self, *, grid: Grid, scale: Fraction | None) -> Place:
        return _begin(grid, scale, None if self.start is None else Fraction(self.start))

    def standard_error(self, place: Place) -> float:
        """Add to the sandwich the stationary variance of the descent: v = (1 - rate * slope)^2 v + (rate * noise)^2."""
        pull = float(self.rate) * place.slope / self.divisor
        if not 0 < pull < 2:
            return math.inf
        jump = float(self.rate) * place.noise / self.divisor
        return place.scale * math.sqrt(place.square / place.slope**2 + jump**2 / (1 - (1 - pull) ** 2))


def shares_of(weights: Sequence[Fraction | int]) -> list[Fraction]:
    """Return weights as shares that add up to one."""
    total = sum(weights, Fraction(0))
    return [Fraction(weight) / total for weight in weights]


def _start(psi: Psi, halvings: int, share: Fraction) -> Questions:
    at = Fraction(psi.q) if isinstance(psi, Quantile) else Fraction(1, 2)
    return tuple(HalveCentre(share=share / halvings, quantile=at) for _ in range(halvings if share else 0))


def _scales(halvings: int, share: Fraction) -> Questions:
    return tuple(HalveScale(share=share / halvings) for _ in range(halvings if share else 0))


def _halvings(asked: int | None, grid: Grid, scale: Fraction | None) -> int:
    if asked is not None:
        return asked
    if scale is None:
        return _FINEST
    return max(0, math.ceil(math.log2((grid.high - grid.low) / scale)) + _CLOSER)


def _begin(grid: Grid, scale: Fraction | None, start: Fraction | None) -> Place:
    low, high = float(grid.low), float(grid.high)
    middle = (low + high) / 2 if start is None else min(max(float(start), low), high)
    width = high - low
    # A median distance of at most half the width, at least half a step of the grid or a part in 2^20.
    least = max(width / (1 << _FINEST), float(grid.step) / 2)
    known = width / 4 if scale is None else float(scale)
    return Place(low=low, high=high, centre=middle, scale=known, least=min(least, width / 4), most=width / 2)


def _not_negative(value: int, *, name: str) -> int:
    if integer(value, name=name) < 0:
        raise InvalidParameter(f"{name} must not be negative")
    return int(value)
