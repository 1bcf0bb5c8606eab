"""Pictures: sample sheets, models that are trained on synthetic ones, and whether real ones were copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lab.evaluation.closest_records import Closeness, spread_of
from discreet.lab.evaluation.evaluation import Attacked, Evaluation, Likeness
from discreet.lab.evaluation.exact_report import picture_notes
from discreet.lab.evaluation.membership_search import CLOSEST, MembershipSearch, judged
from discreet.lab.evaluation.pictures import Pictures, Sheets, closest_pictures, nearest_places, pictures_of, sheet
from discreet.lab.evaluation.table_rows import PEOPLE
from discreet.lab.evaluation.usefulness import Downstream, Trained
from discreet.learn.extras import require
from discreet.pages.progress import working
from discreet.privacy.not_private import NotPrivate
from discreet.synth.domain.images import Images
from discreet.synth.fitted_models import SyntheticImageModel
from discreet.synth.promise import Promise
from discreet.synth.synthetic_table import SyntheticImages

__all__ = ["evaluate_images", "evaluate_images_publicly", "image_models", "sheets"]

_MANY = 10_000  # Synthetic pictures that are drawn from a model, and that are looked at.
_TITLE = "Synthetic pictures"


@working("evaluating", terminal=False)
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

    Args:
        synthetic: The model of pictures, or a pair (images, labels).
        real: The private pictures, as a pair (images, labels).
        holdout: Private pictures that were not synthesised, as a pair.
        domain: The public size and classes, as declared for the synthesis; a model has its own.
        promise: What the synthesis spent; a model has its own.
        title: The title of the report.
        error: The chance at most with which a verdict wrongly accuses.
        say: Is told what is being done, a line at a time.

    Returns:
        The report, marked as not private: `tell()` has the verdicts, `html()` the page, `document()` all figures.

    Raises:
        InvalidParameter: If nobody says what the pictures are, or there are fewer than two.

    Examples:
        >>> import numpy as np
        >>> domain = dp.synth.Images(4, 4, classes=["dark", "light"])
        >>> images = np.repeat(np.array([10, 200], np.uint8), 16 * 20).reshape(40, 4, 4)
        >>> labels = ["dark"] * 20 + ["light"] * 20
        >>> report = dp.evaluation.evaluate_images((images, labels), (images, labels), domain=domain)
        >>> report.value.rows
        40
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


@working("evaluating", terminal=False)
def evaluate_images_publicly(
    synthetic: Any,
    public: Any,
    *,
    domain: Images | None = None,
    promise: Promise | None = None,
    title: str = _TITLE,
) -> Evaluation:
    """Compare synthetic pictures with public ones; the private pictures are not read, so it may be published.

    Args:
        synthetic: The model of pictures, or a pair (images, labels).
        public: Public pictures, as a pair (images, labels); no part of the private ones.
        domain: The public size and classes, as declared for the synthesis; a model has its own.
        promise: What the synthesis spent; a model has its own.
        title: The title of the report.

    Returns:
        The report.

    Raises:
        InvalidParameter: If nobody says what the pictures are, or there are fewer than two.

    Examples:
        >>> import numpy as np
        >>> domain = dp.synth.Images(4, 4, classes=["dark", "light"])
        >>> images = np.repeat(np.array([10, 200], np.uint8), 16 * 20).reshape(40, 4, 4)
        >>> labels = ["dark"] * 20 + ["light"] * 20
        >>> dp.evaluation.evaluate_images_publicly((images, labels), (images, labels), domain=domain).standing
        'public'
    """
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


# --- image_models ---
# Models that are trained on synthetic pictures and on real ones, and tested on the same real ones.


_FITTED, _TESTED = 5_000, 2_000


def image_models(made: Pictures, real: Pictures, holdout: Pictures | None) -> Downstream:
    """Train and test; without pictures that were held out, three in ten real ones are kept for the test."""
    require("sklearn", extra="synth")
    test, train = real.split(max(1, 3 * len(real) // 10)) if holdout is None else (holdout, real)
    made, train, test = made.some(_FITTED), train.some(_FITTED), test.some(_TESTED)
    naive = float(np.mean(test.codes == np.bincount(train.codes).argmax()))
    models = (
        Trained(name="logistic regression", synthetic=_logistic(made, test), real=_logistic(train, test)),
        Trained(name="class of the closest picture", synthetic=_closest(made, test), real=_closest(train, test)),
    )
    return Downstream(
        label="class", number=False, models=models, naive=naive, tested=len(test), seen=holdout is None, kind="pictures"
    )


def _logistic(train: Pictures, test: Pictures) -> float:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if len(np.unique(train.codes)) < 2:
        return float(np.mean(test.codes == train.codes[0]))
    with threadpool_limits(1):
        model = LogisticRegression(C=0.1, max_iter=100, tol=1e-2).fit(train.pixels / 255.0, train.codes)
        return float(model.score(test.pixels / 255.0, test.codes))


def _closest(train: Pictures, test: Pictures) -> float:
    return float(np.mean(train.codes[nearest_places(test, train)] == test.codes))


# --- image_sheets: The sheets of an evaluation of pictures. ---


Grey: TypeAlias = NDArray[np.uint8]
_EACH = 10  # Pictures of a class.
_CLASSES = 20
_BESIDE = 12  # Synthetic pictures that are shown with their closest real ones.


def sheets(domain: Images, made: Pictures, real: Pictures) -> Sheets:
    """Lay out pictures of every class, their means, and the closest real ones."""
    classes = range(min(_CLASSES, len(domain.classes)))
    both = [_of_classes(domain, pictures, len(classes)) for pictures in (made, real)]
    means = [[_mean(domain, pictures, code) for code in classes] for pictures in (made, real)]
    some = made.take(slice(_BESIDE))
    twins = real.some(20_000)
    beside = twins.take(nearest_places(some, twins))
    return Sheets(
        classes=tuple(str(domain.classes[code]) for code in classes),
        synthetic=both[0],
        real=both[1],
        means=sheet(means),
        closest=sheet([_shaped(domain, some), _shaped(domain, beside)]),
    )


def _of_classes(domain: Images, pictures: Pictures, classes: int) -> Grey:
    rows = [_shaped(domain, pictures.take(np.flatnonzero(pictures.codes == code)[:_EACH])) for code in range(classes)]
    blank = np.zeros((domain.height, domain.width), np.uint8)
    return sheet([row or [blank] for row in rows])


def _mean(domain: Images, pictures: Pictures, code: int) -> Grey:
    own = pictures.pixels[pictures.codes == code]
    mean = own.mean(axis=0) if len(own) else np.zeros(domain.pixels)
    return np.rint(mean).astype(np.uint8).reshape(domain.height, domain.width)


def _shaped(domain: Images, pictures: Pictures) -> list[Grey]:
    return list(pictures.pixels.reshape(-1, domain.height, domain.width))
