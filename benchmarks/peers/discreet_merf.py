"""Discreet: DP-MERF learns MNIST or Adult at (1, 1e-5); twelve classifiers learn from what it draws.

The paper thins Adult's larger class before anything else, by private labels, and takes the length of its waves from
private rows. Here all rows are learnt, the length is a constant, and *synthetic* rows of the larger class are thinned.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

import discreet as dp
from benchmarks.adult_declared import LABEL, columns_of, declared, read_adult
from benchmarks.mnist import read_digits
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.twelve_classifiers import NAMES, for_pictures, for_tables
from discreet.privacy.relation import Relation
from discreet.synth.merf import MerfImages, MerfTables

EPSILON, DELTA, RUNS = 1, "1e-5", 3
ROWS = 10_000  # pictures that each classifier learns from, real or synthetic
KEPT = 0.4  # of the larger class of Adult
QUICK_ROWS, QUICK_STEPS, QUICK_NAMES = 1_000, 60, ("LR", "BNB", "DT", "LDA")
Rows = tuple[NDArray[Any], NDArray[Any]]
Judge = Callable[[str, Rows], dict[str, float]]


def report(judge: Judge, rows: Rows, **facts: object) -> None:
    """Let every classifier learn and be judged."""
    for name in QUICK_NAMES if is_quick() else NAMES:
        begun = time.process_time()
        emit(part="classifier", classifier=name, **facts, **judge(name, rows), seconds=time.process_time() - begun)


def fitted(rows: Any, method: Any, domain: Any, relation: Relation, facts: dict[str, object], **more: Any) -> Any:
    """Fit a model and say how long it took."""
    begun, cpu = time.perf_counter(), time.process_time()
    model = dp.synthesize(
        rows, method, domain=domain, epsilon=EPSILON, delta=DELTA, relation=relation, progress=False, **more
    )
    emit(part="fit", **facts, minutes=(time.perf_counter() - begun) / 60, cpu_minutes=(time.process_time() - cpu) / 60)
    return model


def mnist(folder: Path) -> None:
    """Judge by the accuracy on the 10,000 pictures that are set apart."""
    train, tests = read_digits(folder, "train"), read_digits(folder, "t10k")
    rows = QUICK_ROWS if is_quick() else ROWS
    seen = tests.pictures.reshape(-1, 784) / 255

    def judge(name: str, rows: Rows) -> dict[str, float]:
        model = for_pictures(name).fit(rows[0].reshape(-1, 784) / 255, rows[1])
        return {"accuracy": float(np.mean(model.predict(seen) == tests.classes))}

    report(judge, (train.pictures[:rows], train.classes[:rows]), data="mnist", relation="real", run=0)
    domain = dp.synth.Images(28, 28, classes=range(10))
    method = MerfImages(steps=QUICK_STEPS) if is_quick() else MerfImages()
    for run in range(1 if is_quick() else RUNS):
        for relation in Relation:
            facts: dict[str, object] = {"data": "mnist", "relation": relation.value, "run": run}
            model = fitted((train.pictures, train.classes), method, domain, relation, facts)
            drawn = model.sample(rows)
            report(judge, (drawn.images, drawn.labels), **facts)


def adult(folder: Path) -> None:
    """Judge by ROC and PRC of plain yes-or-no predictions on the published test rows, as the paper does."""
    train, tests = read_adult(folder, "train"), read_adult(folder, "test")
    seen, truth = columns_of(tests)
    thinned = _thinned((seen, truth))

    def judge(name: str, rows: Rows) -> dict[str, float]:
        model = for_tables(name).fit(*rows)
        few = average_precision_score(thinned[1], model.predict(thinned[0]))
        return {"roc": float(roc_auc_score(truth, model.predict(seen))), "prc": float(few)}

    report(judge, _thinned(columns_of(train)), data="adult", relation="real", run=0)
    domain, method = declared(list(train)), MerfTables(steps=QUICK_STEPS) if is_quick() else MerfTables()
    for run in range(1 if is_quick() else RUNS):
        for relation in Relation:
            facts: dict[str, object] = {"data": "adult", "relation": relation.value, "run": run}
            model = fitted(train, method, domain, relation, facts, label=LABEL)
            drawn = model.sample()
            report(judge, _thinned(columns_of({name: drawn[name] for name in train})), **facts)


def _thinned(rows: Rows) -> Rows:
    """Keep every row of the smaller class and two in five of the larger one."""
    kept = (rows[1] == 1) | (np.arange(len(rows[1])) % 5 < 5 * KEPT)
    return rows[0][kept], rows[1][kept]


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"mnist": mnist, "adult": adult}[sys.argv[2]](Path(sys.argv[1]))
