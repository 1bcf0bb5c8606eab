"""Scores of membership: how much better a model knows an example than a model would that never saw it.

All of them take confidences, of any library's model, and are high for examples that were probably trained on.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["confidences", "lira_scores", "logit_scores", "loss_scores", "rmia_scores"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
_TINY = 1e-45  # Added before a logarithm: less than any confidence that matters.
_OWN_VARIANCE = 64  # Shadow models from which on each example has a variance of its own.


def confidences(probabilities: Any, labels: Any) -> Floats:
    """Take the probability of each example's own label. Examples are the last but one axis, classes the last."""
    chances, classes = np.asarray(probabilities, np.float64), np.asarray(labels)
    if chances.ndim < 2 or classes.ndim != 1 or chances.shape[-2] != len(classes):
        raise InvalidParameter("a model must give a probability for each class of each example")
    if len(classes) and (not np.issubdtype(classes.dtype, np.integer) or not _classes(classes, chances.shape[-1])):
        raise InvalidParameter("labels must be the numbers of classes, from 0 on")
    own: Floats = np.take_along_axis(chances, _spread(classes, chances.ndim), axis=-1)[..., 0]
    return own


def loss_scores(probabilities: Any, labels: Any) -> Floats:
    """Score by the loss: whoever was trained on has a small one. [YGFJ18]

    Through the logit, since -log p(y) is 0 in floats long before the model is sure.
    """
    scores: Floats = -np.logaddexp(0.0, -logit_scores(probabilities, labels))
    return scores


def logit_scores(probabilities: Any, labels: Any) -> Floats:
    """Score by log p(y) - log of the sum of the others, which is nearly normal over models. [CCNSTT22]

    The others are added up one by one: 1 - p(y) would be 0 long before the model is that sure.
    """
    own, chances = confidences(probabilities, labels), np.asarray(probabilities, np.float64)
    others = np.where(np.arange(chances.shape[-1]) == _spread(np.asarray(labels), chances.ndim), 0.0, chances)
    scores: Floats = np.log(own + _TINY) - np.log(others.sum(axis=-1) + _TINY)
    return scores


def lira_scores(target: Any, shadows: Any, inside: Any) -> Floats:
    """Score by how far a model is above the shadow models that did not see an example, in tails of a normal law.

    `target` has a logit for each example, `shadows` one for each model and example, and `inside` says which model saw
    which. Below 64 shadows all examples share one variance. [CCNSTT22]
    """
    from scipy.special import log_ndtr

    seen, logits, within = np.asarray(target, np.float64), np.asarray(shadows, np.float64), np.asarray(inside, bool)
    if logits.shape != within.shape or logits.shape[1:] != seen.shape or not (~within).any(axis=0).all():
        raise InvalidParameter("every example must be left out of at least one shadow model")
    outs = np.where(within, np.nan, logits)
    centre = np.nanmedian(outs, axis=0)
    spread = np.sqrt(np.nanmean((outs - np.nanmean(outs, axis=0)) ** 2, axis=0 if _many(logits) else None))
    tails: Floats = -log_ndtr(-(seen - centre) / np.maximum(spread, 1e-12))
    return tails


def rmia_scores(target: Any, without: Any, population: Any, population_without: Any, *, offline: float = 0.3) -> Floats:
    """Score by the share of a population that an example beats in p(x | model) / p(x). [ZLS24]

    `target` has the model's confidences and `without` the mean ones of reference models that did not see the example;
    the same for a population that no model saw. With a = `offline`, a model that saw it would say a p + (1 - a), and
    p(x) is the mean of both.
    """
    if not 0 <= offline <= 1:
        raise InvalidParameter("offline must lie between 0 and 1")
    ratios, others = _ratio(target, without, offline), np.sort(_ratio(population, population_without, offline))
    beaten = np.searchsorted(others, ratios, "right") / max(len(others), 1)
    # A rank among finitely many is coarse at small rates of false alarms; the ratio itself orders what ties.
    return beaten + ratios / (1 + ratios) / (len(others) + 1)


def _ratio(model: Any, without: Any, offline: float) -> Floats:
    expected = ((1 + offline) * np.asarray(without, np.float64) + (1 - offline)) / 2
    ratio: Floats = np.asarray(model, np.float64) / (expected + _TINY)
    return ratio


def _spread(labels: NDArray[Any], dimensions: int) -> NDArray[Any]:
    return labels.reshape((1,) * (dimensions - 2) + (len(labels), 1))


def _classes(labels: NDArray[Any], count: int) -> bool:
    return bool(labels.min() >= 0 and labels.max() < count)


def _many(logits: Floats) -> bool:
    return len(logits) >= _OWN_VARIANCE
