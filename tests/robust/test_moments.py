"""Noisy moments: their joint sensitivity by all neighbours, their noise, and the ways to get both wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robust.regression_worlds import ADD_REMOVE, BOTH, REPLACE_ONE, largest_mu_squared, plain, small
from statistical import fits, rejects

from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import outcomes
from discreet.privacy.events import GDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation
from discreet.robust.noisy_moments import FINEST, Moments, best_weight, exact_moments, joint_loss

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "regression.json").read_text())["vectors"]
DIRECTIONS = ((5, 0), (3, 4), (4, -3), (-5, 0), (0, 0), (2, 1))
RECORDS = tuple((*x, y) for x in DIRECTIONS for y in (-5, 5, 1))
# Weights for which the worst pair is in this world: right angles, 3 to 5, 4 to 5, and from 2 on one direction.
TIGHT = (Fraction(6, 5), Fraction(8, 5), Fraction(2), Fraction(5))


def moments(relation: Relation, weight: Fraction | int = 1, **fields: Any) -> Moments:
    known: dict[str, Any] = {"dimension": 2, "radius": 5, "mu_squared": Fraction(1, 7)}
    return Moments(relation=relation, weight=Fraction(weight), **(known | fields))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("weight", [Fraction(1, 3), Fraction(1), *TIGHT])
def test_claim_dominates_brute_force(weight: Fraction, relation: Relation) -> None:
    subject = moments(relation, weight)
    assert subject.event.mu_squared == subject.mu_squared
    found = largest_mu_squared(subject, small(RECORDS, relation, 2), relation)
    assert found <= subject.mu_squared
    if relation is ADD_REMOVE or weight in TIGHT:
        assert found == subject.mu_squared


def test_three_features_are_no_worse() -> None:
    records = [(*x, y) for x in ((3, 4, 0), (0, 3, 4), (4, 0, -3), (5, 0, 0), (-5, 0, 0)) for y in (-5, 5)]
    for relation in BOTH:
        subject = moments(relation, 2, dimension=3)
        assert largest_mu_squared(subject, small(records, relation, 2), relation) == subject.mu_squared


@dataclass(frozen=True)
class Listed:
    """The law of noisy moments of one feature, every outcome with its probability."""

    moments: Moments
    event: GDP
    relation: Relation

    def distribution(self, data: Any) -> Outcomes:
        rows, responses = plain(data)
        gram, cross = exact_moments(rows, responses)
        laws = RoundedGaussianLaw(self.moments.gram_variance), RoundedGaussianLaw(self.moments.cross_variance)
        parts = zip(laws, (int(gram[0, 0]), int(cross[0])), strict=True)
        return outcomes.product(*(outcomes.from_law(law, value) for law, value in parts))


@pytest.mark.parametrize("relation", BOTH)
def test_claim_holds_on_all_data_sets(relation: Relation) -> None:
    """Rows of one feature, so that the law can be listed; the claim is about every epsilon that is tried."""
    records = ((0, 0), (1, 1), (1, -1), (-1, 1), (1, 0))
    subject = moments(relation, 2, dimension=1, radius=1, mu_squared=Fraction(3))
    world = small(records, relation, 2)
    assert verify.check(Listed(subject, subject.event, relation), world).holds
    # The wrong neighbours: noise of three quarters of the deviation, and under replace-one what adding would need.
    billed = GDP(mu_squared=subject.event.mu_squared * Fraction(9, 16))
    assert not verify.check(Listed(subject, billed, relation), world).holds
    if relation is REPLACE_ONE:
        other = moments(ADD_REMOVE, 2, dimension=1, radius=1, mu_squared=Fraction(3))
        assert not verify.check(Listed(other, other.event, relation), world).holds


class TestMutants:
    """What wrong authors charge, and a pair of neighbours that refutes each."""

    def test_replacing_billed_as_adding(self) -> None:
        subject = moments(ADD_REMOVE)
        assert largest_mu_squared(subject, small(RECORDS, REPLACE_ONE, 2), REPLACE_ONE) > 2 * subject.mu_squared

    def test_replacing_billed_with_root_two_for_both(self) -> None:
        """X'X needs the root of 2, X'y needs 2: twice a + b is too little as soon as X'y is in it."""
        right = moments(REPLACE_ONE, Fraction(6, 5))
        billed = 2 * sum(right.precisions)
        assert largest_mu_squared(right, small(RECORDS, REPLACE_ONE, 2), REPLACE_ONE) > billed

    def test_bounds_taken_from_the_data(self) -> None:
        """Rows divided by the longest one there: an outlier moves them all."""

        def normalised(data: Any) -> tuple[Any, Any]:
            rows, responses = plain(data)
            longest = max(1.0, float(np.sqrt((rows**2).sum(axis=1)).max(initial=0)))
            return np.trunc(rows * (5 / longest)).astype(np.int64), responses

        records = [(1, 0, 5), (0, 1, 5), (50, 0, 5)]
        for relation in BOTH:
            subject = moments(relation)
            world = small(records, relation, 4)
            assert largest_mu_squared(subject, world, relation, normalised) > subject.mu_squared

    def test_noise_off_the_diagonal_divided_by_root_two_once_more(self) -> None:
        right = moments(ADD_REMOVE, Fraction(1, 100))
        row = np.array([[3, 4]], dtype=np.int64)
        gram, _ = exact_moments(row, row[:, 0])
        diagonal = float(gram[0, 0] ** 2 + gram[1, 1] ** 2) / float(right.gram_variance)
        for divisor, holds in ((2, True), (4, False)):
            assert (diagonal + divisor * float(gram[0, 1]) ** 2 / float(right.gram_variance) <= 1 / 7) is holds


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("norm", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_best_weight_is_best(norm: Fraction, relation: Relation) -> None:
    def variance(weight: Fraction) -> Fraction:
        loss = joint_loss(Fraction(1), weight, relation)
        return loss / weight + norm**2 * loss / 2

    best = best_weight(norm, relation)
    assert all(variance(best) <= variance(best * factor) for factor in (Fraction(9, 10), Fraction(11, 10)))


def test_steps_are_as_fine_as_samplers_take_and_the_claim_stays() -> None:
    for power in range(0, 60, 6):
        for relation in BOTH:
            subject = moments(relation, 2, mu_squared=Fraction(1, 2**power), radius=0)
            assert subject.radius == FINEST or subject.cross_variance > 2**70
            assert max(subject.gram_variance, subject.cross_variance) <= 2**78
            assert subject.event.mu_squared == Fraction(1, 2**power)


def test_gram_is_free_under_replace_one_at_weight_two() -> None:
    """From b = 2 a on, both moments cost what X'y alone costs; below that they cost more."""
    one = Fraction(1)
    assert joint_loss(one, 2 * one, REPLACE_ONE) == 8 == 4 * 2
    assert joint_loss(one, 3 * one, REPLACE_ONE) == 12
    assert joint_loss(one, one, REPLACE_ONE) > 4


@pytest.mark.statistical
@pytest.mark.parametrize("relation", BOTH)
def test_noise_follows_its_law(relation: Relation) -> None:
    size = 40
    subject = moments(relation, 2, dimension=size)
    drawn = [subject.measure(np.zeros((1, size), np.int64), np.zeros(1, np.int64)) for _ in range(50)]
    assert all((measured.gram == measured.gram.T).all() for measured in drawn)
    upper = np.triu_indices(size, 1)
    samples = (
        ([np.diag(measured.gram) for measured in drawn], subject.gram_variance),
        ([measured.gram[upper] for measured in drawn], subject.gram_variance / 2),
        ([measured.cross for measured in drawn], subject.cross_variance),
    )
    for sample, variance in samples:
        steps = np.rint(25 * np.concatenate(sample)).astype(np.int64)
        assert fits(steps, RoundedGaussianLaw(variance))
        assert rejects(steps, RoundedGaussianLaw(2 * variance))
        assert rejects(steps, RoundedGaussianLaw(variance / 2))


def test_moments_are_exact_and_the_same_in_any_order() -> None:
    generator = np.random.default_rng(3)
    rows = generator.integers(-4096, 4097, size=(2000, 3))
    responses = generator.integers(-4096, 4097, size=2000)
    gram, cross = exact_moments(rows, responses)
    exact = [
        [sum(a * b for a, b in zip(one, other, strict=True)) for other in rows.T.tolist()] for one in rows.T.tolist()
    ]
    assert gram.tolist() == exact
    order = generator.permutation(2000)
    again = exact_moments(rows[order], responses[order])
    assert (again[0] == gram).all()
    assert (again[1] == cross).all()


def test_sensitivities_of_the_gram_matrix_agree_with_the_vectors() -> None:
    expected = next(vector for vector in VECTORS if vector["id"] == "robust/xtx_sensitivity")["expected"]
    squares = [joint_loss(Fraction(1), Fraction(1, 10**12), relation) for relation in BOTH]
    assert [float(square) ** 0.5 for square in squares] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        {"dimension": 0},
        {"dimension": 1.5},
        {"mu_squared": 0},
        {"mu_squared": "nan"},
        {"mu_squared": Fraction(1, 10**40)},
        {"weight": 0},
        {"weight": -1},
        {"radius": -1},
        {"radius": (1 << 15) + 1},
        {"relation": "add remove"},
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    known: dict[str, Any] = {"dimension": 2, "relation": ADD_REMOVE, "mu_squared": 1, "weight": 1}
    with pytest.raises(InvalidParameter):
        Moments(**(known | bad))
