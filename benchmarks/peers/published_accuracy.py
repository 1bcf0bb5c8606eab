"""AdaSSP as published, on the regression cells: sufficient statistics with an adaptive ridge. [Wan18]

One third of (epsilon, delta) each for the smallest eigenvalue, the Gram matrix and the products with the response,
for rows within the unit ball and responses within [-1, 1], under add-remove.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.cells import Part, read_parts
from benchmarks.peers.arrays import Floats, gram_root
from benchmarks.peers.protocol import answers

GENERATOR = np.random.default_rng()
FAILURE = 0.05  # rho of the paper: the chance that the ridge is too small


def fit(part: Part) -> Floats:
    """Return as many vectors of coefficients as there are runs, one after the other."""
    root = gram_root(part)
    features, response = root[:, :-1], root[:, -1]
    d = features.shape[1]
    bound = math.sqrt(d)  # of a row: each feature lies within [-1, 1]
    gram, products = features.T @ features, features.T @ response
    epsilon, delta = float(part.epsilon) / 3, float(part.delta)
    spread = math.sqrt(math.log(6 / delta)) / epsilon
    least = np.linalg.eigvalsh(gram)[0] + spread * bound**2 * GENERATOR.normal(size=part.runs)
    least = np.maximum(least - math.log(6 / delta) / epsilon * bound**2, 0)
    wanted = math.sqrt(d * math.log(6 / delta) * math.log(2 * d**2 / FAILURE)) * bound**2 / epsilon
    ridge = np.maximum(0, wanted - least)
    noisy = gram + spread * bound**2 * _symmetric(d, part.runs) + ridge[:, None, None] * np.eye(d)
    right = products + spread * bound * GENERATOR.normal(size=(part.runs, d))
    return np.linalg.solve(noisy, right[:, :, None]).ravel()


def _symmetric(d: int, count: int) -> Floats:
    """Draw symmetric matrices with standard normal entries on and above the diagonal."""
    upper = np.triu(GENERATOR.normal(size=(count, d, d)))
    return upper + np.transpose(np.triu(upper, 1), (0, 2, 1))


def main() -> None:
    """Answer every regression cell."""
    for part in read_parts("regression"):
        answers(part, "AdaSSP as published", fit(part), subject="published")


if __name__ == "__main__":
    main()
