"""A small ward that nobody lies in, an honest synthesiser of it, and one that copies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet import noise
from discreet.privacy import Relation, events, gaussian_sigma
from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import Numeric
from discreet.synth.promise import Promise

DOMAIN = Domain(
    {
        "sex": Category(["f", "m"]),
        "ward": Category(["north", "south", "east"]),
        "age": Numeric(0, 100, bins=8),
        "nights": Numeric(0, 30, whole=True, bins=6, null=True),
        "ill": Category(["heart", "lung", "bones"]),
    }
)
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
VARIANCE = len(DOMAIN.names) * Fraction(gaussian_sigma(EPSILON, DELTA)) ** 2


def ward(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw people whose illness goes with their age."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.normal(50, 20, rows), 0, 100)
    ill = np.clip((age / 34 + draw.normal(0, 0.5, rows)).astype(int), 0, 2)
    nights = np.clip(draw.poisson(3 + 4 * ill), 0, 30).astype(float)
    nights[draw.random(rows) < 0.1] = np.nan
    return {
        "sex": np.array(["f", "m"], object)[draw.integers(0, 2, rows)],
        "ward": np.array(["north", "south", "east"], object)[draw.integers(0, 3, rows)],
        "age": age,
        "nights": nights,
        "ill": np.array(["heart", "lung", "bones"], object)[ill],
    }


def promise() -> Promise:
    """The promise of `independent`: each row is in one cell of every column."""
    columns = len(DOMAIN.names)
    event = events.Gaussian(variance=VARIANCE, squared_sensitivity=columns)
    return Promise.of(
        event, method="independent", relation=Relation.ADD_REMOVE, delta=DELTA, unit="row", rows_per_unit=1
    )


def independent(table: Any) -> Any:
    """Draw every column from its own noisy counts: all links are lost, and the promise is kept."""
    codes = Coder(DOMAIN).codes(table)
    noisy = [
        np.maximum(np.bincount(column, minlength=size) + noise.rounded_gaussian(size=size, variance=VARIANCE), 0)
        for column, size in zip(codes.T, DOMAIN.sizes, strict=True)
    ]
    rows = max(2, int(noisy[0].sum()))
    places = [_drawn(counts, rows) for counts in noisy]
    return Coder(DOMAIN).decode(np.stack(places, axis=1).astype(np.int32))


def _drawn(counts: np.ndarray, rows: int) -> np.ndarray:
    edges = np.cumsum(counts) if counts.sum() else np.arange(1, len(counts) + 1)
    return np.searchsorted(edges, noise.uniform(int(edges[-1]), rows), side="right")


def copied(table: Any) -> Any:
    """Hand out the rows themselves."""
    return table
