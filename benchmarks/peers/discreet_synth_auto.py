"""Discreet: one table with a public domain and nothing tuned, and how far the marginals of its sample are off."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from benchmarks.auto_domains import AUTO_DELTA, AUTO_EPSILON, AUTO_SETS, AutoSet
from benchmarks.peers.protocol import emit
from discreet import noise
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.fitted_models import SyntheticModel
from discreet.synth.tables.table_shape import marginal_cliques, marginal_distances

Codes = NDArray[np.int32]


def distances(made: Codes, real: Codes, sizes: tuple[int, ...]) -> list[float]:
    """Return the mean distance of the marginals of one and of two columns."""
    cliques = [marginal_cliques(sizes, ways) for ways in (1, 2)]
    return [marginal_distances(made, real, sizes, listed).mean for listed in cliques]


def fitted(one: AutoSet, file: Path, method: str, domain: Domain) -> SyntheticModel:
    return dp.synthesize(
        file,
        method,
        domain=domain,
        epsilon=AUTO_EPSILON,
        delta=AUTO_DELTA,
        unit=one.unit,
        rows_per_unit=one.rows_per_unit,
        progress=False,
    )


def sampled(model: SyntheticModel) -> Codes:
    table = model.sample()
    return Coder(model.domain).codes({name: table[name] for name in table.columns})


def report(one: AutoSet, folder: Path) -> None:
    """Fit as anybody would, and beside it each column by itself."""
    file = folder / one.file
    start, cpu = time.perf_counter(), time.process_time()
    model = fitted(one, file, "auto", one.domain())
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    real, sizes = Coder(model.domain).codes(file), model.domain.sizes
    again = real[noise.uniform(len(real), len(real))]
    alone = fitted(one, file, "independent", model.domain)
    emit(
        table=one.name,
        method=model.promise.method,
        unit=one.unit,
        columns=len(sizes),
        largest=max(sizes),
        rows=len(real),
        epsilon=model.promise.epsilon,
        seconds=seconds,
        cpu=cpu,
        megabytes=memory,
        auto=distances(sampled(model), real, sizes),
        independent=distances(sampled(alone), real, sizes),
        resample=distances(again, real, sizes),
    )


if __name__ == "__main__":
    report(next(one for one in AUTO_SETS if one.name == sys.argv[2]), Path(sys.argv[1]))
