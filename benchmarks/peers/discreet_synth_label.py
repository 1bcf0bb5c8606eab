"""Discreet: what a classifier of synthetic rows tells of real rows that nobody saw, with label= and without."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

import discreet as dp
from benchmarks.auto_domains import AUTO_DELTA, AUTO_SETS, AutoSet
from benchmarks.peers.protocol import emit, is_quick
from discreet.synth import Category, Domain
from discreet.synth.domain.coding import Coder
from discreet.synth.fitted_models import SyntheticModel

EPSILONS = ("0.3", "1", "3")
RUNS = 3
# Which values of the label are to be told from the others.
TOLD: dict[str, set[Any]] = {
    "Adult": {">50K"},
    "Heart disease, Cleveland": {1, 2, 3, 4},
    "Diabetes, 130 hospitals": {">30", "<30"},
}


@dataclass(frozen=True)
class Judge:
    """Real rows that nobody saw, and how well what was learned of others ranks them."""

    one: AutoSet
    test: Any

    def auc(self, domain: Domain, rows: Any) -> float:
        """Learn from some rows by logistic regression; one half where there is nothing to learn."""
        (features, label), (asked, truth) = (self._parts(domain, table) for table in (rows, self.test))
        if label.all() or not label.any():
            return 0.5
        encoder = OneHotEncoder(handle_unknown="ignore").fit(features)
        learned = LogisticRegression(max_iter=200).fit(encoder.transform(features), label)
        return float(roc_auc_score(truth, learned.predict_proba(encoder.transform(asked))[:, 1]))

    def _parts(self, domain: Domain, table: Any) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        codes, place = Coder(domain).codes(table), domain.place(self.one.label)
        column = domain.columns[self.one.label]
        values = column.values if isinstance(column, Category) else ()
        told = [code for code, value in enumerate(values) if value in TOLD[self.one.name]]
        return np.delete(codes, place, axis=1), np.isin(codes[:, place], told)


def report(one: AutoSet, folder: Path, runs: int) -> None:
    """Fit to four fifths of the real rows, and judge by the others."""
    table = pq.read_table(folder / one.file)
    order = np.random.default_rng(20).permutation(len(table))
    cut = len(order) * 4 // 5
    train, judge = table.take(order[:cut]), Judge(one, table.take(order[cut:]))
    for epsilon in EPSILONS:
        found: dict[str, list[float]] = {"without": [], "with": [], "real": []}
        for _ in range(runs):
            for way, label in (("without", None), ("with", one.label)):
                model = _fitted(one, train, epsilon, label)
                drawn = model.sample(min(cut, 20_000))
                found[way].append(judge.auc(model.domain, {name: drawn[name] for name in drawn.columns}))
            found["real"].append(judge.auc(model.domain, train))
        means = {way: float(np.mean(each)) for way, each in found.items()}
        emit(reach="real label", table=one.name, epsilon=epsilon, runs=runs, **means)


def _fitted(one: AutoSet, table: Any, epsilon: str, label: str | None) -> SyntheticModel:
    how: dict[str, Any] = {"unit": one.unit, "rows_per_unit": one.rows_per_unit, "progress": False}
    return dp.synthesize(table, "aim", domain=one.domain(), epsilon=epsilon, delta=AUTO_DELTA, label=label, **how)


if __name__ == "__main__":
    chosen = next(one for one in AUTO_SETS if one.name == sys.argv[2])
    report(chosen, Path(sys.argv[1]), 1 if is_quick() else RUNS)
