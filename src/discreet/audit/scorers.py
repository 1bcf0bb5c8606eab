"""Ways to tell two laws apart, learnt from samples: each gives an output a score, high where the first law is likelier.

What is learnt here is tested on fresh samples, so nothing that a scorer does can make an audit claim too much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.encoding import Codes, Features, OutputEncoder, Sample

__all__ = ["Scorer", "Scores", "scorers"]

Scores: TypeAlias = NDArray[np.float64]
_REPEATS = 0.5  # Share of training outputs that must repeat before values are counted one by one.
_RIDGE = 1e-3


class Scorer(Protocol):
    """A function of outputs, described in words."""

    @property
    def text(self) -> str:
        """What the score looks at."""

    def __call__(self, sample: Sample) -> Scores:
        """Return the score of each output."""


@final
@dataclass(frozen=True, slots=True)
class CountedScorer:
    """How much likelier a value was under the first law, by counting; a value that was not seen is as likely."""

    ratios: Scores  # by code

    @property
    def text(self) -> str:
        return "values that were likelier"

    def __call__(self, sample: Sample) -> Scores:
        return self.ratios[sample.codes]


@final
@dataclass(frozen=True, slots=True)
class Coordinate:
    """One feature, upwards or downwards."""

    place: int
    sign: int

    @property
    def text(self) -> str:
        return f"feature {self.place} {'above' if self.sign > 0 else 'below'} a threshold"

    def __call__(self, sample: Sample) -> Scores:
        return self.sign * sample.features[:, self.place]


@final
@dataclass(frozen=True, slots=True)
class Away:
    """How far one feature is from the middle, which tells a scale that changes; near the middle if negative."""

    place: int
    middle: float
    sign: int

    @property
    def text(self) -> str:
        return f"feature {self.place} {'far from' if self.sign > 0 else 'near'} its middle"

    def __call__(self, sample: Sample) -> Scores:
        return self.sign * np.abs(sample.features[:, self.place] - self.middle)


@final
@dataclass(frozen=True, slots=True)
class LogisticScorer:
    """A linear classifier on features and their squares. [BBDV21]"""

    centre: Features
    scale: Features
    weights: Features

    @property
    def text(self) -> str:
        return "a classifier's score"

    def __call__(self, sample: Sample) -> Scores:
        scores: Scores = _expanded((sample.features - self.centre) / self.scale) @ self.weights
        return scores


def scorers(encoder: OutputEncoder, one: Sample, other: Sample) -> Iterator[Scorer]:
    """Learn every scorer from the training half of two samples."""
    if encoder.values <= _REPEATS * (len(one) + len(other)):
        yield _counted(encoder, one.codes, other.codes)
    both = np.concatenate([one.features, other.features])
    for place in np.flatnonzero(np.ptp(both, axis=0) > 0).tolist():
        middle = float(np.median(both[:, place]))
        for sign in (1, -1):
            yield Coordinate(place, sign)
            yield Away(place, middle, sign)
    yield _logistic(one.features, other.features)


def _counted(encoder: OutputEncoder, one: Codes, other: Codes) -> CountedScorer:
    """Compare counts with one half added to each, so that a value seen once is no certainty."""
    here, there = (np.bincount(codes, minlength=encoder.values + 1) for codes in (one, other))
    return CountedScorer(np.log((here + 0.5) / (there + 0.5)))


def _expanded(features: Features) -> Features:
    bounded = np.clip(features, -8, 8)
    return np.column_stack([np.ones(len(bounded)), bounded, bounded**2])


def _logistic(ones: Features, others: Features) -> LogisticScorer:
    """Fit by a few Newton steps on the ridge-penalised likelihood."""
    both = np.concatenate([ones, others])
    centre, scale = np.median(both, axis=0), _spread(both)
    rows = _expanded((both - centre) / scale)
    labels = np.concatenate([np.ones(len(ones)), np.zeros(len(others))])
    weights = np.zeros(rows.shape[1])
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (labels - chance) - _RIDGE * len(rows) * weights
        bend = (rows * (chance * (1 - chance) + 1e-9)[:, None]).T @ rows + _RIDGE * len(rows) * np.eye(rows.shape[1])
        weights = weights + np.linalg.solve(bend, slope)
    return LogisticScorer(centre, scale, weights)


def _spread(features: Features) -> Features:
    low, high = np.quantile(features, [0.1, 0.9], axis=0)
    spread = np.where(high > low, high - low, np.maximum(np.std(features, axis=0), 1e-12))
    return np.asarray(spread, np.float64)
