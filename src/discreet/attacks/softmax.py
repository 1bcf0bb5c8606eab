"""A small model to attack: logistic regression for several classes, as many of them at once as one likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["softmax", "softmax_regression", "softmax_regressions"]

Floats: TypeAlias = NDArray[np.float64]
Predict: TypeAlias = Callable[[Any], Floats]


def softmax(logits: Floats) -> Floats:
    """Turn logits into probabilities, over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def softmax_regression(rows: Any, labels: Any) -> Predict:
    """Train one model on all examples, without any protection: see `softmax_regressions`."""
    models = softmax_regressions(rows, labels, np.ones((1, len(np.asarray(labels))), bool))
    return lambda asked: models(asked)[0]


def softmax_regressions(rows: Any, labels: Any, inside: Any, *, steps: int = 200, ridge: float = 1e-4) -> Predict:
    """Train a model for each row of `inside`, on the examples that it marks, without any protection.

    Gradient descent with momentum on the mean loss plus ridge / 2 |w|^2; the step follows from the length of the
    rows, so that it converges. Returned is a function from rows to probabilities: one for each model, row and class.
    """
    examples, kept = _with_one(rows), np.asarray(inside, np.float64).T[:, :, None]
    classes = np.eye(int(np.max(labels)) + 1)[np.asarray(labels)][:, None, :]
    shape = len(examples), kept.shape[1], classes.shape[2]
    shares = kept / np.maximum(kept.sum(axis=0), 1)
    # The curvature of the loss is half of the mean squared length of a row at most.
    pace = 1 / (0.5 * float((examples**2).sum(axis=1).mean()) + ridge)
    # All models side by side make one product of two matrices, which is what machines are quick at.
    weights = before = np.zeros((examples.shape[1], shape[1] * shape[2]))
    for step in range(steps):
        ahead = weights + step / (step + 3) * (weights - before)
        wrong = (softmax((examples @ ahead).reshape(shape)) - classes) * shares
        before, weights = weights, ahead - pace * (examples.T @ wrong.reshape(len(examples), -1) + ridge * ahead)
    return lambda asked: softmax((_with_one(asked) @ weights).reshape(-1, *shape[1:])).transpose(1, 0, 2)


def _with_one(rows: Any) -> Floats:
    read = np.asarray(rows, np.float64)
    return np.concatenate([read, np.ones((len(read), 1))], axis=1)
