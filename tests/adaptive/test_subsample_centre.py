"""The centre of attention: its bound is smooth and above every change, on all small sets of points, and tight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from threshold_worlds import REPLACE_ONE, assert_pays_first, assert_refuses

from discreet.adaptive import gaussian, laplace, polynomial
from discreet.adaptive.aggregators import CentreOfAttentionQuery, Radii
from discreet.adaptive.noise_recipes import Norm
from discreet.adaptive.smooth_mechanisms import VectorSmoothSensitivityMechanism
from discreet.balls import precision
from discreet.errors import DiscreetError, InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Grid

LINE = Grid(low=Fraction(0), high=Fraction(8), step=Fraction(1), default=Fraction(0))
SQUARE = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(0))
ON_A_LINE = tuple((x,) for x in (0, 1, 3, 6, 8))
ON_A_SQUARE = ((0, 0), (0, 4), (1, 1), (3, 1), (4, 4))
BETA = Fraction(1, 5)


def centre(grid: Grid, dimension: int, size: int, norm: Norm = 2, entries: int = 1) -> CentreOfAttentionQuery:
    return CentreOfAttentionQuery(grid=grid, dimension=dimension, size=size, norm=norm, entries=entries)


def length(one: Sequence[Any], other: Sequence[Any], norm: int) -> float:
    apart = [abs(float(a - b)) for a, b in zip(one, other, strict=True)]
    return sum(apart) if norm == 1 else math.hypot(*apart)


def bound(query: CentreOfAttentionQuery, data: Any, beta: Fraction = BETA) -> float:
    with precision(128):
        return float(query.smooth_bound(data, beta).enclose(beta))


def neighbours(data: tuple[Any, ...], values: Sequence[Any], entries: int) -> list[tuple[Any, ...]]:
    """Everything that up to so many replacements lead to, as sorted tuples."""
    near = {data}
    for _ in range(entries):
        near = {
            tuple(sorted((*row[:i], value, *row[i + 1 :]))) for row in near for i in range(len(row)) for value in values
        }
    return sorted(near)


def assert_smooth(query: CentreOfAttentionQuery, values: Sequence[Any], beta: Fraction = BETA) -> float:
    """Check both laws of a smooth bound on all data sets; return the largest change over the bound."""
    found = list(combinations_with_replacement(sorted(values), query.size))
    bounds = {data: bound(query, data, beta) for data in found}
    middles = {data: query.values(data) for data in found}
    tightest = 0.0
    for data in found:
        for other in neighbours(data, values, query.entries):
            assert bounds[data] <= math.exp(beta) * bounds[other] * (1 + 1e-12)
            change = length(middles[data], middles[other], query.norm)
            assert change <= bounds[data] * (1 + 1e-12)
            tightest = max(tightest, change / bounds[data])
    return tightest


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_bound_is_smooth_and_above_all_changes_on_a_line(size: int, norm: Norm) -> None:
    assert assert_smooth(centre(LINE, 1, size, norm), ON_A_LINE) == 1  # Some change is as large as the bound.


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("size", "entries"), [(5, 1), (6, 1), (5, 2), (6, 3)])
def test_bound_is_smooth_and_above_all_changes_on_a_square(size: int, entries: int, norm: Norm) -> None:
    assert assert_smooth(centre(SQUARE, 2, size, norm, entries), ON_A_SQUARE) > 0.4


@pytest.mark.parametrize("size", [6, 8])
def test_balls_of_neighbours_share_a_point_where_a_unit_replaces_two(size: int) -> None:
    """Balls of half of all points and one more would do for one entry. With a large beta no diameter hides that."""
    values = tuple((x,) for x in (0, 2, 3, 4))
    assert 0.4 < assert_smooth(centre(LINE, 1, size, 1, entries=2), values, beta=Fraction(3)) <= 1


@dataclass(frozen=True)
class Wrong:
    """The centre with a bound as somebody wrote it."""

    right: CentreOfAttentionQuery
    cut: str

    @property
    def size(self) -> int:
        return self.right.size

    @property
    def entries(self) -> int:
        return self.right.entries

    @property
    def norm(self) -> Norm:
        return self.right.norm

    def values(self, data: Any) -> Any:
        return self.right.values(data)

    def smooth_bound(self, data: Any, beta: Fraction) -> Radii:
        found = self.right.smooth_bound(data, beta)
        if self.cut == "one radius":  # Of two balls that share a point the radii add up.
            return Radii(tuple(power // 2 for power in found.powers), found.diameter // 2, 1)
        import numpy as np

        far = np.sort(self.right._distances(self.right._points(data)), axis=1)
        first = self.right.majority - 1
        if self.cut == "best centre":  # The best centre may be the point that is replaced.
            return Radii(tuple(int(far[:, t].min()) for t in range(first, self.size)), found.diameter, 1)
        near = np.sort(far, axis=0)  # As if t points were enough that two balls need not share one.
        return Radii(tuple(int(near[j, self.size // 2 - 1 + j]) for j in range(self.size // 2)), found.diameter, 1)


@pytest.mark.parametrize("cut", ["one radius", "best centre", "half"])
def test_wrong_bounds_are_found_out(cut: str) -> None:
    with pytest.raises(AssertionError):
        assert_smooth(Wrong(centre(LINE, 1, 6, 1), cut), ON_A_LINE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "recipe",
    [polynomial(2, beta=BETA), laplace(2, "0.01", beta=BETA), gaussian(2, "0.05", beta="0.1")],
    ids=["polynomial", "laplace", "gaussian"],
)
def test_released_centre_keeps_its_claim_on_a_line(recipe: Any) -> None:
    query = centre(LINE, 1, 5, recipe.norm)
    report = verify.check(VectorSmoothSensitivityMechanism(query=query, recipe=recipe), worlds(ON_A_LINE, [5]))
    assert report.holds, str(report)


def test_released_centre_keeps_its_claim_on_a_square() -> None:
    """Coarse, since two coordinates have many outcomes."""
    coarse = Grid(low=Fraction(0), high=Fraction(1), step=Fraction(1), default=Fraction(0))
    recipe = laplace(4, "0.05", beta="0.2", dimension=2)
    mechanism = VectorSmoothSensitivityMechanism(query=centre(coarse, 2, 4, 1), recipe=recipe)
    report = verify.check(mechanism, worlds(list(product((0, 1), repeat=2)), [4]))
    assert report.holds, str(report)


def test_a_centre_of_wrong_scale_is_refuted() -> None:
    """As if each ball counted once: half of the bound."""
    recipe = polynomial(2, beta=BETA)
    right = centre(LINE, 1, 5, 1)
    wrong = Halved(right)
    report = verify.check(VectorSmoothSensitivityMechanism(query=wrong, recipe=recipe), worlds(ON_A_LINE, [5]))
    assert report.violated


@dataclass(frozen=True)
class Halved:
    right: CentreOfAttentionQuery

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "right"), name)

    def smooth_bound(self, data: Any, beta: Fraction) -> Any:
        found = self.right.smooth_bound(data, beta)
        return Radii(tuple(power // 2 for power in found.powers), found.diameter // 2, found.norm)


def test_centre_is_where_most_points_are_and_outliers_do_not_move_it() -> None:
    grid = Grid.between(0, 100, step=1)
    crowd = [(40 + k % 3, 60 - k % 2) for k in range(31)]
    query = centre(grid, 2, 41)
    near = query.values([*crowd, *[(0, 0)] * 10])
    far = query.values([*crowd, *[(100, 3)] * 10])
    assert length(near, (41, 59), 2) <= 2
    assert length(far, (41, 59), 2) <= 2
    assert bound(query, [*crowd, *[(0, 0)] * 10], Fraction(1)) < 10


def test_order_of_points_does_not_matter() -> None:
    query = centre(SQUARE, 2, 5)
    data = [ON_A_SQUARE[k] for k in (4, 0, 2, 2, 1)]
    assert query.values(data) == query.values(data[::-1])
    assert bound(query, data) == bound(query, data[::-1])


def test_wide_grids_are_exact() -> None:
    """Squares of distances that do not fit 64 bits."""
    fine = Grid(low=Fraction(0), high=Fraction(1), step=Fraction(1, 1 << 40), default=Fraction(0))
    rough = Grid(low=Fraction(0), high=Fraction(1 << 40), step=Fraction(1), default=Fraction(0))
    points = [(Fraction(k, 7), Fraction(k * k % 5, 5)) for k in range(5)]
    one = centre(fine, 2, 5).smooth_bound(points, BETA)
    other = centre(rough, 2, 5).smooth_bound([tuple(v * (1 << 40) for v in point) for point in points], BETA)
    assert one == other
    assert max(one.powers) > 1 << 64


def test_points_that_are_none_count_as_the_default() -> None:
    query = centre(SQUARE, 2, 5)
    plain = query.values([(0, 0)] * 3 + [(4, 4)] * 2)
    assert plain == query.values([None, "x", [1, 2, 3], (4, 4), (9, float("inf"))])


def test_refuses_nonsense() -> None:
    good = {"grid": LINE, "dimension": 2, "size": 7}
    assert_refuses(CentreOfAttentionQuery, good, numbers=["dimension", "size"])
    for extra in ({"norm": 3}, {"entries": 7}, {"entries": 0}, {"entries": 1.5}):
        with pytest.raises(DiscreetError):
            CentreOfAttentionQuery(**good | extra)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        centre(LINE, 1, 3).values([(1,)])


def test_pays_first() -> None:
    mechanism = VectorSmoothSensitivityMechanism(query=centre(LINE, 1, 3, 1), recipe=polynomial(1, beta="0.1"))
    assert mechanism.relation is REPLACE_ONE
    assert_pays_first(mechanism, [(1,), (2,), (3,)])
