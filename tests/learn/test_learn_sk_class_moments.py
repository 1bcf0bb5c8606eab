"""Counts, sums and squares of classes: their joint sensitivity by all neighbours, and the ways to get it wrong."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from statistical import fits, rejects

from discreet.errors import InvalidParameter
from discreet.lab.verify.small_worlds import neighbours, worlds
from discreet.learn.sklearn.moments import ClassMoments, coarser
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF

ADD_REMOVE, REPLACE_ONE = BOTH = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
REACH = 4


def subject(relation: Relation, classes: int = 2, dimension: int = 1, **fields: Any) -> ClassMoments:
    known: dict[str, Any] = {"mu_squared": Fraction(1, 7), "reach": REACH}
    return ClassMoments(relation=relation, classes=classes, dimension=dimension, **(known | fields))


def answers(moments: ClassMoments, data: Any) -> list[np.ndarray]:
    rows = np.array([record[:-1] for record in data], dtype=np.int64).reshape(-1, moments.dimension)
    return list(moments.exact(rows, np.array([record[-1] for record in data], dtype=np.int64)))


def largest(moments: ClassMoments, records: Any, relation: Relation, size: int = 2) -> Fraction:
    """The largest squared distance, in units of the noise, over all neighbours of at most so many rows."""
    found = worlds(records, (size,) if relation is REPLACE_ONE else range(size + 1))
    told = [answers(moments, data) for data in found]
    one, other = np.array(neighbours(found, relation)).T
    blocks = (np.stack([answer[block].ravel() for answer in told]) for block in range(3))
    apart = np.stack([((block[one] - block[other]) ** 2).sum(axis=1) for block in blocks], axis=1)
    variances = (moments.count_variance, moments.sum_variance, moments.square_variance)
    return max(_loss(row, variances) for row in np.unique(apart, axis=0).tolist())


def _loss(squares: list[int], variances: tuple[Fraction, ...]) -> Fraction:
    return sum((square / variance for square, variance in zip(squares, variances, strict=True)), Fraction(0))


RECORDS = [(x, label) for x in range(-REACH, REACH + 1) for label in (0, 1, -1)]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("count_weight", [Fraction(1, 100), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("weight", [Fraction(3, 8), Fraction(1, 2), Fraction(1)])
def test_claim_dominates_brute_force(weight: Fraction, count_weight: Fraction, relation: Relation) -> None:
    moments = subject(relation, weight=weight, count_weight=count_weight)
    assert moments.event.mu_squared == moments.mu_squared
    # Both terms of the maximum are reached on this grid, so the claim is not only safe but tight.
    assert largest(moments, RECORDS, relation) == moments.mu_squared


@pytest.mark.parametrize("relation", BOTH)
def test_two_columns_and_three_classes_are_no_worse(relation: Relation) -> None:
    records = [(*x, label) for x in product((-4, -1, 0, 3, 4), repeat=2) for label in (0, 1, 2)]
    moments = subject(relation, classes=3, dimension=2, weight=Fraction(1, 2))
    assert largest(moments, records, relation, size=1) == moments.mu_squared


def test_one_class_of_a_known_size_pays_for_sums_alone() -> None:
    for weight in (Fraction(3, 8), Fraction(3, 4)):
        moments = subject(REPLACE_ONE, classes=1, weight=weight)
        assert moments.loss == 4 * weight
        assert largest(moments, [(x, 0) for x in range(-REACH, REACH + 1)], REPLACE_ONE) == moments.mu_squared
        assert moments.counts_are_public


class TestMutants:
    """What wrong authors charge, and a pair of neighbours that refutes each."""

    def test_replacing_billed_as_adding(self) -> None:
        moments = subject(ADD_REMOVE)
        assert largest(moments, RECORDS, REPLACE_ONE) > moments.mu_squared

    def test_a_change_of_class_forgotten(self) -> None:
        """With counts this precise, a row that stays in its class is not the worst neighbour."""
        moments = subject(REPLACE_ONE, count_weight=Fraction(5))
        staying = largest(moments, [(x, 0) for x in range(-REACH, REACH + 1)], REPLACE_ONE)
        assert staying < moments.mu_squared == largest(moments, RECORDS, REPLACE_ONE)

    def test_a_weight_below_the_proven_ones(self) -> None:
        """At 1/4 the squares are no longer free: the claim 4 p would be broken."""
        rows = range(-16, 17)
        weight = Fraction(1, 4)
        worst = max(Fraction(x - y, 16) ** 2 * (weight + Fraction(x + y, 16) ** 2) for x in rows for y in rows)
        assert worst > 4 * weight
        with pytest.raises(InvalidParameter, match="3/8"):
            subject(REPLACE_ONE, weight=weight)

    def test_the_centre_forgotten(self) -> None:
        """Plain squares with the noise of centred ones: a row at a bound moves them by too much."""
        moments = subject(ADD_REMOVE)
        variances = (moments.count_variance, moments.sum_variance, moments.square_variance)
        assert _loss([1, REACH**2, REACH**4], variances) > moments.mu_squared

    def test_classes_read_from_the_data(self) -> None:
        """Standing of a class by its place among those that occur: one row renames the others."""
        moments = subject(ADD_REMOVE)

        def renamed(data: Any) -> Any:
            seen = sorted({record[-1] for record in data})
            return [(*record[:-1], seen.index(record[-1])) for record in data]

        few, more = [(4, 1), (4, 1)], [(4, 1), (4, 1), (0, 0)]
        moved = zip(answers(moments, renamed(few)), answers(moments, renamed(more)), strict=True)
        squares = [int(((a - b) ** 2).sum()) for a, b in moved]
        variances = (moments.count_variance, moments.sum_variance, moments.square_variance)
        assert _loss(squares, variances) > moments.mu_squared


@pytest.mark.statistical
def test_noise_follows_its_law() -> None:
    moments = subject(ADD_REMOVE, classes=200, dimension=10, mu_squared=Fraction(20))
    drawn = [moments.measure(np.zeros((0, 10), np.int64), np.zeros(0, np.int64)) for _ in range(12)]
    centre = moments.centre / REACH**2
    samples = (
        ([one.counts for one in drawn], moments.count_variance, 1),
        ([one.sums.ravel() for one in drawn], moments.sum_variance, REACH),
        ([(centre * one.counts[:, None] - one.squares).ravel() for one in drawn], moments.square_variance, REACH**2),
    )
    for sample, variance, unit in samples:
        steps = np.rint(unit * np.concatenate(sample)).astype(np.int64)
        assert fits(steps, RoundedGaussianLaw(variance))
        assert rejects(steps, RoundedGaussianLaw(2 * variance))
        assert rejects(steps, RoundedGaussianLaw(variance / 2))


def test_moments_are_exact_and_the_same_in_any_order() -> None:
    generator = np.random.default_rng(5)
    moments = subject(ADD_REMOVE, classes=3, dimension=2, reach=1 << 15)
    rows, labels = generator.integers(-(1 << 15), (1 << 15) + 1, size=(500, 2)), generator.integers(-1, 3, size=500)
    counts, sums, gaps = moments.exact(rows, labels)
    pairs = list(zip(rows.tolist(), labels.tolist(), strict=True))
    for label in range(3):
        inside = [row for row, own in pairs if own == label]
        assert counts[label] == len(inside)
        assert sums[label].tolist() == [sum(row[j] for row in inside) for j in range(2)]
        assert gaps[label].tolist() == [sum(moments.centre - row[j] ** 2 for row in inside) for j in range(2)]
    order = generator.permutation(500)
    again = moments.exact(rows[order], labels[order])
    assert all((one == other).all() for one, other in zip(again, (counts, sums, gaps), strict=True))


def test_steps_are_as_fine_as_samplers_take_and_the_claim_stays() -> None:
    for power in range(0, 60, 6):
        for relation in BOTH:
            moments = subject(relation, mu_squared=Fraction(1, 2**power), reach=0, dimension=30)
            assert moments.reach == 1 << 15 or moments.square_variance > 2**70
            assert moments.event.mu_squared == Fraction(1, 2**power)


def test_rounding_to_coarser_steps_keeps_the_bounds() -> None:
    assert coarser(np.array([[-HALF, HALF, HALF // 2, 0]]), 4).tolist() == [[-4, 4, 2, 0]]


@pytest.mark.parametrize(
    "bad",
    [
        {"dimension": 0},
        {"classes": 0},
        {"mu_squared": 0},
        {"mu_squared": Fraction(1, 10**40)},
        {"weight": Fraction(2)},
        {"weight": 0},
        {"count_weight": 0},
        {"reach": 1 << 16},
        {"reach": -1},
        {"relation": "both"},
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        subject(**({"relation": ADD_REMOVE} | bad))
