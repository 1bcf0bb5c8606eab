"""Small models for tests: people who can be learnt by heart, a reference DP-SGD, and a network trained one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import noise
from discreet.lab.attacks.membership import softmax
from discreet.privacy import Event, Gaussian, PoissonSampled, Repeated

_FINE = 2**16  # Noise is drawn on a grid of this many steps to one.


def normal(deviation: float, shape: tuple[int, ...]) -> Any:
    return noise.rounded_gaussian(round(deviation * _FINE), shape) / _FINE


def people(count: int, columns: int, classes: int = 2) -> tuple[Any, Any]:
    """Rows that hardly tell the label, which nobody can know but by heart."""
    rows, labels = normal(1.0, (count, columns)), np.asarray(noise.uniform(classes, count))
    rows[:, 0] += labels
    return rows, labels


@dataclass(frozen=True, kw_only=True)
class NoisySteps:
    """The reference DP-SGD: Poisson samples, clipped gradients, Gaussian noise; vectorised over models.

    `wrong` breaks it in one way: "clip" leaves gradients as they are, "divide" divides the noise by the batch as well,
    and "half" takes half of the noise.
    """

    steps: int
    multiplier: float
    rate: float = 1.0
    pace: float = 1.0
    clip: float = 1.0
    wrong: str = ""

    @property
    def event(self) -> Event:
        step = Gaussian(variance=str(self.multiplier**2), squared_sensitivity=1)
        return Repeated(step if self.rate == 1 else PoissonSampled(step, str(self.rate)), self.steps)

    def noise(self, shape: tuple[int, ...], batch: float) -> Any:
        deviation = self.multiplier * self.clip
        deviation /= {"half": 2, "divide": batch}.get(self.wrong, 1)
        return normal(deviation, shape)

    def factors(self, norms: Any) -> Any:
        return np.ones_like(norms) if self.wrong == "clip" else np.minimum(1, self.clip / np.maximum(norms, 1e-12))

    def clipped_sum(self, gradients: Any) -> Any:
        """Add up gradients, one a row, each clipped."""
        return self.factors(np.linalg.norm(gradients, axis=1)) @ gradients

    def __call__(self, rows: Any, labels: Any, inside: Any) -> Any:
        """Train softmax regressions: the gradient of a row is row x (p - y), whose norm is a product of norms."""
        examples = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        classes, lengths = np.eye(int(labels.max()) + 1)[labels], np.linalg.norm(examples, axis=1)
        weights = np.zeros((len(inside), examples.shape[1], classes.shape[1]))
        batch = self.rate * len(rows) / 2
        for _ in range(self.steps):
            drawn = inside if self.rate == 1 else inside & (noise.bernoulli(str(self.rate), inside.shape) == 1)
            wrong = softmax(examples @ weights) - classes
            norms = lengths * np.linalg.norm(wrong, axis=2)
            total = examples.T @ (wrong * (drawn * self.factors(norms))[:, :, None])
            weights = weights - self.pace * (total + self.noise(weights.shape, batch)) / batch
        return lambda asked: softmax(np.concatenate([asked, np.ones((len(asked), 1))], axis=1) @ weights)


def network(rows: Any, labels: Any, *, hidden: int = 16, steps: int = 150) -> Any:
    """Train a network with one hidden layer, as anybody's library would, one model at a time."""
    classes = np.eye(2)[labels]
    first, second = normal(0.3, (rows.shape[1], hidden)), normal(0.3, (hidden, 2))
    for _ in range(steps):
        inner = np.tanh(rows @ first)
        wrong = (softmax(inner @ second) - classes) / len(rows)
        back = (wrong @ second.T) * (1 - inner**2)
        first, second = first - 2.0 * rows.T @ back, second - 2.0 * inner.T @ wrong
    return lambda asked: softmax(np.tanh(asked @ first) @ second)


def watched(training: NoisySteps, rows: Any, labels: Any, canaries: Any) -> Any:
    """Train a logistic regression on people and canaries, and return the noisy sum of every step.

    Labels are 0 and 1, the gradient of a row is row x (p - y). Canaries have gradients of their own in further
    coordinates, and are in every step; people are sampled.
    """
    columns, batch = rows.shape[1], training.rate * len(rows)
    weights, canary_part = np.zeros(columns), training.clipped_sum(canaries)
    sums = training.noise((training.steps, columns + canaries.shape[1]), batch)
    sampled = noise.bernoulli(str(training.rate), (training.steps, len(rows))) == 1
    for total, drawn in zip(sums, sampled, strict=True):
        mine = rows[drawn] * (1 / (1 + np.exp(-rows[drawn] @ weights)) - labels[drawn])[:, None]
        total[:columns] += training.clipped_sum(mine)
        total[columns:] += canary_part
        weights -= training.pace * total[:columns] / batch
    return sums
