"""Clipping rules for per-example gradients: each states the norm that no contribution exceeds.

A rule is public and frozen. `bound` is the l2 norm that what one record adds to the sum never exceeds, in the unit in
which the sum is formed: that of the gradient, or, for `AdaptiveClip`, the clip of the step itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, probability
from discreet.formatting import record
from discreet.mechanisms.parameters import settle

__all__ = ["AdaptiveClip", "Automatic", "Clip", "Flat", "PerLayer", "read_clip"]

_SMALLEST, _LARGEST = Fraction(1, 1 << 40), Fraction(1 << 40)  # Beyond these float32 has no room left for gradients.


@final
@dataclass(frozen=True, slots=True)
class Flat:
    """Shrink a gradient whose norm exceeds `clip` to that norm: factor min(1, clip / norm). [ACGMMTZ16]

    Args:
        clip: The largest norm, in the l2 norm over all parameters together.

    Raises:
        InvalidParameter: If the clip is out of range.

    Examples:
        >>> dp.learn.training.Flat("0.5").bound
        Fraction(1, 2)
    """

    clip: Fraction  # l2, over all parameters together

    __repr__ = record

    def __init__(self, clip: Number) -> None:
        settle(self, clip=_read(clip, "clip"))

    @property
    def bound(self) -> Fraction:
        """The largest norm of one contribution."""
        return self.clip


@final
@dataclass(frozen=True, slots=True)
class Automatic:
    """Bring every gradient near the norm `clip`: factor clip / (norm + gamma), so that no clip needs tuning. [BWZK23]

    The factor times the norm stays below `clip` for every norm, so the bound is that of `Flat`.

    Args:
        clip: The norm, in the l2 norm over all parameters together.
        gamma: What is added to the norm, in the unit of the gradient; it keeps small gradients small.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> dp.learn.training.Automatic().bound
        Fraction(1, 1)
    """

    clip: Fraction  # l2, over all parameters together
    gamma: Fraction  # keeps small gradients small; in the unit of the gradient

    __repr__ = record

    def __init__(self, clip: Number = 1, gamma: Number = "0.01") -> None:
        settle(self, clip=_read(clip, "clip"), gamma=_read(gamma, "gamma"))

    @property
    def bound(self) -> Fraction:
        """The largest norm of one contribution."""
        return self.clip


@final
@dataclass(frozen=True, slots=True)
class PerLayer:
    """Clip the gradient of each of K layers to clip / sqrt(K) by itself. [MRTZ18]

    K squares of clip / sqrt(K) add up to clip^2, so that the whole contribution has the bound of `Flat`, and the noise
    that all coordinates get is the same.

    Args:
        clip: The largest norm of all layers together, in the l2 norm.

    Raises:
        InvalidParameter: If the clip is out of range.

    Examples:
        >>> dp.learn.training.PerLayer(2).bound
        Fraction(2, 1)
    """

    clip: Fraction  # l2, over all parameters together

    __repr__ = record

    def __init__(self, clip: Number) -> None:
        settle(self, clip=_read(clip, "clip"))

    @property
    def bound(self) -> Fraction:
        """The largest norm of one contribution."""
        return self.clip


@final
@dataclass(frozen=True, slots=True)
class AdaptiveClip:
    """Let the clip follow a quantile of the norms, learnt from a noisy count in every step. [ATMR21]

    In step t a gradient is multiplied by 1 / max(norm, clip_t): the sum is in units of clip_t, which is public, so that
    one bound, one grid and one noise serve all steps, and the released gradient is multiplied by clip_t afterwards.
    A record also adds +1 to a count if its norm is at most clip_t and -1 otherwise. Gradient and count together are one
    Gaussian release of the plan's noise multiplier: `TrainingPlan` splits it.

    Args:
        initial: The clip of the first step, in the l2 norm over all parameters together.
        quantile: The share of norms that should lie below the clip, strictly between 0 and 1.
        rate: How fast the clip follows: the factor of a step is e^rate at most. At most 1.
        count_noise: The standard deviation of the noise on the count, of which a record adds 1/2 or takes 1/2; a
            twentieth of the batch if not said.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> plan = dp.learn.training.plan_training(
        ...     noise_multiplier=1, delta=1e-5, public_rows=10_000, batch_size=100, steps=10,
        ...     clip=dp.learn.training.AdaptiveClip(initial=1), parameters=1000, physical_batch=50,
        ... )
        >>> plan.clip.quantile
        Fraction(1, 2)
    """

    initial: Fraction
    quantile: Fraction  # the share of norms that should lie below the clip
    rate: Fraction  # of the geometric update, for one step
    count_noise: Fraction | None  # standard deviation on a sum of +-1/2; None: a twentieth of the batch

    __repr__ = record

    def __init__(
        self,
        initial: Number,
        quantile: Number = "0.5",
        rate: Number = "0.2",
        count_noise: Number | None = None,
    ) -> None:
        share = probability(quantile, name="quantile")
        if share in (0, 1):
            raise InvalidParameter("quantile must lie strictly between 0 and 1")
        noise = None if count_noise is None else positive(count_noise, name="count_noise")
        pace = positive(rate, name="rate")
        if pace > 1:
            raise InvalidParameter("rate must be at most 1: a clip that jumps by more than e in a step never settles")
        settle(self, initial=_read(initial, "initial"), quantile=share, rate=pace, count_noise=noise)

    @property
    def bound(self) -> Fraction:
        """The largest norm of one contribution, in units of the clip of the step."""
        return Fraction(1)

    def updated(self, clip: float, share: float) -> float:
        """Return the next clip from this one and a noisy share of norms below it; both are public."""
        moved = math.log(clip) - float(self.rate) * (share - float(self.quantile))
        low, high = math.log(self.initial) - _REACH, math.log(self.initial) + _REACH
        return math.exp(min(max(moved, low), high))


Clip: TypeAlias = Flat | Automatic | PerLayer | AdaptiveClip
_REACH = 14.0  # The clip stays within a factor of a million of where it began, whatever the noise says.


def read_clip(clip: Clip | Number) -> Clip:
    """Return a rule as it is, and a number as `Flat` clipping to that norm."""
    if isinstance(clip, Flat | Automatic | PerLayer | AdaptiveClip):
        return clip
    return Flat(clip)


def _read(value: Number, name: str) -> Fraction:
    number = exact(value, name=name)
    if not _SMALLEST <= number <= _LARGEST:
        raise InvalidParameter(f"{name} must lie between 2^-40 and 2^40")
    return number
