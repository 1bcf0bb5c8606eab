"""Intervals of least squares: what they cost, how far one row moves them, and how penalties enter."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.privacy import Relation
from discreet.robust.least_squares import NoisyStatistics, ResidualSquares, Seen, solved
from discreet.robust.noisy_moments import NoisyMoments
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design, RegressionColumns
from discreet.robust.reweighting import Lens

DESIGN = Design.between([(-1, 1), (-1, 1)], (-1, 1))
NOISE = GaussianNoise(squared_multiplier=Fraction(4))
RADIUS = 1 << 15


def mechanism(kind: Any, **changes: Any) -> Any:
    return kind(**{"design": DESIGN, "relation": Relation.ADD_REMOVE, "noise": NOISE} | changes)


@pytest.mark.parametrize("relation", list(Relation))
def test_one_row_moves_the_squares_by_no_more_than_their_sensitivity_and_reaches_it(relation: Relation) -> None:
    squares = ResidualSquares(dimension=3, relation=relation, mu_squared=Fraction(1))
    allowed = squares.triangle.sensitivity(relation).squared_l2
    generator, worst = np.random.default_rng(2), 0
    rows = generator.normal(size=(400, 3))
    rows = np.trunc(rows / np.linalg.norm(rows, axis=1)[:, None] * RADIUS) / RADIUS
    rows[:3] = np.eye(3)
    sums = [np.array(squares.triangle.add_up(row[None], np.ones(1)), dtype=object) for row in rows]
    others = sums if relation is Relation.REPLACE_ONE else [np.zeros(6, dtype=object)]
    for one in sums:
        for other in others[:60]:
            worst = max(worst, int(((one - other) ** 2).sum()))
    assert worst <= allowed
    assert worst >= 0.99 * allowed


@pytest.mark.parametrize("kind", [RefinedRegression, NoisyStatistics])
def test_intervals_are_paid_from_the_same_budget(kind: Any) -> None:
    plain, with_them = mechanism(kind), mechanism(kind, inference_share=Fraction(1, 10))
    assert plain.squares is None
    assert with_them.squares.event.mu_squared == Fraction(1, 40)
    assert plain.event.mu_squared == with_them.event.mu_squared == Fraction(1, 4)


@pytest.mark.parametrize("kind", [RefinedRegression, NoisyStatistics])
@pytest.mark.parametrize(
    "wrong", [{"inference_share": 1}, {"inference_share": -1}, {"penalties": (1, 2)}, {"penalties": (0, 0, -1)}]
)
def test_shares_and_penalties_that_are_none_are_refused(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        mechanism(kind, **wrong)


def test_shares_must_leave_something_for_the_fit() -> None:
    with pytest.raises(InvalidParameter, match="leave something"):
        mechanism(RefinedRegression, inference_share=Fraction(9, 10))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [RefinedRegression, NoisyStatistics])
def test_a_penalty_pulls_as_ridge_regression_does(kind: Any) -> None:
    generator = np.random.default_rng(4)
    features = generator.uniform(-1, 1, size=(20_000, 2))
    targets = 0.2 + features @ [0.4, -0.3]
    penalties = (Fraction(0), Fraction(10_000), Fraction(10_000))
    quiet = GaussianNoise(squared_multiplier=Fraction(1, 25))
    found = mechanism(kind, noise=quiet, penalties=penalties).release(RegressionColumns([*features.T, targets])).value
    rows = np.column_stack([np.ones(len(features)), features])
    exact = np.linalg.solve(rows.T @ rows + np.diag([0.0, 1e4, 1e4]), rows.T @ targets)
    assert np.abs(np.array([float(part) for part in found]) - exact).max() < 0.02
    assert abs(exact[1] - 0.4) > 0.1  # So a fit without the penalty would not pass.


def test_covariance_is_that_of_the_sandwich_without_noise_and_nothing_is_told_within_it() -> None:
    gram, squares = np.diag([4.0, 9.0]), np.diag([2.0, 3.0])
    found = solved(NoisyMoments(gram, np.array([4.0, 9.0]), 0.0, 0.0), squares, 0.0)
    assert found is not None
    assert np.allclose(found.solution, 1)
    assert np.allclose(np.diag(found.covariance), [2 / 16, 3 / 81])
    assert solved(NoisyMoments(gram, np.ones(2), 3.0, 1.0), squares, 0.0) is None


def test_noise_widens_intervals() -> None:
    gram, squares = np.diag([400.0, 900.0]), np.diag([2.0, 3.0])
    reaches = []
    for noise in (0.0, 1.0, 5.0):
        found = solved(NoisyMoments(gram, np.array([40.0, 90.0]), noise, noise), squares, noise)
        assert found is not None
        reaches.append(np.diag(found.covariance))
    assert (reaches[0] < reaches[1]).all()
    assert (reaches[1] < reaches[2]).all()


def test_no_penalty_changes_nothing() -> None:
    seen = Seen(Lens.plain(2), 1.0, 1.0, NoisyMoments(np.eye(2), np.ones(2), 0.0, 0.0))
    assert seen.penalised((Fraction(0), Fraction(0))) is seen
