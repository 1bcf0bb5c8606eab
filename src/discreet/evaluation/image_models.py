"""Models that are trained on synthetic pictures and on real ones, and tested on the same real ones."""

from __future__ import annotations

import numpy as np

from discreet.evaluation.downstream import Downstream, Trained
from discreet.evaluation.pixels import Pictures, nearest_places
from discreet.learn.extras import require

__all__ = ["image_models"]

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
