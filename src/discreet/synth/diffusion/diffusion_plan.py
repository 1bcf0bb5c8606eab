"""A priced fit: what is bought first, what learning costs, and both together for what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Self, final

from discreet.errors import InvalidParameter
from discreet.formatting import plain, significant_up
from discreet.privacy import Composed, Event, Gaussian, PoissonSampled, Relation, Repeated, calibrate
from discreet.synth.diffusion.warm_up import CentralRelease, FrameRelease
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.method import Terms

if TYPE_CHECKING:
    from discreet.synth.diffusion.diffusion_method import Diffusion
    from discreet.synth.diffusion.diffusion_model import DiffusionModel

__all__ = ["DiffusionPlan", "LearningSchedule"]

# --- schedule: How often, how much and how fast is learnt: as somebody said, or chosen from public numbers. ---


_MUCH = 3  # An epsilon from which on gradients say much more than averages do.
_LARGEST = 4096  # A batch, if none is said.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSchedule:
    """All of it is public."""

    public_rows: int
    batch_size: int
    steps: int
    learning_rate: float

    @classmethod
    def of(cls, method: Diffusion, terms: Terms[Images]) -> Self:
        """Choose what was not said: where noise is large, few and small steps learn most."""
        size = terms.public_rows
        assert size is not None
        batch = method.batch_size or min(_LARGEST, max(32, size // 12))
        if batch > size:
            raise InvalidParameter("batch_size must not exceed public_rows, about how many pictures there are")
        steps, rate = (500, 5e-3) if terms.epsilon >= _MUCH else (150, 2e-3)
        return cls(
            public_rows=size,
            batch_size=batch,
            steps=method.steps or steps,
            learning_rate=method.learning_rate or rate,
        )

    @property
    def rate(self) -> Fraction:
        """How often a picture takes part in a step."""
        return Fraction(self.batch_size, self.public_rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionPlan:
    """What will be done and what it costs.

    Guarantee   `event`, for adding or removing one picture: Gaussian releases of sums if there is a warm-up, and one on
                a Poisson sample for each step. The number of draws K is not in it.
    Theorem     Composition: how much noise each release has is fixed in advance, whatever earlier ones showed;
                everything else is post-processing. [DCVK23]
    """

    method: Diffusion
    domain: Images
    schedule: LearningSchedule
    delta: Fraction
    central: CentralRelease | None
    frames: FrameRelease | None
    noise_multiplier: Fraction  # of gradients

    @classmethod
    def of(cls, method: Diffusion, terms: Terms[Images]) -> Self:
        """Give the warm-up its share, and learning the least noise that keeps epsilon."""
        schedule = LearningSchedule.of(method, terms)
        central, frames = _bought_first(method, terms)
        first = tuple(part.event for part in (central, frames) if part is not None)
        multiplier = _multiplier(terms.epsilon, terms.delta, first, schedule.rate, schedule.steps)
        return cls(
            method=method,
            domain=terms.domain,
            schedule=schedule,
            delta=terms.delta,
            central=central,
            frames=frames,
            noise_multiplier=multiplier,
        )

    @property
    def event(self) -> Event:
        """What is charged."""
        first = tuple(part.event for part in (self.central, self.frames) if part is not None)
        return _event(first, self.noise_multiplier, self.schedule.rate, self.schedule.steps)

    @property
    def learning(self) -> Event:
        """The part of it that noisy gradients spend."""
        return _event((), self.noise_multiplier, self.schedule.rate, self.schedule.steps)

    def describe(self) -> str:
        clip, noise = plain(Fraction(self.method.clip)), significant_up(self.noise_multiplier)
        rate, draws = plain(self.schedule.rate), self.method.draws
        return (
            f"a diffusion model of {self.domain.height} x {self.domain.width} pictures: {self._bought()}"
            f"{self.schedule.steps:,} steps, in each of which every picture takes part with probability "
            f"{rate} and its gradient, of {draws} noisy copies together, counts at most "
            f"{clip}; normal noise of {noise} times that is added"
        )

    def try_out(self) -> None:
        """Refuse now, before anything is paid, what could not be trained privately on this machine."""
        from discreet.synth.diffusion.denoiser_training import try_out

        try_out(self)

    def _bought(self) -> str:
        if self.central is None:
            return ""
        noise = significant_up(self.central.noise_multiplier)
        return f"noisy averages of each class first, with normal noise of {noise} times what one picture can change; "

    def fit(self, rows: ImageRows, *, progress: bool) -> DiffusionModel:
        """Read the pictures and learn. It is called once, after the charge."""
        from discreet.synth.diffusion.denoiser_training import train

        return train(self, rows, progress=progress)


def _bought_first(method: Diffusion, terms: Terms[Images]) -> tuple[CentralRelease | None, FrameRelease | None]:
    """Split the share of the warm-up: a third for all classes together, two thirds for each by itself."""
    if method.warm_up is None:
        return None, None
    pixels, whole = terms.domain.pixels, _alone(terms.epsilon, terms.delta) ** 2 / Fraction(method.warm_up.share)
    turned = method.warm_up.places is not None
    central = CentralRelease(
        pixels=pixels,
        classes=len(terms.domain.classes),
        noise_multiplier=_root_up(3 * whole if turned else whole),
        products=turned,
    )
    return central, FrameRelease(pixels=pixels, noise_multiplier=_root_up(whole * 3 / 2)) if turned else None


def _root_up(value: Fraction) -> Fraction:
    """A root that is rounded up to a multiple of 1/1024."""
    return Fraction(isqrt(int(value * 1024**2)) + 1, 1024)


def _event(first: tuple[Event, ...], multiplier: Fraction, rate: Fraction, steps: int) -> Event:
    learning = Repeated(PoissonSampled(Gaussian(multiplier), rate), steps)
    return Composed((*first, learning)) if first else learning


@lru_cache(64)
def _alone(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The noise multiplier of a Gaussian release that spends everything."""
    return calibrate(Gaussian, epsilon=epsilon, delta=delta, relation=Relation.ADD_REMOVE)


@lru_cache(64)
def _multiplier(epsilon: Fraction, delta: Fraction, first: tuple[Event, ...], rate: Fraction, steps: int) -> Fraction:
    return calibrate(
        lambda multiplier: _event(first, multiplier, rate, steps),
        epsilon=epsilon,
        delta=delta,
        relation=Relation.ADD_REMOVE,
    )
