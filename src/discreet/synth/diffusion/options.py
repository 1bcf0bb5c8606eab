"""What a diffusion model is made of and how it is drawn from: frozen, public, with the usual values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive_integer
from discreet.mechanisms.fields import settle

__all__ = ["Convolutional", "Ddim", "Heun", "Linear", "Network", "Sampler", "WarmUp"]

_MOST, _LARGEST = {"blocks": 64, "sizes": 8}, 1 << 14  # Beyond, no machine would come to an end.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A network of linear layers, for CPUs: `blocks` residual blocks of `hidden` numbers."""

    hidden: int = 128
    blocks: int = 1

    def __post_init__(self) -> None:
        _whole(hidden=self.hidden, blocks=self.blocks)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Convolutional:
    """A U-net like that of the paper: channels at each size of the picture, residual blocks, attention. [DCVK23]"""

    channels: int = 32
    factors: tuple[int, ...] = (1, 2, 2)  # of `channels` at the full size, half of it, a quarter of it …
    blocks: int = 2

    def __post_init__(self) -> None:
        _whole(channels=self.channels, blocks=self.blocks)
        if not self.factors or any(not isinstance(factor, int) or not 1 <= factor <= 64 for factor in self.factors):
            raise InvalidParameter("factors must be whole numbers, one for each size of the picture, such as (1, 2, 2)")
        _whole(sizes=len(self.factors))
        if self.channels % 8:
            raise InvalidParameter("channels must be a multiple of 8")


Network: TypeAlias = Linear | Convolutional


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """Buy noisy averages of each class first, so that gradients need not tell them.

    share     of the budget, as squared Gaussian privacy
    places    how many axes along which pictures of one class differ are learnt; None stays with the pixels
    """

    share: Number = Fraction(3, 10)
    places: int | None = 64

    def __post_init__(self) -> None:
        settle(self, share=exact(self.share, name="share"))
        if not 0 < Fraction(self.share) < 1:
            raise InvalidParameter("share must lie between 0 and 1: the part of the budget that the averages get")
        if self.places is not None:
            _whole(places=self.places)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Heun:
    """Steps with a second look, and fresh noise on the way ("churn") between two levels. [KAAL22]"""

    steps: int = 24
    churn: float = 10.0
    churn_from: float = 0.1
    churn_to: float = 50.0
    guidance: float = 0.0

    def __post_init__(self) -> None:
        _whole(steps=self.steps)
        _not_negative(churn=self.churn, churn_from=self.churn_from, churn_to=self.churn_to, guidance=self.guidance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ddim:
    """Plain steps; with `stochastic` fresh noise in each of them. [SME21]"""

    steps: int = 50
    stochastic: bool = False
    guidance: float = 0.0

    def __post_init__(self) -> None:
        _whole(steps=self.steps)
        _not_negative(guidance=self.guidance)


Sampler: TypeAlias = Heun | Ddim


def _whole(**values: int) -> None:
    for name, value in values.items():
        if positive_integer(value, name=name) > _MOST.get(name, _LARGEST):
            raise InvalidParameter(f"{name} must be at most {_MOST.get(name, _LARGEST)}")


def _not_negative(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            raise InvalidParameter(f"{name} must be a number from 0 on")
