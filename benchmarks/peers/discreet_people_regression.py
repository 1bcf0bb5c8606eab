"""Discreet: regression that protects patients with all their stays; do intervals cover, and what does it cost?

Features are those of real stays. Responses are made up from a known line, with a part of their variance common to a
patient; so the coefficients are known. Arguments: correlation, epsilon, runs, folder of data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import SEED, parquet
from benchmarks.peers.protocol import emit, is_quick
from discreet.adaptive.bounded_memberships import kept_rows, unit_codes
from discreet.errors import Refused
from discreet.frames.column import Column
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design, RegressionColumns

PEOPLE: Final = 4_000
EACH: Final = 10  # rows of a person that count at most
DELTA: Final = 1e-6
FEATURES: Final = {
    "time_in_hospital": (1, 14),
    "num_lab_procedures": (0, 132),
    "num_medications": (0, 81),
    "number_diagnoses": (1, 16),
}
TRUTH: Final = np.array([10.0, 0.8, 0.05, 0.2, -0.5])  # The intercept first.
DEVIATION: Final = 4.0
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def stays(folder: Path) -> tuple[Floats, Integers, Integers]:
    """Read all stays in the order of patients: features, where each patient's begin, and how many there are."""
    rows = parquet(folder / "diabetes130" / "diabetic_data.parquet")
    features = np.column_stack([np.asarray(rows[name], dtype=float) for name in FEATURES])
    who = unit_codes(Column(rows["patient_nbr"].astype(np.int64)))
    order = np.argsort(who, kind="stable")
    first = np.flatnonzero(np.diff(who[order], prepend=-1))
    return features[order], first, np.diff(np.append(first, len(who)))


def tables(
    features: Floats, first: Integers, count: Integers, correlation: float
) -> Iterator[tuple[Floats, Floats, Integers]]:
    """Draw tables without end: features of patients drawn with replacement, made-up responses, and whose rows."""
    drawn = np.random.default_rng((SEED, round(100 * correlation)))
    while True:
        picked = drawn.integers(len(first), size=PEOPLE)
        many = count[picked]
        ids = np.repeat(np.arange(PEOPLE), many)
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        x = features[within + np.repeat(first[picked], many)]
        common = drawn.normal(size=PEOPLE) * np.sqrt(correlation)
        own = drawn.normal(size=len(ids)) * np.sqrt(1 - correlation)
        yield x, TRUTH[0] + x @ TRUTH[1:] + DEVIATION * (common[ids] + own), ids


def interval(release: Any) -> Floats | None:
    """Return the intervals of all coefficients; None where the release has none but the whole line."""
    try:
        return np.array([[float(low), float(high)] for low, high in release.interval(0.95)])
    except Refused:
        return None


def main() -> None:
    """Fit as often as asked for, to all rows and to one of each person."""
    correlation, epsilon, runs = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    runs = max(2, runs // 50) if is_quick() else runs
    regression = RefinedRegression(
        design=Design.between(list(FEATURES.values()), (-40, 80)),
        relation="add-remove",  # type: ignore[arg-type]
        noise=GaussianNoise.for_epsilon(epsilon, DELTA),
        inference_share="1/10",  # type: ignore[arg-type]
    )
    held, bounded = np.zeros(len(TRUTH), dtype=int), 0
    errors, alone = [], []
    for _, (x, y, ids) in zip(range(runs), tables(*stays(Path(sys.argv[4])), correlation), strict=False):
        kept, one = kept_rows(Column(ids), EACH), kept_rows(Column(ids), 1)
        many = regression.release(RegressionColumns([*x[kept].T, y[kept]], ids[kept]))
        errors.append(np.array(many.value, dtype=float) - TRUTH)
        if (found := interval(many)) is not None:
            bounded += 1
            held += (found[:, 0] <= TRUTH) & (found[:, 1] >= TRUTH)
        single = regression.release(RegressionColumns([*x[one].T, y[one]]))
        alone.append(np.array(single.value, dtype=float) - TRUTH)
    root, root_alone = (np.sqrt(np.mean(np.square(each), axis=0)) for each in (errors, alone))
    emit(
        correlation=correlation,
        epsilon=epsilon,
        runs=runs,
        bounded=bounded,
        held=held.tolist(),
        error=root.tolist(),
        error_alone=root_alone.tolist(),
    )


if __name__ == "__main__":
    main()
