"""Attacks on what was trained or made from rows: membership of a model, attributes through a synthetic table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.attack_lab import worlds
from benchmarks.attack_lab.contests import DELTA, Outcome, Setting, added
from discreet import noise
from discreet.lab import attacks
from discreet.lab.attacks.lab_tables import Columns
from discreet.lab.attacks.membership import Game, lira_scores, logit_scores, play, softmax, softmax_regressions
from discreet.lab.attacks.success_rates import judge
from discreet.mechanisms import VectorGaussian
from discreet.privacy import DiscreteLaplace, Relation

__all__ = ["attributes", "membership"]

_ADD = Relation.ADD_REMOVE
_PEOPLE, _COLUMNS, _SHADOWS, _RATE = 100, 100, 64, 0.05
_GRID = 1 << 16  # Steps of a gradient, to its largest length.
_STREETS = 100


def membership(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Ask models who was in their data, by LiRA; of each model one person counts, so guesses are independent."""
    rows, labels = noise.rounded_gaussian(_GRID, (_PEOPLE, _COLUMNS)) / _GRID, np.asarray(noise.uniform(2, _PEOPLE))
    mechanism = None if epsilon is None else _mechanism(epsilon)
    train = softmax_regressions if mechanism is None else private_step(mechanism)
    targets = setting.times(2000)
    game = play(train, rows, labels, targets=targets, shadows=_SHADOWS, population=0.1, many=True)
    found = judge(*_scored(game), rates=(_RATE,)).at(_RATE)
    return Outcome(
        data=f"made up: models of {_PEOPLE * 9 // 20} of {_PEOPLE} people, {_COLUMNS} columns",
        success=found.members,
        without=found.alarms,
        event=None if mechanism is None else mechanism.event,
        relation=_ADD,
    )


def _scored(game: Game) -> tuple[Any, Any]:
    """Draw a person for each model, and return their score and whether they were in."""
    logits, seen = logit_scores(game.probabilities, game.labels), np.flatnonzero(~game.population)
    people = seen[noise.uniform(len(seen), game.targets)]
    shadows, within = logits[game.targets :], game.inside[game.targets :]
    models = range(game.targets)
    scores = lira_scores(logits[models, people], shadows[:, people], within[:, people])
    return scores, game.inside[models, people]


def _mechanism(epsilon: Fraction) -> VectorGaussian:
    return attacks.gaussian_counts(_COLUMNS, squared_sensitivity=_GRID**2, epsilon=epsilon, delta=DELTA, relation=_ADD)


def private_step(mechanism: VectorGaussian) -> Callable[..., Any]:
    """Train by one step of gradient descent from nowhere: gradients of length 1 on a grid, added up, with noise.

    Cut to the grid towards 0 no gradient gets longer, and the sum is one of whole numbers, so what is released is the
    mechanism of the event and nothing else.
    """

    def train(rows: Any, labels: Any, inside: Any) -> Callable[[Any], Any]:
        steps = rows * (2 * labels - 1)[:, None]
        steps /= np.maximum(np.linalg.norm(steps, axis=1), 1)[:, None] * (1 + 1e-9)
        sums = np.asarray(inside, np.int64) @ np.trunc(steps * _GRID).astype(np.int64)
        weights = np.array([mechanism.release(total.tolist()).value for total in sums], np.float64) / _GRID
        return lambda asked: _said(np.asarray(asked) @ weights.T)

    return train


def _said(sure: Any) -> Any:
    """Turn scores, a column a model, into probabilities of both classes."""
    halves = sure.T / (2 * np.sqrt(_COLUMNS))
    return softmax(np.stack([-halves, halves], axis=-1))


def attributes(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Guess an illness from a table made of counts by street and illness, exact or noisy."""
    release = attacks.through_table(_copied if epsilon is None else _noisy(epsilon), secret="ill")
    found = [
        attacks.attributes(release, worlds.town(_STREETS), secret="ill", people=_STREETS).value
        for _ in range(setting.times(8))
    ]
    return Outcome(
        data=f"made up: {_STREETS} people alone in their street, {len(worlds.ILLNESSES)} illnesses",
        success=added([one.right for one in found]),
        without=added([one.without for one in found]),
        event=None if epsilon is None else DiscreteLaplace(scale=1 / epsilon, sensitivity=1),
        relation=_ADD,
    )


def _copied(table: Columns) -> Columns:
    return table


def _noisy(epsilon: Fraction) -> Callable[[Columns], Columns]:
    streets, ill = np.array([f"s{i}" for i in range(_STREETS)]), worlds.ILLNESSES
    shape = (len(streets), len(ill))

    def make(table: Columns) -> Columns:
        places = np.array([int(street[1:]) for street in table["street"]]) * len(ill)
        exact = np.bincount(places + np.searchsorted(ill, table["ill"]), minlength=shape[0] * shape[1])
        counts = np.maximum(exact.reshape(shape) + noise.discrete_laplace(1 / epsilon, shape), 0)
        where, what = np.repeat(np.indices(shape).reshape(2, -1), counts.ravel(), axis=1)
        return {"street": streets[where], "ill": ill[what]}

    return make
