"""Discreet: variances of families of tables, as plans price them, beside the least of any Gaussian mechanism.

Everything follows from plans: no rows are read. Bounds are by singular values: with weights that add up to one over
all cells, no mechanism of the same mu has a smaller weighted sum of variances, nor so a smaller largest one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.protocol import emit
from discreet import release
from discreet.query.plan.residuals import ResidualNoise, best_shares, variance_types
from discreet.release.pricing.priced_release import PricedRelease
from discreet.release.pricing.release_price import apart

Floats: TypeAlias = NDArray[np.float64]
Grouping: TypeAlias = tuple[str, ...]

FIVE = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6}
MANY = {f"c{number:02d}": 2 + 7 * number % 9 for number in range(35)}
PLACES = {"district": 12, "sex": 2, "age": 4}
REGIONS = (3, 4, 5)  # districts of each region
ROUNDS = 300
MU_SQUARED = 0.2  # of rho = 0.1
ROUNDING = 1 / 12  # to whole numbers
PLAN = """
name = "family"
dataset = "people"
ledger = "memory"
unit = {{ column = "row" }}
budget = {{ rho = 10 }}
release = {{ rho = 0.1, delta = 1e-7, split = "accuracy" }}

[tables.people.columns]
{columns}
{levels}
[[publish]]
name = "n"
from = "people"
groupings = {groupings}
measures = {{ n = "COUNT(*)" }}
expected = {{ "*" = 100 }}
"""


def families() -> dict[str, tuple[dict[str, int], list[Grouping]]]:
    """Return columns and groupings by what they are called."""
    few = list(FIVE)
    mix = [*combinations(few, 3), *combinations(few, 2), *combinations(few, 1), ()]
    levels: list[Grouping] = [
        (), ("region",), ("district",), ("region", "sex"), ("district", "sex"), ("region", "age"), ("sex", "age"),
    ]  # fmt: skip
    return {
        "all pairs of 5 columns": (FIVE, list(combinations(few, 2))),
        "all pairs of 35 columns": (MANY, list(combinations(MANY, 2))),
        "regions and districts, sex, age": (PLACES, levels),
        "5 columns: triples, pairs, singles, total": (FIVE, mix),
    }


def plan_text(columns: dict[str, int], groupings: Sequence[Grouping]) -> str:
    """Write a plan."""
    listed = {name: [f"{name}{value}" for value in range(size)] for name, size in columns.items()}
    declared = "\n".join(f"{name} = {{ categories = {json.dumps(values)} }}" for name, values in listed.items())
    levels, first = "", 0
    if "district" in columns:
        members = []
        for region, size in enumerate(REGIONS):
            members.append(f"region{region} = {json.dumps(listed['district'][first : first + size])}")
            first += size
        levels = f'\n[[levels]]\nname = "region"\nof = "district"\nmembers = {{ {", ".join(members)} }}\n'
    return PLAN.format(columns=declared, levels=levels, groupings=json.dumps([list(by) for by in groupings]))


def priced_of(columns: dict[str, int], groupings: Sequence[Grouping]) -> PricedRelease:
    """Price a plan that says nothing of its noise."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"
        path.write_text(plan_text(columns, groupings))
        return release.price(release.read_release_plan(path))


def figures(cells: Floats, variances: Sequence[float]) -> tuple[float, float]:
    """Return the sum of the variances of all cells, each taken for the largest of its table, and the largest."""
    return float(cells @ np.array(variances)), max(variances)


def kinds(priced: PricedRelease) -> dict[str, tuple[float, float]]:
    """Return the figures of every kind of noise: as priced, with noise of each table's own, and by both aims.

    Aims have the shares that a plan with this aim has, for the whole price.
    """
    cells = np.array([table.groups or 0 for table in priced.tables], float)

    def told(one: PricedRelease) -> tuple[float, float]:
        return figures(cells, [float(table.priced.variances["n"]) for table in one.tables])

    shared = priced.tables[0].priced.draft.noising.shared
    assert shared is not None
    trees, tables = shared.residuals.trees, shared.residuals.tables
    types = variance_types(trees, tables)

    def aimed(*, largest: bool) -> tuple[float, float]:
        shares = best_shares(types, [1.0] * len(tables), largest=largest)
        assert shares is not None
        each = [float(one) / MU_SQUARED + ROUNDING for one in ResidualNoise(trees, tables, shares).largest()]
        return figures(cells, each)

    even = figures(cells, [len(tables) / MU_SQUARED + ROUNDING] * len(tables))
    return {"before": told(apart(priced)), "even": even, "default": told(priced),
            "sum": aimed(largest=False), "largest": aimed(largest=True)}  # fmt: skip


def workload(columns: dict[str, int], groupings: Sequence[Grouping]) -> list[Floats]:
    """Return the matrix of every table, from atoms to its cells."""
    region = np.repeat(np.eye(len(REGIONS)), REGIONS, axis=1)
    made = []
    for by in groupings:
        matrix: Floats = np.ones((1, 1))
        for name, size in columns.items():
            coarse = name == "district" and "region" in by
            matrix = np.asarray(
                np.kron(matrix, region if coarse else np.eye(size) if name in by else np.ones((1, size))), np.float64
            )
        made.append(matrix)
    return made


def spectrum(columns: dict[str, int], groupings: Sequence[Grouping]) -> Any:
    """Return a function from weights of tables to the least weighted sum of variances, and its slope by weights."""
    if "district" in columns:
        grams = np.array([matrix.T @ matrix for matrix in workload(columns, groupings)])

        def dense(weights: Floats) -> tuple[float, Floats]:
            values, vectors = np.linalg.eigh(np.tensordot(weights, grams, 1))
            there = values > 1e-12 * values.max()
            roots, kept = np.sqrt(values[there]), vectors[:, there]
            slope = roots.sum() / len(values) * np.einsum("iv,tij,jv,v->t", kept, grams, kept, 1 / roots)
            return float(roots.sum() ** 2 / len(values)), slope

        return dense
    parts = sorted({part for by in groupings for size in range(len(by) + 1) for part in combinations(by, size)})
    many = np.array([math.prod(columns[name] - 1 for name in part) for part in parts], float)
    inside = np.array([[set(part) <= set(by) for by in groupings] for part in parts], float)
    inside /= np.array([math.prod(columns[name] for name in by) for by in groupings])

    def plain(weights: Floats) -> tuple[float, Floats]:
        roots = np.sqrt(inside @ weights)
        total = float((many * roots).sum())
        return total**2, total * ((many / roots) @ inside)

    return plain


def bounds(columns: dict[str, int], groupings: Sequence[Grouping]) -> tuple[float, float]:
    """Return the least sum of variances and the least largest variance, up to what a search for weights leaves."""
    least = spectrum(columns, groupings)
    sizes = columns | {"region": len(REGIONS)}
    cells = np.array([math.prod(sizes[name] for name in by) for by in groupings], float)
    weights, largest = np.ones(len(cells)) / cells.sum(), 0.0
    for _ in range(ROUNDS):
        value, slope = least(weights)
        largest = max(largest, value)
        each = slope / cells  # the mean variance of the cells of each table
        if each.max() <= 1.0002 * value:
            break
        weights = weights * np.sqrt(each / each.max())
        weights = weights / (weights * cells).sum()
    return least(np.ones(len(cells)))[0] / MU_SQUARED, largest / MU_SQUARED


def main() -> None:
    """Report all families."""
    for name, (columns, groupings) in families().items():
        total, largest = bounds(columns, groupings)
        row: dict[str, Any] = {"least_sum": total, "least_largest": largest, "tables": len(groupings)}
        for what, (added, most) in kinds(priced_of(columns, groupings)).items():
            row |= {f"{what}_sum": added, f"{what}_largest": most}
        emit(job="family", family=name, **row)


if __name__ == "__main__":
    main()
