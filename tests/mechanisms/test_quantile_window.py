"""A quantile looks closely at a window of ranks only; the law is that of a look at everything."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statistical import fits, rejects

from discreet.mechanisms import Grid, Quantile, quantile
from discreet.mechanisms.order_statistics import Ranked, sorted_run
from discreet.privacy.relation import Relation

GRID = Grid(low=Fraction(0), high=Fraction(15), step=Fraction(1), default=Fraction(7))
DATA = np.array([0.2, 1, 1, 2, 2.9, 3, 3, 3, 4.5, 6, 6, 9, 9, 12, 14, 15])
ONLY_NEAR = -math.log(16)  # Then a single rank on each side is looked at.
DRAWS = 1500


def made(
    relation: Relation, q: Fraction = Fraction(1, 2), *, epsilon: Fraction = Fraction(1, 2), flips: bool = False
) -> Quantile:
    return Quantile(quantile=q, epsilon=epsilon, grid=GRID, relation=relation, flips=flips)


def law(mechanism: Quantile) -> list[float]:
    masses = mechanism.distribution(DATA).masses
    return [float(masses[place]) for place in range(16)]


def drawn(mechanism: Quantile) -> list[int]:
    sample = Ranked.of(DATA, GRID)
    return [mechanism._choose(sample) for _ in range(DRAWS)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("relation", "q"),
    [(Relation.REPLACE_ONE, Fraction(1, 2)), (Relation.ADD_REMOVE, Fraction(1, 3)), (Relation.ADD_REMOVE, Fraction(1))],
)
def test_a_narrow_window_draws_from_the_same_law(
    relation: Relation, q: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantile, "_UNLIKELY", ONLY_NEAR)
    mechanism = made(relation, q)
    assert fits(drawn(mechanism), law(mechanism))


@pytest.mark.parametrize("window", [30, ONLY_NEAR])
def test_permute_and_flip_is_drawn_from_its_law_by_rejection(window: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile, "_UNLIKELY", window)
    mechanism = made(Relation.REPLACE_ONE, epsilon=Fraction(2), flips=True)
    assert fits(drawn(mechanism), law(mechanism))


def test_permute_and_flip_that_keeps_all_exponential_draws_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then the exponential mechanism, whose law is another: one point shared by all, and 15 others beside it."""
    monkeypatch.setattr(quantile, "stays_when_permuted", lambda *_, **__: True)
    mechanism = Quantile(
        quantile=Fraction(1, 2), epsilon=Fraction(1, 2), grid=GRID, relation=Relation.REPLACE_ONE, flips=True
    )
    data = np.array([7] * 11)
    masses = mechanism.distribution(data).masses
    sample = Ranked.of(data, GRID)
    assert rejects([mechanism._choose(sample) for _ in range(DRAWS)], [float(masses[place]) for place in range(16)])


def test_a_window_that_keeps_all_it_draws_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile, "_UNLIKELY", ONLY_NEAR)
    monkeypatch.setattr(Quantile, "_is_kept", lambda *_, **__: True)
    mechanism = made(Relation.REPLACE_ONE)
    assert rejects(drawn(mechanism), law(mechanism))


@given(
    st.lists(st.integers(-2, 17), max_size=30) | st.lists(st.integers(4, 6), min_size=20, max_size=60),
    st.fractions(0, 1, max_denominator=9),
    st.integers(-2, 10),
)
def test_scores_inside_of_a_window_are_exact_and_outside_not_too_low(data: list[int], q: Fraction, room: int) -> None:
    mechanism = made(Relation.REPLACE_ONE, q)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile, "_UNLIKELY", room)
        first, last = mechanism._window(len(data))
        sample = Ranked.of(data, GRID)
        near = sample.between(first, last)
        exact, drawn = scores(mechanism.pieces(data)), scores(mechanism.pieces_near(sample))
    low, high = (near[0] if first > 1 else 0), (near[-1] if last < len(data) else 15)
    assert all(
        drawn[place] == exact[place] if low <= place <= high else drawn[place] >= exact[place] for place in exact
    )


@pytest.mark.parametrize("shape", ["spread", "tied", "equal", "sorted"])
@pytest.mark.parametrize("looked", [None, (1, 1), (98_000, 98_500), (196_000, 196_600)])
def test_rows_around_a_point_are_counted_whatever_was_sorted_before(shape: str, looked: tuple[int, int] | None) -> None:
    values = SHAPES[shape](200_000)
    grid = Grid.between(-3, 200_001, step="0.5")
    sample = Ranked.of(values, grid)
    if looked is not None:
        sample.between(*looked)
    placed = grid.indices(values)
    for point in (grid.first, -1, 0, 1, 2, 4, 8, 196_500, 392_400, grid.last):
        assert sample.counts_around(point) == (np.sum(placed < point), np.sum(placed <= point))


def scores(pieces: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[int, int]:
    listed = zip(*(part.tolist() for part in pieces), strict=True)
    return {start + place: score for start, length, score in listed for place in range(length)}


SHAPES = {
    "spread": lambda n: np.random.default_rng(1).normal(size=n),
    "tied": lambda n: np.random.default_rng(2).integers(0, 5, n),
    "equal": lambda n: np.zeros(n),
    "sorted": lambda n: np.arange(n),
    "periodic, so that the sample misleads": lambda n: np.where(np.arange(n) % 3, 1e6, np.arange(n)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [3 * (1 << 16), 200_001])
@pytest.mark.parametrize("wanted", [(1, 1), (70, 900), (98_000, 98_500), (196_000, 196_600)])
def test_long_arrays_are_ranked_as_if_sorted(shape: str, n: int, wanted: tuple[int, int]) -> None:
    values = SHAPES[shape](n)
    found = sorted_run(values, *wanted)
    assert found.between(*wanted).tolist() == np.sort(values)[wanted[0] - 1 : wanted[1]].tolist()


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "uint8", "longdouble"])
def test_numbers_placed_late_are_those_placed_at_once(kind: str) -> None:
    values = (np.random.default_rng(3).random(200_000) * 20 - (0 if kind == "uint8" else 2)).astype(kind)
    assert Ranked.of(values, GRID).between(-3, 200_004).tolist()[4:-4] == np.sort(GRID.indices(values)).tolist()


def test_what_is_missing_is_ranked_where_the_default_is() -> None:
    assert Ranked.of([1.0, None, 9.0, float("nan")], GRID).between(1, 4).tolist() == [1, 7, 7, 9]
    masked = np.ma.MaskedArray([1, 3, 9], mask=[False, True, False])
    assert Ranked.of(masked, GRID).between(1, 3).tolist() == [1, 7, 9]
