"""Diffusion as a method: options, all public, and the plan that follows from them and from the terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self, TypeAlias, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, positive, positive_integer
from discreet.formatting import record
from discreet.learn.extras import require
from discreet.mechanisms.parameters import settle
from discreet.privacy.relation import Relation
from discreet.synth.diffusion.diffusion_plan import DiffusionPlan
from discreet.synth.domain.images import Images
from discreet.synth.method import Terms

__all__ = ["Convolutional", "Ddim", "Diffusion", "Heun", "Linear", "Network", "Sampler", "WarmUp"]

# --- options: What a diffusion model is made of and how it is drawn from: frozen, public, with the usual values. ---


_MOST, _LARGEST = {"blocks": 64, "sizes": 8}, 1 << 14  # Beyond, no machine would come to an end.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A network of linear layers, for CPUs: `blocks` residual blocks of `hidden` numbers.

    Args:
        hidden: The width of each block.
        blocks: How many residual blocks.

    Examples:
        >>> dp.synth.diffusion.Linear(hidden=64).blocks
        1
    """

    hidden: int = 128
    blocks: int = 1

    __repr__ = record

    def __post_init__(self) -> None:
        _whole(hidden=self.hidden, blocks=self.blocks)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Convolutional:
    """A U-net like that of the paper: channels at each size of the picture, residual blocks, attention. [DCVK23]

    Args:
        channels: The channels at the full size, a multiple of 8.
        factors: Factors of `channels` at the full size, half of it, a quarter of it and so on.
        blocks: How many residual blocks at each size.

    Raises:
        InvalidParameter: If `channels` is no multiple of 8.

    Examples:
        >>> dp.synth.diffusion.Convolutional(channels=16).factors
        (1, 2, 2)
    """

    channels: int = 32
    factors: tuple[int, ...] = (1, 2, 2)  # of `channels` at the full size, half of it, a quarter of it …
    blocks: int = 2

    __repr__ = record

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

    Args:
        share: The part of the budget that they get, as squared Gaussian privacy.
        places: How many axes along which pictures of one class differ are learnt; None stays with the pixels.

    Raises:
        InvalidParameter: If the share does not lie between 0 and 1.

    Examples:
        >>> dp.synth.diffusion.WarmUp(places=None).share
        Fraction(3, 10)
    """

    share: Number = Fraction(3, 10)
    places: int | None = 64

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, share=exact(self.share, name="share"))
        if not 0 < Fraction(self.share) < 1:
            raise InvalidParameter("share must lie between 0 and 1: the part of the budget that the averages get")
        if self.places is not None:
            _whole(places=self.places)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Heun:
    """Steps with a second look, and fresh noise on the way ("churn") between two levels. [KAAL22]

    Args:
        steps: How many steps of drawing.
        churn: How much fresh noise is added on the way.
        churn_from: The least noise level at which it is added.
        churn_to: The largest one.
        guidance: How much the class counts beyond what was learnt.

    Examples:
        >>> dp.synth.diffusion.Heun(steps=12).churn
        10.0
    """

    steps: int = 24
    churn: float = 10.0
    churn_from: float = 0.1
    churn_to: float = 50.0
    guidance: float = 0.0

    __repr__ = record

    def __post_init__(self) -> None:
        _whole(steps=self.steps)
        _not_negative(churn=self.churn, churn_from=self.churn_from, churn_to=self.churn_to, guidance=self.guidance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ddim:
    """Plain steps; with `stochastic` fresh noise in each of them. [SME21]

    Args:
        steps: How many steps of drawing.
        stochastic: Whether each step has fresh noise.
        guidance: How much the class counts beyond what was learnt.

    Examples:
        >>> dp.synth.diffusion.Ddim(steps=20).stochastic
        False
    """

    steps: int = 50
    stochastic: bool = False
    guidance: float = 0.0

    __repr__ = record

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


_MOST_PIXELS = 1024  # Of pictures whose products of pixels are bought: there are half a million of them.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Diffusion:
    """A diffusion model of pictures, trained by noisy gradients. [DCVK23]

    Args:
        network: `Linear()` for CPUs, `Convolutional()` as in the paper.
        draws: Noisy copies of a picture in each step; privacy does not depend on it.
        batch_size: Pictures in a step, by a coin each; chosen from `public_rows` if not said.
        steps: Of learning; more for a larger epsilon if not said.
        learning_rate: Of Adam at its highest, which rises for 20 steps and then falls; chosen with the steps.
        clip: The largest l2 norm of one picture's gradient.
        ema: The decay of averaged weights, which are what is kept.
        label_drop: How often a picture is shown without its class, for guidance.
        levels: Mean and deviation of the logarithm of noise levels; pixels go from -1 to 1.
        spread: A guess of the deviation of pixels, where nothing was bought.
        warm_up: Noisy averages of each class, bought first; None for none.
        sampler: `Heun` or `Ddim`: how pictures are drawn.
        physical_batch: Pictures of one forward pass, a multiple of 32.

    Raises:
        InvalidParameter: If the options do not go together.

    Examples:
        >>> dp.synth.diffusion.Diffusion(steps=100).name
        'diffusion'
    """

    network: Network = field(default_factory=Linear)
    draws: int = 4
    batch_size: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    clip: Number = Fraction(1, 10)
    ema: float = 0.98
    label_drop: float = 0.1
    levels: tuple[float, float] = (-1.0, 1.2)
    spread: float = 0.5
    warm_up: WarmUp | None = field(default_factory=WarmUp)
    sampler: Sampler = field(default_factory=Heun)
    physical_batch: int | None = None

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, clip=positive(self.clip, name="clip"))
        for name in ("draws", "steps", "batch_size", "physical_batch"):
            if getattr(self, name) is not None:
                positive_integer(getattr(self, name), name=name)
        if self.learning_rate is not None:
            _between(0, 1, learning_rate=self.learning_rate)
        _between(0, 1, ema=self.ema, label_drop=self.label_drop)
        _between(0, 10, spread=self.spread, deviation_of_levels=self.levels[1])
        _between(-10, 10, mean_of_levels=self.levels[0])
        if isinstance(self.network, Convolutional) and self.warm_up is not None and self.warm_up.places is not None:
            raise InvalidParameter(
                "a convolutional network needs pixels beside each other: say warm_up=WarmUp(places=None) or None"
            )

    @property
    def name(self) -> str:
        return "diffusion"

    @classmethod
    def as_published(cls) -> Self:
        """The size of the paper: a U-net, 32 draws, batches of 4,096. On CPUs it takes days. [DCVK23]"""
        return cls(
            network=Convolutional(),
            draws=32,
            batch_size=4096,
            steps=4500,
            learning_rate=3e-4,
            clip=1,
            ema=0.999,
            levels=(-1.2, 1.2),
            spread=(1 / 3) ** 0.5,
            warm_up=None,
            sampler=Heun(steps=1000, churn=10.0, churn_from=0.025),
            physical_batch=32,
        )

    def plan(self, terms: Terms[Images]) -> DiffusionPlan:
        """Price a fit of pictures, or refuse; nothing is read."""
        require("torch", extra="synth")
        _check(terms)
        places = None if self.warm_up is None else self.warm_up.places
        if places is not None and terms.domain.pixels > _MOST_PIXELS:
            raise InvalidParameter(
                f"pictures of more than {_MOST_PIXELS} pixels have too many products of pixels: make them smaller, "
                "or say Diffusion(warm_up=WarmUp(places=None))"
            )
        planned = DiffusionPlan.of(self, terms)
        planned.try_out()
        return planned


def _check(terms: Terms[Images]) -> None:
    if terms.relation is not Relation.ADD_REMOVE:
        raise Refused(
            "diffusion is private for adding or removing one picture, not for replacing one",
            reason="each picture joins a step by a coin of its own, and the bound for such samples is proven for that",
            way_out='say relation=Relation.ADD_REMOVE, or method="merf"',
        )
    if terms.rows_per_unit != 1:
        raise Refused(
            "diffusion protects single pictures, and a person may have several here",
            reason="gradients are clipped picture by picture",
            way_out='keep one picture of each person, or say method="merf"',
        )
    if terms.public_rows is None:
        raise Refused(
            "diffusion needs to know about how many pictures there are",
            reason="how often each takes part is public, and must not come from counting them",
            way_out="say public_rows=60_000, a number that everybody may know",
        )
    if terms.delta == 0:
        raise Refused("diffusion needs a delta above 0: its noise is Gaussian", way_out="say delta=1e-5, for example")


def _between(low: float, high: float, **values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
            raise InvalidParameter(f"{name.replace('_', ' ')} must lie between {low} and {high}")
