"""OpenDP on the cells of the accuracy table.

Claims and why they are admitted: every measurement's own map gives epsilon for one added or removed row, or for two
(one replaced) with the number of rows known.
median, quantile   noisy maximum with exponential noise over listed candidates: the grid where it has at most 25,000
                   points, else 10,001 evenly spaced places; as another method, 1,001 quantiles of the law that is
                   expected. Scores are computed by the peer's own transformation,
                   noise of the scale that its map asks for is drawn here.
mean               Laplace noise on the mean of a known number of clamped values; many draws in one vector call.
mode               noisy maximum of counts, monotone.
regression         it has simple regression (Theil-Sen) only: not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found]

from benchmarks.cells import FOLDER, QUANTILES, REPLACE_ONE, Part, read_parts
from benchmarks.peers.arrays import Floats, exponential_maximum, on_grid, values
from benchmarks.peers.protocol import answers

GENERATOR = np.random.default_rng()
LONGEST, USUAL, LIKELY = 25_000, 10_001, 1_001
Answers = Iterator[tuple[str, Floats]]


def candidates(part: Part) -> Floats:
    """List the places to choose from."""
    low, high, step = float(part.low), float(part.high), float(part.step)
    points = round((high - low) / step) + 1
    return np.linspace(low, high, points if points <= LONGEST else USUAL)


def space(part: Part) -> tuple[Any, Any]:
    """Return the domain and the metric."""
    size = part.size if part.relation == REPLACE_ONE else None
    return dp.vector_domain(dp.atom_domain(T="f64", nan=False), size=size), dp.symmetric_distance()


def quantile(part: Part) -> Answers:
    """Draw from the law of `make_private_quantile`."""
    yield "make_private_quantile", among(part, candidates(part))
    yield "make_private_quantile, expected", among(part, np.array(part.expected_quantiles(LIKELY)))


def among(part: Part, places: Floats) -> Floats:
    """Choose among listed places."""
    q = float(QUANTILES[part.task])
    asked = {"candidates": places.tolist(), "alpha": q}
    measured = dp.m.make_private_quantile(*space(part), dp.max_divergence(), scale=1.0, **asked)
    scale = measured.map(2 if part.relation == REPLACE_ONE else 1) / float(part.epsilon)
    chosen = exponential_maximum(-rank_errors(part.file, tuple(places), q), scale, part.runs, GENERATOR)
    return on_grid(part, places[chosen.astype(int)])


@lru_cache(4)
def rank_errors(file: str, places: tuple[float, ...], q: float) -> Floats:
    """Return the rank error of every place, from the peer's scores: they count in parts of a rank."""
    unsized = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance()
    score = dp.t.make_quantile_score_candidates(*unsized, candidates=list(places), alpha=q)
    parts = score.map(1) / max(q, 1 - q)  # of a rank: one row moves the rank error by max(q, 1 - q).
    found: Floats = np.array(score(np.fromfile(FOLDER / file)), dtype=float) / parts
    return found


def mean(part: Part) -> Answers:
    """Make the mean once, and draw its noise in one vector call."""
    low, high = float(part.low), float(part.high)
    domain = dp.vector_domain(dp.atom_domain(bounds=(low, high)), size=part.size)
    exact = dp.t.make_mean(domain, dp.symmetric_distance())
    scale = exact.map(2) / float(part.epsilon)
    noise = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.l1_distance(T="f64"), scale)
    centre = exact(np.clip(values(part), low, high))
    yield "make_mean, make_laplace", np.clip(np.array(noise(np.full(part.runs, centre))), low, high)


def mode(part: Part) -> Answers:
    """Draw from the law of `make_noisy_max`."""
    counts = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=True)
    unit = dp.m.make_noisy_max(*counts, dp.max_divergence(), scale=1.0).map(1)
    yield "make_noisy_max", exponential_maximum(values(part), unit / float(part.epsilon), part.runs, GENERATOR)


METHODS = dict.fromkeys(QUANTILES, quantile) | {"mean": mean, "mode": mode}


def main() -> None:
    """Answer every cell."""
    dp.enable_features("contrib")
    for part in read_parts(*METHODS):
        if part.task == "mean" and part.relation != REPLACE_ONE:
            continue
        for how, estimates in METHODS[part.task](part):
            answers(part, how, estimates, subject="opendp")


if __name__ == "__main__":
    main()
