"""Pictures: sample sheets, models that are trained on synthetic ones, and whether real ones were copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.evaluation.caps import PEOPLE
from discreet.evaluation.closeness import Closeness, spread_of
from discreet.evaluation.evaluation import Attacked, Evaluation, Likeness
from discreet.evaluation.image_models import image_models
from discreet.evaluation.image_sheets import sheets
from discreet.evaluation.membership import CLOSEST, MembershipSearch, judged
from discreet.evaluation.notes import picture_notes
from discreet.evaluation.pixels import Pictures, closest_pictures, pictures_of
from discreet.privacy.notprivate import NotPrivate
from discreet.synth.domain import Images
from discreet.synth.model import SyntheticImageModel
from discreet.synth.pictures import SyntheticImages
from discreet.synth.promise import Promise

__all__ = ["evaluate_images", "evaluate_images_publicly"]

_MANY = 10_000  # Synthetic pictures that are drawn from a model, and that are looked at.
_TITLE = "Synthetic pictures"


def evaluate_images(
    synthetic: Any,
    real: Any,
    *,
    holdout: Any | None = None,
    domain: Images | None = None,
    promise: Promise | None = None,
    title: str = _TITLE,
    error: float = 1e-3,
    say: Callable[[str], None] | None = None,
) -> NotPrivate[Evaluation]:
    """Compare synthetic pictures with real ones, and attack them, for the custodian's eyes only.

    `synthetic` is a model of pictures, or pictures with their labels; `real` and `holdout` are pairs (images, labels).
    """
    told = say or (lambda _: None)
    subject = _subject(synthetic, domain, promise)
    true = pictures_of(real, subject.domain)
    outside = None if holdout is None else pictures_of(holdout, subject.domain)
    told("training models on synthetic and on real pictures")
    down = image_models(subject.made, true, outside)
    told("looking for the closest pictures")
    found = Evaluation(
        title=title,
        standing="custodian",
        compared="the real pictures",
        columns=("pixels", "class"),
        rows=len(subject.made),
        promise=subject.promise,
        likeness=Likeness(downstream=down, sheets=sheets(subject.domain, subject.made, true)),
        attacked=_attacked(subject, true, outside),
        error=error,
        notes=picture_notes(_MANY),
    )
    return NotPrivate(found)


def evaluate_images_publicly(
    synthetic: Any,
    public: Any,
    *,
    domain: Images | None = None,
    promise: Promise | None = None,
    title: str = _TITLE,
) -> Evaluation:
    """Compare synthetic pictures with public ones; the private pictures are not read, so it may be published."""
    subject = _subject(synthetic, domain, promise)
    known = pictures_of(public, subject.domain)
    return Evaluation(
        title=title,
        standing="public",
        compared="the public pictures",
        columns=("pixels", "class"),
        rows=len(subject.made),
        promise=subject.promise,
        likeness=Likeness(
            downstream=image_models(subject.made, known, None),
            sheets=sheets(subject.domain, subject.made, known),
        ),
        notes=picture_notes(_MANY),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    domain: Images
    made: Pictures
    promise: Promise | None


def _subject(synthetic: Any, domain: Images | None, promise: Promise | None) -> _Subject:
    known = getattr(synthetic, "domain", None) if domain is None else domain
    if not isinstance(known, Images):
        raise InvalidParameter("say what the pictures are: domain=Images(height, width, classes=…), as it was declared")
    drawn = synthetic.sample(_MANY) if isinstance(synthetic, SyntheticImageModel) else synthetic
    pair = (drawn.images, drawn.labels) if isinstance(drawn, SyntheticImages) else drawn
    told = getattr(synthetic, "promise", None) if promise is None else promise
    return _Subject(known, pictures_of(pair, known).some(_MANY), told)


def _attacked(subject: _Subject, real: Pictures, holdout: Pictures | None) -> Attacked:
    some, rest = real.split(min(PEOPLE, len(real) // 2))
    inside = closest_pictures(some, subject.made)
    others = None if holdout is None else closest_pictures(holdout.some(PEOPLE), subject.made)
    near = Closeness(
        members=spread_of(inside),
        others=None if others is None else spread_of(others),
        real=spread_of(closest_pictures(some, rest.some(len(subject.made)))),
    )
    if others is None:
        return Attacked(closeness=near)
    truth = np.arange(len(inside) + len(others)) < len(inside)
    search = MembershipSearch(
        people=len(inside),
        others=len(others),
        tables=1,
        refitted=False,
        attackers=judged({CLOSEST: -np.concatenate([inside, others])}, truth),
        promise=subject.promise,
    )
    return Attacked(closeness=near, searches=(search,))
