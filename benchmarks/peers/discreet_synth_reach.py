"""Discreet on made-up tables that are hard in one way each: a label, values that nobody listed, many columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from benchmarks.auto_domains import AUTO_DELTA
from benchmarks.peers.protocol import emit, is_quick
from discreet.synth import Category, Domain, Numeric

Floats = NDArray[Any]
EPSILONS = ("0.3", "1", "3")
FEATURES, BINS, ROWS, FRESH = 9, 8, 6_000, 20_000
VALUES, UNLISTED = 50, 5  # values of one column, and columns whose values nobody lists
DRAW = np.random.default_rng(20)


def told(rows: int) -> tuple[Floats, Floats]:
    """Columns that are tied to each other in two groups, each of which tells a little of a label."""
    common = DRAW.normal(size=(rows, 2))[:, np.arange(FEATURES) % 2]
    own = 0.6 * DRAW.normal(size=(rows, FEATURES))
    signs = 1 - 2 * (np.arange(FEATURES) // 2 % 2)  # What columns share cancels: the label is in what parts them.
    label = DRAW.random(rows) < 1 / (1 + np.exp(0.8 - 0.35 * own @ signs))
    return np.clip(np.floor((0.8 * common + own + 2.5) / 5 * BINS), 0, BINS - 1), label.astype(int)


def weights(features: Floats, label: Floats) -> Floats:
    """Fit a logistic regression by a few steps of Newton's method."""
    wide = np.column_stack([np.ones(len(features)), features])
    found = np.zeros(wide.shape[1])
    for _ in range(8):
        chance = 1 / (1 + np.exp(-wide @ found))
        curved = wide.T @ (wide * (chance * (1 - chance))[:, None]) + 1e-6 * np.eye(len(found))
        found += np.linalg.solve(curved, wide.T @ (label - chance))
    return found[1:]


def auc(weight: Floats, features: Floats, label: Floats) -> float:
    """Return how often a row of the label is ranked above one without it; ties count half."""
    scores = features @ weight
    places = np.searchsorted(np.sort(scores), scores, side="left") + np.searchsorted(np.sort(scores), scores, "right")
    ones, zeros = int(label.sum()), int((1 - label).sum())
    return float(((places[label == 1].sum() + ones) / 2 - ones * (ones + 1) / 2) / (ones * zeros))


def of_label(runs: int) -> None:
    """Learn from synthetic rows, with the label named and without, and predict fresh ones."""
    fresh = told(FRESH)
    names = [f"x{place}" for place in range(FEATURES)]
    domain = Domain({name: Numeric(0, BINS - 1, whole=True, bins=BINS) for name in names} | {"y": Category([0, 1])})
    for epsilon in EPSILONS:
        found: dict[str, list[float]] = {"real": [], "without": [], "with": []}
        for _ in range(runs):
            features, label = told(ROWS)
            found["real"].append(auc(weights(features, label), *fresh))
            table = {name: features[:, place] for place, name in enumerate(names)} | {"y": label}
            for way, named in (("without", None), ("with", "y")):
                how: dict[str, Any] = {"epsilon": epsilon, "delta": AUTO_DELTA, "label": named, "progress": False}
                drawn = dp.synthesize(table, "aim", domain=domain, **how).sample(ROWS)
                made = np.column_stack([drawn[name] for name in names]), np.asarray(drawn["y"], dtype=int)
                found[way].append(auc(weights(*made), *fresh))
        emit(reach="label", epsilon=epsilon, runs=runs, **{way: float(np.mean(each)) for way, each in found.items()})


def of_values(runs: int) -> None:
    """Count the values that are found in a column of fifty, beside four others of that kind."""
    domain = {f"c{place}": Category.unlisted() for place in range(UNLISTED)}
    for epsilon in EPSILONS:
        counts = []
        for _ in range(runs):
            drawn = DRAW.zipf(1.3, 40_000)
            listed = [f"v{value}" for value in drawn[drawn <= VALUES][:10_000]]
            table = dict.fromkeys(domain, listed)
            how: dict[str, Any] = {"epsilon": epsilon, "delta": AUTO_DELTA, "progress": False}
            model = dp.synthesize(table, "independent", domain=domain, **how)
            column = model.domain.columns["c0"]
            counts.append(len(column.values) if isinstance(column, Category) else 0)
        emit(reach="values", epsilon=epsilon, runs=runs, found=float(np.mean(counts)), listed=VALUES)


def of_columns(wide: int) -> None:
    """Time a fit of many columns, as `method="auto"` chooses it."""
    rows = 8_000
    common = DRAW.normal(size=(rows, 4))
    columns: dict[str, Any] = {}
    table: dict[str, Any] = {}
    for place in range(wide):
        size = (2, 3, 5, 8, 16, 32)[place % 6]
        values = 0.8 * common[:, place % 4] + 0.6 * DRAW.normal(size=rows)
        table[f"c{place}"] = np.clip(np.floor((values + 2.5) / 5 * size), 0, size - 1).astype(int)
        columns[f"c{place}"] = Numeric(0, size - 1, whole=True, bins=size)
    cpu = time.process_time()
    dp.synthesize(table, domain=Domain(columns), epsilon=1, delta=AUTO_DELTA, progress=False).sample(rows)
    emit(reach="columns", columns=wide, rows=rows, cpu=time.process_time() - cpu)


def of_resolutions(runs: int) -> None:
    """Correlate a heavy-tailed column with its logarithm, beside others that have less to do with them."""
    numbers = {"wage": Numeric(0, 10), "log": Numeric(-3, 3), "age": Numeric(-4, 4)}
    domain = Domain({**numbers, "high": Category([0, 1]), "day": Category(list(range(5)))})
    for rows, epsilon in ((3_000, "0.3"), (3_000, "1"), (3_000, "3"), (20_000, "1")):
        found: dict[str, list[float]] = {"real": [], "aim": [], "mst": []}
        for _ in range(runs):
            log = 0.6 * DRAW.normal(size=rows)
            table = {"wage": np.exp(log), "log": log, "age": 0.7 * log + 0.9 * DRAW.normal(size=rows)}
            table |= {"high": log + 0.6 * DRAW.normal(size=rows) > 0, "day": DRAW.integers(0, 5, rows)}
            table["high"] = table["high"].astype(int)
            found["real"].append(float(np.corrcoef(table["wage"], log)[0, 1]))
            for method in ("aim", "mst"):
                how: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "progress": False}
                drawn = dp.synthesize(table, method, domain=domain, **how).sample(rows)
                pair = [np.asarray(drawn[name], dtype=float) for name in ("wage", "log")]
                found[method].append(float(np.corrcoef(pair)[0, 1]))
        means = {way: float(np.mean(each)) for way, each in found.items()}
        emit(reach="resolutions", rows=rows, epsilon=epsilon, runs=runs, **means)


if __name__ == "__main__":
    of_label(1 if is_quick() else 5)
    of_resolutions(1 if is_quick() else 20)
    of_values(1 if is_quick() else 5)
    for count in (25,) if is_quick() else (30, 45, 60):
        of_columns(count)
