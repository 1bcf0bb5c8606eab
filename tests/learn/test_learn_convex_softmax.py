"""Softmax: gradients within their proven precision, and what minima with random slopes spend, by integrals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from convex_worlds import hockey
from flint import arb, ctx

from discreet.balls import bounds
from discreet.learn.convex import delta_bound
from discreet.learn.convex.logistic_gradient import FINE, RADIUS, WEIGHT
from discreet.learn.convex.objective_perturbation import (
    LOGISTIC_ROW,
    UNIT,
    Calibration,
    LogisticProblem,
    ObjectivePerturbation,
    RowLoss,
    minimum,
    ridge_for,
)
from discreet.learn.convex.softmax_gradient import SoftmaxRows, _exponentials, row_doubt, softmax_row
from discreet.privacy.gaussian import profile
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = BOTH = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)


def sample(n: int, d: int, classes: int, *, seed: int = 1, weighted: bool = False) -> SoftmaxRows:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    codes = (3 * rows @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)
    weights = rng.integers(0, (1 << WEIGHT) + 1, n) if weighted else None
    return SoftmaxRows(np.trunc(rows * RADIUS).astype(np.int64), codes, classes, weights)


def mechanism(dimension: int, classes: int, **changes: Any) -> ObjectivePerturbation:
    given: dict[str, Any] = {
        "dimension": dimension,
        "mu_squared": Fraction(1, 4),
        "ridge": Fraction(2),
        "output_mu_squared": Fraction(1, 100),
        "steepest": Fraction(1, 2),
        "row_doubt": row_doubt(classes),
    }
    return ObjectivePerturbation(**(given | changes))


# --- precision ---


def test_exponentials_are_as_exact_as_the_proof_says() -> None:
    rng = np.random.default_rng(3)
    edges = [place + extra for place in range(0, 47 << 57, 1 << 55) for extra in (0, 1, (1 << 50) - 1)]
    behind = np.concatenate([rng.integers(0, 47 << 57, 5000), np.array(edges, dtype=np.int64)])
    before, ctx.prec = ctx.prec, 200
    try:
        found = _exponentials(behind)
        truth = [(-arb(part) / (1 << 57)).exp() for part in behind.tolist()]
        worst = max(float(abs(arb(value) / true - 1)) for value, true in zip(found.tolist(), truth, strict=True))
    finally:
        ctx.prec = before
    assert worst <= 4 * 2.0**-53
    assert _exponentials(np.array([0]))[0] == 1.0


@pytest.mark.parametrize("size", [0.0, 0.01, 1.0, 30.0, 1e5])
@pytest.mark.parametrize("classes", [3, 7])
def test_the_fast_gradient_is_within_its_doubt_of_one_from_balls(size: float, classes: int) -> None:
    data = sample(120, 3, classes, weighted=True)
    place = np.rint(np.random.default_rng(2).normal(size=3 * classes) * size * 2.0**FINE).astype(np.int64).tolist()
    # The slow one with 60 bits more stands for the truth.
    quick, truth = data.gradient(place, FINE), data.gradient([at << 60 for at in place], FINE + 60)
    apart = sum((Fraction(a) - Fraction(b, 1 << 60)) ** 2 for a, b in zip(quick, truth, strict=True))
    assert apart <= data.doubt(FINE) ** 2
    floats = data.smooth(np.array(place) * 2.0**-FINE)[1]
    assert np.allclose([float(part) * 2.0**-UNIT for part in quick], floats, atol=1e-9)


def test_what_a_row_adds_does_not_depend_on_the_others() -> None:
    data, place = sample(70, 3, 4, weighted=True), [(7 * k - 20) << FINE for k in range(12)]
    assert data.weights is not None
    parts = [
        SoftmaxRows(data.rows[i : i + 1], data.codes[i : i + 1], 4, data.weights[i : i + 1]).gradient(place, FINE)
        for i in range(70)
    ]
    assert tuple(map(sum, zip(*parts, strict=True))) == data.gradient(place, FINE)


def test_rows_without_a_class_are_zero_and_count_nothing() -> None:
    data = sample(50, 3, 4)
    more = SoftmaxRows(np.vstack([data.rows, np.zeros((5, 3), np.int64)]), np.append(data.codes, [-1] * 5), 4)
    place = list(range(12))
    assert more.gradient(place, FINE) == data.gradient(place, FINE)


def test_a_minimum_is_certified_and_near_the_true_one() -> None:
    data, subject = sample(400, 2, 3, weighted=True), mechanism(6, 3)
    slope = [123_456, -9_876_543, 5, 77, -1, 3]
    place = subject.search(data, slope)
    whole = tuple(part << (UNIT - subject.bits) for part in slope)
    problem = LogisticProblem(ridge=subject.ridge_units, slope=whole, tolerance=int(subject.tolerance * (1 << UNIT)))
    assert problem.certifies(problem.derivative(data, place), doubt=data.doubt(FINE))
    assert not problem.certifies(problem.derivative(data, [place[0] + (1 << 30), *place[1:]]), doubt=data.doubt(FINE))
    few = SoftmaxRows(data.rows[:40], data.codes[:40], 3)
    finer = LogisticProblem(ridge=problem.ridge, slope=whole, tolerance=problem.tolerance >> 24)
    nearer, fine = minimum(finer, few)
    assert fine > FINE
    near = subject.search(few, slope)
    apart = sum((Fraction(a, 1 << FINE) - Fraction(b, 1 << fine)) ** 2 for a, b in zip(near, nearer, strict=True))
    assert apart <= subject.reach**2


def test_more_rows_than_prepared_for_are_searched_with_finer_numbers() -> None:
    data = sample(60, 2, 3)
    few = mechanism(6, 3, rows=1, mu_squared=Fraction(1 << 20))
    first, second = (np.array(one.search(data, [0] * 6)) / 2.0**FINE for one in (few, mechanism(6, 3)))
    assert np.allclose(first, second, atol=1e-6)


def test_a_certificate_counts_what_the_gradient_may_be_off() -> None:
    problem = LogisticProblem(ridge=1, slope=(0,), tolerance=100)
    assert problem.certifies([100])
    assert problem.certifies([60], doubt=40)
    assert not problem.certifies([61], doubt=40)
    assert not problem.certifies([0], doubt=101)


# --- privacy ---

# Three classes on one axis: coefficients that add up to something move nothing, so the plane across is all there is.
_CONTRASTS = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
POINTS = [(x, y) for x in (-1.0, 0.5, 1.0) for y in (0, 1, 2)]


@dataclass(frozen=True)
class SoftmaxMinimum:
    """The ideal minimum of rows (x, class) or (x, class, weight), with a ridge and a slope of this deviation."""

    sigma: float
    ridge: float

    def density(self, world: Any, side: Any) -> Any:
        """Return the density of the minimum on a square of places in the plane of contrasts."""
        place = np.stack(np.meshgrid(side, side, indexing="ij"))
        down, curved = self.ridge * place, self.ridge * np.eye(2)[:, :, None, None] * np.ones_like(place[0])
        for (x, y, *weight), times in Counter(world).items():
            weighs = times * (weight[0] if weight else 1.0)
            margins = x * np.einsum("ck,cij->kij", _CONTRASTS, place)
            powers = np.exp(margins - margins.max(axis=0))
            chances = powers / powers.sum(axis=0)
            residual = chances - (np.arange(3) == y)[:, None, None]
            down = down + weighs * x * np.einsum("ck,kij->cij", _CONTRASTS, residual)
            first = np.einsum("ck,kij,dk->cdij", _CONTRASTS, chances, _CONTRASTS)
            mean = np.einsum("ck,kij->cij", _CONTRASTS, chances)
            curved = curved + weighs * x * x * (first - mean[:, None] * mean[None])
        jacobian = curved[0, 0] * curved[1, 1] - curved[0, 1] ** 2
        squares = (down**2).sum(axis=0) / self.sigma**2
        return np.exp(-squares / 2) / (2 * np.pi * self.sigma**2) * jacobian


def kappa_of(ridge: float, slots: int = 1) -> float:
    return 2 * log(1 + 1 / (3 * ridge)) if slots == 1 else 2 / (3 * ridge)


def claim(subject: SoftmaxMinimum, epsilon: float, relation: Relation, **wrong: Any) -> float:
    """Return the delta that is claimed, or one for a wrong length, Jacobian or number of corners."""
    slots = wrong.get("slots", 1)
    found = delta_bound(
        Fraction(epsilon),
        kappa=Fraction(wrong.get("kappa", kappa_of(subject.ridge, slots))),
        sums=Fraction(0),
        each=Fraction(wrong.get("squared_length", 2) / subject.sigma**2),
        problems=1,
        relation=relation,
        slots=slots,
        ends=softmax_row(3).ends,
    )
    return float(found)


def largest(subject: SoftmaxMinimum, pairs: Any, epsilons: tuple[float, ...], side: Any) -> list[float]:
    """Return the largest delta over all pairs, in both directions, at each epsilon."""
    laws = {world: subject.density(world, side) for world in {world for pair in pairs for world in pair}}
    width = float(side[1] - side[0]) ** 2
    assert max(abs(law.sum() * width - 1) for law in laws.values()) < 1e-3
    both = [*pairs, *((b, a) for a, b in pairs)]
    return [max(hockey(laws[a], laws[b], width, epsilon) for a, b in both) for epsilon in epsilons]


SIDE = np.linspace(-16, 16, 161)


def test_the_loss_of_softmax_has_the_corners_the_rank_and_the_trace_that_are_claimed() -> None:
    for classes in (3, 5, 10):
        row, rng = softmax_row(classes), np.random.default_rng(0)
        assert (row.ends, row.rank) == (classes - 1, classes - 1)
        for power in (0.0, 0.1, 1.0, 20.0):
            chances = np.exp(rng.normal(size=classes) * power)
            chances /= chances.sum()
            matrix = np.diag(chances) - np.outer(chances, chances)
            values = np.linalg.eigvalsh(matrix)
            assert values.sum() <= float(row.trace) + 1e-12
            assert (values > 1e-12).sum() <= row.rank
            assert values.max() <= 0.5 + 1e-12
            assert (chances - np.eye(classes)[0]) @ (chances - np.eye(classes)[0]) <= row.squared_length
        even = np.full(classes, 1 / classes)
        assert np.trace(np.diag(even) - np.outer(even, even)) == pytest.approx(float(row.trace))


@pytest.mark.parametrize("subject", [SoftmaxMinimum(1.0, 0.8), SoftmaxMinimum(2.0, 1.5)], ids=repr)
@pytest.mark.parametrize("relation", BOTH)
def test_the_bound_dominates_brute_force(subject: SoftmaxMinimum, relation: Relation) -> None:
    bases: list[Any] = [(), ((1.0, 0),), ((1.0, 0), (0.5, 1))]
    points: list[Any] = [*POINTS, (1.0, 1, 0.3)]
    pairs = [(base, (*base, point)) for base in bases for point in points]
    if relation is REPLACE_ONE:
        pairs = [((*base, a), (*base, b)) for base in bases[:2] for a, b in product(points, repeat=2) if a < b]
    epsilons = (1.2, 2.0, 3.0)
    for epsilon, found in zip(epsilons, largest(subject, pairs, epsilons, SIDE), strict=True):
        assert found <= claim(subject, epsilon, relation) + 1e-4


def test_the_norm_of_one_class_alone_is_caught() -> None:
    """Many rows of one class move the minimum to where one of another has residuals of -1 and 1: sqrt 2, not 1."""
    subject, epsilon, many = SoftmaxMinimum(1.0, 3.0), 3.0, ((1.0, 0),) * 3000
    (found,) = largest(subject, [(many, (*many, (1.0, 1)))], (epsilon,), np.linspace(-12, 12, 481))
    assert claim(subject, epsilon, ADD_REMOVE, squared_length=1) < found / 2
    assert found <= claim(subject, epsilon, ADD_REMOVE)


def test_a_jacobian_of_rank_one_is_caught() -> None:
    """At zero both eigenvalues of a row are a third; the largest that there may be is a half, of one alone."""
    subject, epsilon, side = SoftmaxMinimum(20.0, 0.05), 3.0, np.linspace(-12, 12, 601)  # Beyond, nothing is curved.
    width = float(side[1] - side[0]) ** 2
    one, none = (subject.density(world, side) for world in (((1.0, 0),), ()))
    found = hockey(one, none, width, epsilon)
    alone = log(1 + 1 / (2 * subject.ridge))
    assert claim(subject, epsilon, ADD_REMOVE, kappa=alone) < 1e-9 < 1e-6 < found <= claim(subject, epsilon, ADD_REMOVE)
    assert hockey(one, none, width, kappa_of(subject.ridge) + 0.05) <= claim(subject, kappa_of(0.05) + 0.05, ADD_REMOVE)


@pytest.mark.parametrize("slots", [2, 3])
def test_the_bound_dominates_brute_force_when_a_person_is_added(slots: int) -> None:
    subject = SoftmaxMinimum(1.0, 0.8)
    spread = SoftmaxMinimum(subject.sigma * slots, subject.ridge * slots)
    people = [rows for size in range(1, slots + 1) for rows in combinations_with_replacement(POINTS[5:], size)]
    bases: list[Any] = [(), ((1.0, 0),) * slots]
    pairs = [(base, (*base, *(p[turn % len(p)] for turn in range(slots)))) for base in bases for p in people]
    epsilons = (1.5, 2.5)
    for epsilon, found in zip(epsilons, largest(spread, pairs, epsilons, SIDE), strict=True):
        assert found <= claim(subject, epsilon, ADD_REMOVE, slots=slots) + 1e-4
    # Noise and a ridge for one row, and rows that keep their weight, are seen.
    many, person = ((1.0, 0),) * 3000, ((1.0, 1),) * slots
    pair = [(many, (*many, *person))]
    (wrong,) = largest(SoftmaxMinimum(1.0, 3.0), pair, (3.0,), np.linspace(-12, 12, 481))
    assert wrong > claim(SoftmaxMinimum(1.0, 3.0), 3.0, ADD_REMOVE, slots=slots)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("slots", [1, 2])
def test_every_corner_of_the_polytopes_is_in_the_bound(relation: Relation, slots: int) -> None:
    """A row has as many corners as classes, one of them zero; replaced, all pairs of them; in slots, all tuples."""
    if relation is REPLACE_ONE and slots > 1:
        return
    ends, kappa, sums, each = 4, Fraction(1, 10), Fraction(1, 50), Fraction(1, 30)
    lengths = (0, *[1] * ends)
    corners = product(lengths, repeat=2 if relation is REPLACE_ONE else slots)
    scale = 1 if relation is REPLACE_ONE else slots
    exact = sum(bounds(profile(sums + Fraction(sum(corner), scale) ** 2 * each, 1 - kappa))[1] for corner in corners)
    given: dict[str, Any] = {"kappa": kappa, "sums": sums, "each": each, "problems": 1, "relation": relation}
    found = delta_bound(Fraction(1), **given, slots=slots, ends=ends)
    assert float(found) == pytest.approx(min(1.0, float(exact)), rel=1e-9)
    assert found > delta_bound(Fraction(1), **given, slots=slots)  # One corner a row would be too few.


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("classes", [3, 10])
def test_a_calibration_keeps_its_promise_for_less_noise_than_one_class_against_the_rest(
    relation: Relation, classes: int
) -> None:
    given: dict[str, Any] = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6), "relation": relation}
    subject, rest = Calibration(**given, loss=softmax_row(classes)), Calibration(**given, problems=classes)
    assert subject.holds(subject.mu_squared)
    assert not subject.holds(subject.mu_squared * Fraction(1001, 1000))
    assert subject.slope_mu_squared == subject.each / 2
    wider = sqrt(subject.slope_mu_squared / rest.slope_mu_squared)
    assert wider > 0.93 * sqrt(classes / 2)
    rank, ridge = classes - 1, float(ridge_for(subject.kappa, loss=softmax_row(classes)))
    assert rank * log(1 + 1 / (classes * ridge)) <= float(subject.kappa)


@pytest.mark.parametrize(
    ("loss", "slots", "percent"),
    [(LOGISTIC_ROW, 10, 6), (softmax_row(3), 5, 12), (softmax_row(3), 10, 27), (softmax_row(10), 4, 25)],
)
def test_people_with_several_rows_cost_what_the_page_says(loss: RowLoss, slots: int, percent: int) -> None:
    known: dict[str, Any] = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6), "relation": ADD_REMOVE, "loss": loss}
    one, many = (Calibration(**known, slots=filled).mu_squared for filled in (1, slots))
    assert round(100 * (sqrt(one / many) - 1)) == percent
