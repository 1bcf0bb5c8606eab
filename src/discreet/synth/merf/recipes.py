"""What methods for pictures share: options within reason, and a plan of one noisy sum and free training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, final

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.learn.extras import require
from discreet.privacy.events import Event
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.merf.how import TrainingOptions, training_for
from discreet.synth.merf.models import MerfImageModel
from discreet.synth.merf.summing import Embedding, NoisySums, SumPrice, price, summed
from discreet.synth.method import Terms
from discreet.synth.progress import progress_line

__all__ = ["MerfImagePlan", "PictureRecipe", "check_numbers", "check_options", "plan_pictures"]

_MANY = ("waves", "steps", "pairs")
_MOST, _WIDEST = 1 << 16, 1 << 11
_LARGEST = 1 << 26


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
        from discreet.synth.merf.training import train

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
    if numbers > _LARGEST:
        raise InvalidParameter(f"DP-MERF would need {numbers:,} numbers for its features alone: {way_out}")


def plan_pictures(recipe: PictureRecipe, terms: Terms[Images]) -> MerfImagePlan:
    """Price a sum of such features; nothing is read."""
    embedding = recipe.embedding(terms.domain)
    return MerfImagePlan(recipe=recipe, domain=terms.domain, embedding=embedding, price=price(embedding.reach, terms))
