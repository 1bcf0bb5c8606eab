"""Private robust estimates on simulated data: how often their intervals cover, and what outliers do to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.protocol import emit, is_quick
from benchmarks.robust_jobs import (
    ROBUST_BOUNDS,
    ROBUST_COEFFICIENTS,
    ROBUST_LEVERAGE,
    ROBUST_MUS,
    ROBUST_OUTLIER,
    ROBUST_OUTLIER_RUNS,
    ROBUST_OUTLIERS,
    ROBUST_RUNS,
    ROBUST_SIZES,
    ROBUST_X_BOUND,
)
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid
from discreet.privacy.relation import Relation
from discreet.robust import Huber, Quantile, RegressionNewton, Tukey, location_fit, regression_fit
from discreet.robust.locations import Newton, PrivateLocation
from discreet.robust.loss_functions import Psi
from discreet.robust.m_estimates import MEstimateFit
from discreet.robust.regressions import PrivateRegression

Floats = NDArray[np.float64]
PSIS: dict[str, Psi] = {"Huber": Huber(), "median": Quantile(), "Tukey": Tukey()}
CENTRE = 3.0


@dataclass(frozen=True)
class Outcome:
    """One run: what was released and the exact fit, both with their intervals."""

    values: tuple[float, ...]
    hits: tuple[bool, ...]
    exact_hits: tuple[bool, ...]
    width: float
    exact_width: float


def _noise(mu: str) -> GaussianNoise:
    return GaussianNoise(squared_multiplier=1 / Fraction(mu) ** 2)


def private_location(psi: Psi, mu: str) -> PrivateLocation:
    """Everything is asked for privately, the scale too; the bounds are thirty times too wide."""
    return PrivateLocation(
        psi=psi,
        grid=Grid.between(*ROBUST_BOUNDS),
        relation=Relation.REPLACE_ONE,
        noise=_noise(mu),
        schedule=Newton(),
    )


def private_regression(mu: str) -> PrivateRegression:
    columns = len(ROBUST_COEFFICIENTS) - 1
    return PrivateRegression(
        psi=Huber(),
        x_grids=(Grid.between(-ROBUST_X_BOUND, ROBUST_X_BOUND),) * columns,
        y_grid=Grid.between(*ROBUST_BOUNDS),
        relation=Relation.REPLACE_ONE,
        noise=_noise(mu),
        schedule=RegressionNewton(),
        leverage=Fraction(ROBUST_LEVERAGE),
        units=(Fraction(1),) * columns,
    )


def location_run(mechanism: PrivateLocation, sample: Floats) -> Outcome:
    release, fit = mechanism.release(sample), location_fit(sample, psi=mechanism.psi).value
    low, high = map(float, release.interval())
    return _outcome((float(release.value),), ((low, high),), fit, (CENTRE,))


def regression_run(mechanism: PrivateRegression, rows: Floats, targets: Floats) -> Outcome:
    release = mechanism.release((rows, targets))
    fit = regression_fit(rows, targets, leverage=ROBUST_LEVERAGE).value
    ends = tuple((float(low), float(high)) for low, high in release.interval())
    return _outcome(tuple(map(float, release.value)), ends, fit, ROBUST_COEFFICIENTS)


def _outcome(
    values: tuple[float, ...], ends: tuple[tuple[float, float], ...], fit: MEstimateFit, truth: tuple[float, ...]
) -> Outcome:
    exact = fit.interval()
    return Outcome(
        values,
        tuple(low <= at <= high for (low, high), at in zip(ends, truth, strict=True)),
        tuple(low <= at <= high for (low, high), at in zip(exact, truth, strict=True)),
        float(np.mean([high - low for low, high in ends])) / 2,
        float(np.mean([high - low for low, high in exact])) / 2,
    )


def coverage(name: str, n: int, mu: str, run: Callable[[], Outcome]) -> None:
    """Report how often the intervals cover, coefficient by coefficient, worst first."""
    outcomes = [run() for _ in range(ROBUST_RUNS // 20 if is_quick() else ROBUST_RUNS)]
    hits = np.array([outcome.hits for outcome in outcomes]).mean(axis=0)
    exact = np.array([outcome.exact_hits for outcome in outcomes]).mean(axis=0)
    emit(
        part="coverage",
        estimate=name,
        n=n,
        mu=mu,
        runs=len(outcomes),
        least=float(hits.min()),
        most=float(hits.max()),
        mean=float(hits.mean()),
        exact_least=float(exact.min()),
        exact_mean=float(exact.mean()),
        width=float(np.median([outcome.width for outcome in outcomes])),
        exact_width=float(np.median([outcome.exact_width for outcome in outcomes])),
    )


def coverages() -> None:
    """Report every estimate at every size and budget."""
    for seed, (name, n, mu) in enumerate(_cells()):
        rng = np.random.default_rng(seed)
        if name == "regression, Huber":
            machine = private_regression(mu)
            coverage(name, n, mu, lambda: regression_run(machine, *_rows(rng, n)))  # noqa: B023
        else:
            mechanism = private_location(PSIS[name], mu)
            coverage(name, n, mu, lambda: location_run(mechanism, CENTRE + rng.normal(size=n)))  # noqa: B023


def _cells() -> Iterator[tuple[str, int, str]]:
    for name in (*PSIS, "regression, Huber"):
        for n in ROBUST_SIZES:
            for mu in ROBUST_MUS:
                yield name, n, mu


def _rows(rng: Any, n: int) -> tuple[Floats, Floats]:
    rows = rng.normal(size=(n, len(ROBUST_COEFFICIENTS) - 1))
    return rows, ROBUST_COEFFICIENTS[0] + rows @ np.array(ROBUST_COEFFICIENTS[1:]) + 2 * rng.normal(size=n)


def outliers() -> None:
    """Report how far bad values move the exact and the private estimates from where they are without."""
    for name, psi in PSIS.items():
        for mu in ROBUST_MUS:
            for share in ROBUST_OUTLIERS:
                moved(name, psi, mu, share)


def moved(name: str, psi: Psi, mu: str, share: float) -> None:
    rng, n = np.random.default_rng(round(1000 * share)), max(ROBUST_SIZES)
    mechanism = private_location(psi, mu)
    runs = []
    for _ in range(ROBUST_OUTLIER_RUNS // 10 if is_quick() else ROBUST_OUTLIER_RUNS):
        clean = CENTRE + rng.normal(size=n)
        dirty = clean.copy()
        dirty[: round(share * n)] = ROBUST_OUTLIER
        exact = [location_fit(sample, psi=psi).value.estimates[0] for sample in (clean, dirty)]
        private = [float(mechanism.release(sample).value) for sample in (clean, dirty)]
        runs.append((exact[1] - exact[0], private[1] - private[0], private[0] - exact[0], dirty.mean() - clean.mean()))
    found = np.array(runs)
    emit(
        part="outliers",
        estimate=name,
        n=n,
        mu=mu,
        share=share,
        runs=len(runs),
        exact_move=float(found[:, 0].mean()),
        private_move=float(found[:, 1].mean()),
        private_move_error=float(found[:, 1].std() / math.sqrt(len(runs))),
        noise=float(found[:, 2].std()),
        mean_move=float(found[:, 3].mean()),
    )


if __name__ == "__main__":
    outliers()
    coverages()
