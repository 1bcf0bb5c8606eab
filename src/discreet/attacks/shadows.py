"""Models that are trained to be attacked, and shadow models that show how a model behaves without an example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter

__all__ = ["Game", "Train", "play"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
# Of rows and labels, a function from rows to probabilities; or, with many=True, of rows, labels and who is in which
# model, a function from rows to the probabilities of all models.
Train: TypeAlias = Callable[..., Callable[[Any], Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """What was trained on whom, and what the models say about everybody. Models come first in all arrays."""

    labels: NDArray[np.int64]
    inside: Flags  # who was in the data of which model: targets, then shadows in pairs of complements
    probabilities: Floats
    population: Flags  # people whom no model saw
    targets: int


def play(train: Train, rows: Any, labels: Any, *, targets: int, shadows: int, population: float, many: bool) -> Game:
    """Train models on random halves and ask them about everybody.

    The halves of targets are independent coins: nothing but the model tells who was in. Those of shadows come in pairs
    of complements, so that half of them leave any one person out.
    """
    examples, classes = np.asarray(rows), np.asarray(labels)
    if len(examples) != len(classes) or len(classes) < 20:
        raise InvalidParameter("there must be a label for each row, and at least 20 rows")
    if targets < 1 or shadows < 2 or shadows % 2 or not 0 < population < 0.9:
        raise InvalidParameter("targets must be 1 or more, shadows 2, 4, 6, …, and the population a share below 0.9")
    unseen = np.zeros(len(classes), bool)
    unseen[noise.permutation(len(classes))[: max(1, round(population * len(classes)))]] = True
    inside = _halves(targets, shadows, len(classes)) & ~unseen
    said = _many(train, examples, classes, inside) if many else _one_by_one(train, examples, classes, inside)
    probabilities = np.asarray(said, np.float64)
    if probabilities.ndim != 3 or probabilities.shape[:2] != inside.shape or np.isnan(probabilities).any():
        raise InvalidParameter("a model must give a probability for each class of each row, and no NaN")
    return Game(classes.astype(np.int64), inside, probabilities, unseen, targets)


def _halves(targets: int, shadows: int, people: int) -> Flags:
    half = noise.uniform(2, (shadows // 2, people)) == 1
    pairs = np.stack([half, ~half], axis=1).reshape(shadows, people)
    return np.concatenate([noise.uniform(2, (targets, people)) == 1, pairs])


def _many(train: Train, rows: NDArray[Any], labels: NDArray[Any], inside: Flags) -> Any:
    return train(rows, labels, inside)(rows)


def _one_by_one(train: Train, rows: NDArray[Any], labels: NDArray[Any], inside: Flags) -> Any:
    return np.stack([np.asarray(train(rows[half], labels[half])(rows), np.float64) for half in inside])
