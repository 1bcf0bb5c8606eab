"""DP-MERF for pictures, by random waves or by Hermite functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, Protocol, final

import numpy as np

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.formatting import record
from discreet.learn.extras import require
from discreet.privacy.events import Event
from discreet.synth.domain.images import BRIGHTEST, ImageRows, Images
from discreet.synth.merf.features import RADIUS, PictureEmbedding, picture_waves
from discreet.synth.merf.generator import TrainingOptions, training_for
from discreet.synth.merf.hermite import HermiteEmbedding, hermite_table
from discreet.synth.merf.merf_models import MerfImageModel
from discreet.synth.merf.sensitivity import Embedding, NoisySums, SumPrice, price, summed
from discreet.synth.method import Terms, progress_line

__all__ = [
    "HermiteImages",
    "MerfImagePlan",
    "MerfImages",
    "PictureRecipe",
    "check_numbers",
    "check_options",
    "plan_pictures",
]

# --- recipes ---
# What methods for pictures share: options within reason, and a plan of one noisy sum and free training.


_MANY = ("waves", "steps", "pairs")
_MOST, _WIDEST = 1 << 16, 1 << 11
_RECIPES_LARGEST = 1 << 26


class PictureRecipe(TrainingOptions, Protocol):
    """The features of a method for pictures, and how its generator is trained."""

    def describe(self, classes: int) -> str:
        """Say what is summed."""

    def embedding(self, domain: Images) -> Embedding:
        """Draw the public rule that makes a picture a vector."""

    def matching(self, embedding: Any, sums: NoisySums) -> Any:
        """Return what a generator is to match. This needs torch."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MerfImagePlan:
    """One noisy sum, then free training. The features are drawn already, and priced as they are."""

    recipe: PictureRecipe
    domain: Images
    embedding: Embedding
    price: SumPrice

    @property
    def event(self) -> Event:
        return self.price.event

    def describe(self) -> str:
        return f"{self.recipe.describe(len(self.domain.classes))}, then {self.recipe.steps} free steps of training"

    def fit(self, rows: ImageRows, *, progress: bool) -> MerfImageModel:
        """Read the pictures once, release their noisy sum, and train a generator on it."""
        from discreet.synth.merf.generator_training import train

        sums = self.price.release(summed(self.embedding, rows.pixels(), rows.labels(), len(self.domain.classes)))
        matching = self.recipe.matching(self.embedding, sums)
        how = training_for(self.recipe, len(self.domain.classes))
        with progress_line("training", how.steps, shown=progress) as tell:
            network = train(matching, how, start=matching.start, tell=tell)
        return MerfImageModel(self.domain, network, matching.canvas.spread(), matching.targets.counts)


def check_options(method: object, *names: str) -> None:
    """Refuse options that are no sane whole numbers, and machines without torch, while nothing is spent yet."""
    require("torch", extra="synth")
    for name in names:
        most = _MOST if name in _MANY else _WIDEST
        if positive_integer(getattr(method, name), name=name) > most:
            raise InvalidParameter(f"{name} must be at most {most}")


def check_numbers(numbers: int, way_out: str) -> None:
    """Refuse features that no memory holds, while nothing is spent yet."""
    if numbers > _RECIPES_LARGEST:
        raise InvalidParameter(f"DP-MERF would need {numbers:,} numbers for its features alone: {way_out}")


def plan_pictures(recipe: PictureRecipe, terms: Terms[Images]) -> MerfImagePlan:
    """Price a sum of such features; nothing is read."""
    embedding = recipe.embedding(terms.domain)
    return MerfImagePlan(recipe=recipe, domain=terms.domain, embedding=embedding, price=price(embedding.reach, terms))


_COUNT_SHARE, _PIXEL_SHARE = 15, 3  # Counts and pixels have one in so many of the waves' squared length.
_LARGEST = 128 * 128  # Pixels; in larger pictures a wave over all of it turns by less than a step in most.
_DARKEST = 8  # A picture keeps its scale up to one in so many of the brightest one's squared length.
_RADII = 1 << 14, 1 << 7  # What stands for 1 in the functions of a pixel alone, and of each pixel of a pair.
_LENGTHS = 0.22, 0.45  # Of the kernels of a pixel alone and of a pair, black and white being 1 apart.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MerfImages:
    """Pictures by one noisy sum of random features, and a generator fitted to it. [HAP21, RR07]

    Each picture is one vector in the place of its class: a constant, which counts; its pixels; and cosines and sines of
    random waves over windows of it. The sum over all pictures is released once, with Gaussian noise.

    Args:
        waves: How many random features.
        steps: How many steps of training, which is free.
        hidden: The width of the generator.
        codes: How many random numbers it starts from.

    Examples:
        >>> dp.synth.merf.MerfImages(waves=1000).name
        'merf'
    """

    waves: int = 3000
    steps: int = 1200  # of training, which is free
    hidden: int = 256
    codes: int = 24

    __repr__ = record

    @property
    def name(self) -> str:
        return "merf"

    def plan(self, terms: Terms[Images]) -> MerfImagePlan:
        """Plan a fit; nothing is read."""
        check_options(self, "waves", "steps", "hidden", "codes")
        if terms.domain.pixels > _LARGEST:
            raise InvalidParameter("DP-MERF is for pictures of at most 128 x 128 pixels: make them smaller")
        check_numbers(self.waves * terms.domain.pixels, "choose fewer waves, or make the pictures smaller")
        return plan_pictures(self, terms)

    def describe(self, classes: int) -> str:
        return f"one noisy sum of {self.waves} random waves, of all pixels and of the counts of {classes} classes"

    def embedding(self, domain: Images) -> PictureEmbedding:
        """Draw waves."""
        turning = self.waves * RADIUS**2
        return PictureEmbedding(
            picture_waves(domain.height, domain.width, self.waves),
            constant=isqrt(turning // _COUNT_SHARE),
            brightness=isqrt(turning // _PIXEL_SHARE),
            darkest=max(1, isqrt(domain.pixels * BRIGHTEST**2 // _DARKEST)),
        )

    def matching(self, embedding: PictureEmbedding, sums: NoisySums) -> Any:
        from discreet.synth.merf.matching import PictureMatching

        return PictureMatching(embedding, sums)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HermiteImages:
    """Pictures by one noisy sum of Hermite features of pixels and of pairs of pixels (DP-HP). [VHAP22]

    The authors charge two releases and draw pairs anew in each round; here all pairs are drawn before the one release.

    Args:
        order: The order of the functions of a pixel alone.
        pairs: How many pairs of pixels.
        pair_order: The order of the functions of each pixel of a pair.
        steps: How many steps of training, which is free.
        hidden: The width of the generator.
        codes: How many random numbers it starts from.

    Examples:
        >>> dp.synth.merf.HermiteImages().name
        'merf'
    """

    order: int = 16  # of the functions of a pixel alone
    pairs: int = 500
    pair_order: int = 4  # of the functions of each pixel of a pair
    steps: int = 1200
    hidden: int = 256
    codes: int = 24

    __repr__ = record

    @property
    def name(self) -> str:
        return "merf"

    def plan(self, terms: Terms[Images]) -> MerfImagePlan:
        """Plan a fit; nothing is read."""
        check_options(self, "order", "pairs", "pair_order", "steps", "hidden", "codes")
        features = terms.domain.pixels * (self.order + 1) + self.pairs * (self.pair_order + 1) ** 2
        check_numbers(features * len(terms.domain.classes), "choose lower orders, fewer pairs, or smaller pictures")
        return plan_pictures(self, terms)

    def describe(self, classes: int) -> str:
        return (
            f"one noisy sum of {self.order + 1} Hermite functions of every pixel, of those of {self.pairs} pairs of "
            f"pixels and of the counts of {classes} classes"
        )

    def embedding(self, domain: Images) -> HermiteEmbedding:
        """Draw pairs of pixels."""
        return HermiteEmbedding(
            domain.pixels,
            hermite_table(_RADII[0], _LENGTHS[0], self.order),
            noise.uniform(domain.pixels, (self.pairs, 2)).astype(np.int64),
            hermite_table(_RADII[1], _LENGTHS[1], self.pair_order),
            constant=max(1, isqrt(domain.pixels * _RADII[0] ** 2 // _COUNT_SHARE)),
        )

    def matching(self, embedding: HermiteEmbedding, sums: NoisySums) -> Any:
        from discreet.synth.merf.matching import HermiteMatching

        return HermiteMatching(embedding, sums, radii=_RADII, lengths=_LENGTHS)
