"""The smooth bound for regression: the exact eigenvalue, smoothness, and fits of all small data sets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from sensitivity_worlds import ADD_REMOVE, REPLACE_ONE

from discreet.adaptive.eigenvalue_bound import EigenvalueBound, least_eigenvalue
from discreet.errors import InvalidParameter

POINTS = [(x, y) for x in (-1.0, 0.0, 0.25, 0.5, 1.0) for y in (-1.0, 1.0)]


def bound(relation=REPLACE_ONE, **changed) -> EigenvalueBound:
    fields = {"row_norm": Fraction(1), "response": Fraction(1), "radius": Fraction(2), "ridge": Fraction(1, 2)}
    return EigenvalueBound(relation=relation, **(fields | changed))


def fitted(rows, ridge: float, radius: float) -> float:
    """The one coefficient of a fit within [-radius, radius]."""
    gram, moment = sum(x * x for x, _ in rows) + ridge, sum(x * y for x, y in rows)
    return 0.0 if gram == 0 else max(-radius, min(radius, moment / gram))


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_smallest_eigenvalue_agrees_with_numpy_and_is_never_above(dimension: int) -> None:
    source = np.random.default_rng(3)
    for rows in (0, 1, 7, 5000):
        table = source.normal(size=(rows, dimension))
        subject = bound(row_norm=Fraction(dimension))
        exact = subject.clamped(table).astype(float) * float(subject.step)
        found = float(subject.smallest_eigenvalue(table))
        assert found == pytest.approx(float(np.linalg.eigvalsh(exact.T @ exact)[0]), rel=1e-9, abs=1e-8)


def test_the_smallest_eigenvalue_of_known_matrices_is_rounded_down() -> None:
    assert least_eigenvalue([[7]]) == 7
    assert least_eigenvalue([[2, 1], [1, 2]]) == 1
    assert least_eigenvalue([[20, 10], [10, 30]]) == 13  # 25 - sqrt(125) = 13.8…
    assert least_eigenvalue([[1, 1], [1, 1]]) == 0
    assert least_eigenvalue([[5, 0, 0], [0, 5, 0], [0, 0, 5]]) == 5  # A root three times over.


def test_rows_are_pulled_into_the_ball_one_by_one() -> None:
    wild = np.array([[3.0, 4.0], [1.0, 0.0], [math.inf, 1.0], [math.nan, 0.5], [1e300, -1e300], [0.6, 0.8]])
    placed = bound().clamped(wild)
    assert ((placed.astype(object) ** 2).sum(axis=1) <= 2**40).all()
    assert np.allclose(placed[0] / 2**20, (0.6, 0.8), atol=1e-5)
    assert placed[3][0] == 0
    assert abs(placed[3][1] - 2**19) <= 1
    for index in range(len(wild)):
        assert (bound().clamped(wild[index : index + 1])[0] == placed[index]).all()


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("ridge", ["0", "1/2"])
def test_the_bound_dominates_brute_force_and_is_smooth(relation, ridge) -> None:
    """Every fit of up to four rows out of ten, and every change of one of them."""
    subject, beta = bound(relation, ridge=Fraction(ridge)), Fraction(1, 4)
    sizes = [4] if relation is REPLACE_ONE else range(4)
    worlds = [rows for size in sizes for rows in combinations_with_replacement(POINTS, size)]
    sizes_of = {}
    for rows in worlds:
        squares = tuple(sorted(x * x for x, _ in rows))
        if squares not in sizes_of:
            table = np.array([[x] for x, _ in rows]).reshape(-1, 1)
            sizes_of[squares] = subject.smooth_bound(table, beta).approximate(0.25)
    for rows in worlds:
        here, size = fitted(rows, float(Fraction(ridge)), 2.0), sizes_of[tuple(sorted(x * x for x, _ in rows))]
        for other in _changed(rows, relation):
            there = sizes_of.get(tuple(sorted(x * x for x, _ in other)))
            if there is not None:
                assert size <= math.exp(0.25) * there * (1 + 1e-9)
            assert abs(here - fitted(other, float(Fraction(ridge)), 2.0)) <= size * (1 + 1e-5)


def _changed(rows, relation):
    less = [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
    if relation is ADD_REMOVE:
        return [*less, *((*rows, point) for point in POINTS)]
    return [(*rest, point) for rest, point in product(less, POINTS)]


def test_the_bound_is_the_largest_faded_term() -> None:
    """1000 rows (1, 0) and 900 rows (0, 1): the eigenvalue is 900, and L = 3."""
    table = np.array([[1.0, 0.0]] * 1000 + [[0.0, 1.0]] * 900)
    for beta in (0.001, 0.01, 1.0):
        eigenvalue = float(bound().smallest_eigenvalue(table))
        terms = [math.exp(-beta * k) * min(4, 6 / (max(eigenvalue - k, 0) + 0.5)) for k in range(1200)]
        found = bound().smooth_bound(table, Fraction(str(beta)))
        assert found.approximate(beta) == pytest.approx(max(terms), rel=1e-11)
        assert float(bound().local_sensitivity(table, found.distance)) == float(found.height)
    assert eigenvalue == pytest.approx(900, rel=1e-5)


def test_adding_a_row_moves_half_of_what_replacing_one_does() -> None:
    table = np.eye(2).repeat(50, axis=0)
    assert bound(REPLACE_ONE).local_sensitivity(table) == 2 * bound(ADD_REMOVE).local_sensitivity(table)


def test_the_local_bound_alone_is_not_smooth() -> None:
    """The mutant without fading: one row of few makes it grow by more than e^beta."""
    many, few = np.ones((3, 1)), np.ones((2, 1))
    subject, beta = bound(ADD_REMOVE, ridge=Fraction(0)), Fraction(1, 20)
    jump = subject.local_sensitivity(few) / subject.local_sensitivity(many)
    assert float(jump) > math.exp(0.05)
    peaks = [subject.smooth_bound(rows, beta).approximate(0.05) for rows in (few, many)]
    assert peaks[0] / peaks[1] <= math.exp(0.05) * (1 + 1e-9)


@pytest.mark.parametrize("changed", [
    {"row_norm": 0}, {"row_norm": "1e-200"}, {"response": -1}, {"radius": float("inf")}, {"ridge": -1},
    {"ridge": float("nan")}, {"relation": "replace one"},
])  # fmt: skip
def test_nonsense_is_refused(changed: dict) -> None:
    with pytest.raises(InvalidParameter):
        bound(**changed)


@pytest.mark.parametrize("rows", [[1.0, 2.0], np.zeros((3, 0)), np.zeros((2, 2, 2)), [["x", "y"]], [[None, 1.0]]])
def test_what_is_no_table_is_refused(rows) -> None:
    with pytest.raises(InvalidParameter, match="table"):
        bound().smooth_bound(rows, Fraction(1))
