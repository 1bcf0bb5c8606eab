"""DP-MERF for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.privacy.events import Event
from discreet.synth.domain.images import BRIGHTEST, ImageRows, Images
from discreet.synth.merf.circle import RADIUS
from discreet.synth.merf.how import Training
from discreet.synth.merf.models import MerfImageModel
from discreet.synth.merf.pictures import PictureEmbedding
from discreet.synth.merf.reach import Reach
from discreet.synth.merf.summing import Price, price, summed
from discreet.synth.merf.waves import picture_waves
from discreet.synth.method import Terms
from discreet.synth.progress import progress_line

__all__ = ["MerfImagePlan", "MerfImages"]

_ROWS = 400  # Of a training batch, over all classes.
_LEAST = 8
_COUNT_SHARE, _PIXEL_SHARE = 15, 3  # One in so many of the squared length goes to the counts and to the pixels.
_DARKEST = 8  # A picture keeps its scale up to this one in so many of the brightest one's squared length.
_MOST = 1 << 16
_RATE, _SCALE, _GREY = 5e-3, 0.5, 0.2  # Learning rate, and the brightness of pictures before training.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MerfImages:
    """Pictures by one noisy sum of random features, and a generator fitted to it. [HAP21]

    Each picture is one vector in the place of its class: a constant, which counts; its pixels; and cosines and sines of
    random waves over windows of it. The sum over all pictures is released once, with Gaussian noise.
    """

    waves: int = 3000
    steps: int = 1500  # of training, which is free
    hidden: int = 256
    codes: int = 24

    @property
    def name(self) -> str:
        return "merf"

    def plan(self, terms: Terms[Images]) -> MerfImagePlan:
        """Plan a fit; nothing is read."""
        for option in ("waves", "steps", "hidden", "codes"):
            if positive_integer(getattr(self, option), name=option) > _MOST:
                raise InvalidParameter(f"{option} must be at most {_MOST}")
        reach = _reach(self.waves)
        paid = price(
            reach,
            epsilon=terms.epsilon,
            delta=terms.delta,
            relation=terms.relation,
            rows_per_unit=terms.rows_per_unit,
        )
        return MerfImagePlan(method=self, domain=terms.domain, price=paid)


def _reach(waves: int) -> Reach:
    turning = waves * RADIUS**2
    return Reach(
        constant=isqrt(turning // _COUNT_SHARE) ** 2, positive=isqrt(turning // _PIXEL_SHARE) ** 2, turning=turning
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MerfImagePlan:
    """One noisy sum, then free training."""

    method: MerfImages
    domain: Images
    price: Price

    @property
    def event(self) -> Event:
        return self.price.event

    def describe(self) -> str:
        return (
            f"one noisy sum of {self.method.waves} random waves, of all pixels and of the counts of "
            f"{len(self.domain.classes)} classes, then {self.method.steps} free steps of training"
        )

    def fit(self, rows: ImageRows, *, progress: bool) -> MerfImageModel:
        """Draw waves, read the pictures once, release their noisy sum, and train a generator on it."""
        from discreet.synth.merf.picture_matching import PictureMatching
        from discreet.synth.merf.training import train

        embedding = self._embedding()
        sums = self.price.release(summed(embedding, rows.pixels(), rows.labels(), len(self.domain.classes)))
        matching = PictureMatching(embedding, sums)
        with progress_line("training", self.method.steps, shown=progress) as tell:
            network = train(matching, self._training(), scale=_SCALE, start=[_GREY] * self.domain.pixels, tell=tell)
        return MerfImageModel(self.domain, network, matching.spread(), matching.targets.counts)

    def _embedding(self) -> PictureEmbedding:
        reach = _reach(self.method.waves)
        return PictureEmbedding(
            picture_waves(self.domain.height, self.domain.width, self.method.waves),
            constant=isqrt(reach.constant),
            brightness=isqrt(reach.positive),
            darkest=max(1, isqrt(self.domain.pixels * BRIGHTEST**2 // _DARKEST)),
        )

    def _training(self) -> Training:
        return Training(
            steps=self.method.steps,
            rows_per_class=max(_LEAST, _ROWS // len(self.domain.classes)),
            codes=self.method.codes,
            hidden=self.method.hidden,
            learning_rate=_RATE,
        )
