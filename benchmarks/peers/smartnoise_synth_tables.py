"""SmartNoise Synth on the synthetic tables: its MST and AIM as they come.

The cells are given to it by a transformer that was fitted to the domain, not to the data. It takes the exact number of
rows as known, which under add-remove it is not. Its sample() orders rows within groups of equal parents (mbi 1.1),
which ties columns together that are not; so rows are also drawn from its model one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from snsynth.aim import AIMSynthesizer  # type: ignore[import-not-found]
from snsynth.mst import MSTSynthesizer  # type: ignore[import-not-found]
from snsynth.transform import LabelTransformer, TableTransformer  # type: ignore[import-not-found]

from benchmarks.synth_jobs import DELTA, Sampler, asked, report
from benchmarks.synth_sets import Coded

METHODS: dict[str, Any] = {"mst": MSTSynthesizer, "aim": AIMSynthesizer}


def domain(table: Coded) -> Any:
    """Return a transformer that knows every cell, whether or not a row is in it."""
    made = TableTransformer([LabelTransformer(nullable=False) for _ in table.sizes])
    made.fit(np.column_stack([np.arange(max(table.sizes)) % size for size in table.sizes]).tolist())
    return made


def fit(table: Coded, method: str, epsilon: str) -> Sampler:
    """Fit, and return what draws."""
    frame = pd.DataFrame(table.codes, columns=list(table.names))
    made = METHODS[method](epsilon=float(epsilon), delta=float(DELTA))
    made.fit(frame, transformer=domain(table))

    def sample(way: str) -> NDArray[Any]:
        if way == "as it comes":
            return np.asarray(made.sample(len(frame)).to_numpy(dtype=np.int32))
        drawn = made.synthesizer.synthetic_data(rows=len(frame), method="sample")
        whole = made.undo_compress_fn(drawn) if method == "mst" else drawn
        return np.asarray(whole.df[[f"col{place}" for place in range(len(table.sizes))]].to_numpy(dtype=np.int32))

    return sample


def main() -> None:
    """Make one table."""
    table, method, epsilon, out = asked()
    report(lambda: fit(table, method, epsilon), ("independent rows", "as it comes"), out)


if __name__ == "__main__":
    main()
