"""Regression in rounds: rows by themselves, claims by all neighbours, totals, and fits that are close."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from robust.regression_worlds import ADD_REMOVE, BOTH, REPLACE_ONE, largest_mu_squared, small

from discreet.errors import InvalidParameter, Refused
from discreet.lab.verify import sensitivity, squared_l2, worlds
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.privacy.relation import Relation
from discreet.robust import AdaSSP, Design, NoisyStatistics, RefinedRegression, predict
from discreet.robust.least_squares import shrunken, whitening
from discreet.robust.noisy_moments import FINEST, NoisyMoments
from discreet.robust.regression_design import HALF, RegressionColumns
from discreet.robust.reweighting import Lens, bounded, lengths
from discreet.robust.tail_bounds import Tails

NAN = float("nan")
DESIGN = Design.between([(0, 4)], (-1, 3))
VALUES = (0, 1, 2, 4, 1e300)  # The last one is clamped.
RECORDS = (*product(VALUES, (-1, 3)), (1, 0.5), (NAN, 3), (2, None), "no record")


def made(relation: Relation, size: int | None = None, **fields: Any) -> RefinedRegression:
    noise = fields.pop("noise", GaussianNoise.for_rho(Fraction(1, 2)))
    known = size if relation is REPLACE_ONE else None
    return RefinedRegression(
        design=fields.pop("design", DESIGN), relation=relation, noise=noise, public_rows=known, **fields
    )


def looks() -> list[tuple[Lens, float, float]]:
    """Public looks of a later round: turned, stretched, fitted, and cut short in many ways."""
    generator = np.random.default_rng(11)
    made = [(Lens.plain(2), 2**0.5, 1.0)]
    for radius, reach in ((0.3, 0.1), (1.0, 2.0), (40.0, 0.01), (1e-6, 1e-9)):
        turn = generator.normal(size=(2, 2)) * np.exp(generator.normal(size=2))
        made.append((Lens(turn, generator.normal(size=2)), radius, reach))
    return made


class TestRows:
    def test_every_row_lies_in_the_frame(self) -> None:
        rows = DESIGN.rows(RECORDS)
        assert rows.dtype == np.int64
        assert (rows[:, 0] == HALF).all()
        assert np.abs(rows).max() <= HALF
        assert DESIGN.rows([(4, -1), (0, 3), (NAN, 1), (2, "x")]).tolist() == [
            [HALF, HALF, -HALF],
            [HALF, -HALF, HALF],
            [HALF, 0, 0],
            [HALF, 0, 0],
        ]

    def test_tables_and_columns_and_lists_are_read_alike(self) -> None:
        table = np.array([[0.3, 1.0], [2.5, -0.2], [9.0, 7.0]])
        rows = DESIGN.rows(table)
        assert (DESIGN.rows(table.tolist()) == rows).all()
        assert (DESIGN.rows(RegressionColumns([table[:, 0], table[:, 1].tolist()])) == rows).all()

    @pytest.mark.parametrize("number", range(5))
    def test_what_is_seen_of_a_row_depends_on_that_row_alone(self, number: int) -> None:
        lens, radius, reach = looks()[number]
        generator = np.random.default_rng(number)
        rows = np.column_stack([np.full(999, HALF), generator.integers(-HALF, HALF + 1, size=(999, 2))])
        together = bounded(*lens.look(rows), radius, reach, FINEST)
        for start in (0, 1, 500, 998):
            for stop in (start + 1, min(start + 7, 999)):
                alone = bounded(*lens.look(rows[start:stop]), radius, reach, FINEST)
                assert (alone[0] == together[0][start:stop]).all()
                assert (alone[1] == together[1][start:stop]).all()
                near = lengths(lens.look(rows[start:stop])[0])
                assert (near == lengths(lens.look(rows)[0])[start:stop]).all()

    def test_rows_are_never_longer_than_the_radius(self) -> None:
        rows = DESIGN.rows(RECORDS)
        for lens, radius, reach in looks():
            placed, responses = bounded(*lens.look(rows), radius, reach, FINEST)
            assert ((placed**2).sum(axis=1) <= FINEST**2).all()
            assert (np.abs(responses) <= FINEST).all()

    def test_nothing_is_cut_in_the_first_round(self) -> None:
        corners = DESIGN.rows([(0, 3), (4, 3), (4, -1)])
        placed, responses = bounded(*Lens.plain(2).look(corners), 2**0.5, 1.0, FINEST)
        # Rounding may push a corner out of the ball by a step, and then it is pulled back by two.
        assert np.abs(placed - np.rint(corners[:, :2] * (FINEST / 2**0.5 / HALF))).max() <= 2
        assert np.abs(np.abs(responses) - FINEST).max() <= 2


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("number", range(5))
def test_claim_of_every_round_dominates_brute_force(number: int, relation: Relation) -> None:
    lens, radius, reach = looks()[number]
    mechanism = made(relation, 2)
    world = small(range(len(RECORDS)), relation, 2)

    def rows(data: Any) -> Any:
        return bounded(*lens.look(DESIGN.rows([RECORDS[place] for place in data])), radius, reach, FINEST)

    for moments in mechanism.moments[1:]:  # The first two differ in size only.
        assert moments.radius == FINEST
        assert largest_mu_squared(moments, world, relation, rows) <= moments.mu_squared


@pytest.mark.parametrize("relation", BOTH)
def test_tails_change_by_their_sensitivity_and_no_more(relation: Relation) -> None:
    tails = Tails(levels=((1.0, 2.0, 4.0), (0.5, 1.0)), relation=relation, mu_squared=Fraction(1, 2))
    values = tuple(product((0.0, 1.0, 3.0, 9.0), (0.0, 0.7, 1.0)))
    world = worlds(tuple(range(len(values))), range(1, 3) if relation is ADD_REMOVE else [2])

    def counts(data: Any) -> list[int]:
        columns = np.array([values[place] for place in data]).T
        return [int(count) for counted in tails.counts(list(columns)) for count in counted]

    found = sensitivity(counts, world, relation=relation, distance=squared_l2).value
    assert found == tails.squared_sensitivity == (2 if relation is ADD_REMOVE else 4)
    assert tails.event.mu_squared == Fraction(1, 2)


def test_tails_find_the_level_that_few_exceed() -> None:
    tails = Tails(levels=((1.0, 2.0, 4.0, 8.0, 16.0),), relation=ADD_REMOVE, mu_squared=Fraction(100))
    column = np.repeat([0.5, 1.5, 3.0, 20.0], [50_000, 50_000, 10_000, 30])
    assert tails.chosen([column], beyond=100) == (4.0,)
    assert tails.chosen([column], beyond=20_000) == (2.0,)
    assert tails.chosen([column], beyond=0) == (16.0,)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("kind", [RefinedRegression, NoisyStatistics, AdaSSP])
def test_total_is_what_the_noise_was_made_for(kind: Any, relation: Relation) -> None:
    noise = GaussianNoise.for_epsilon(1, Fraction(1, 10**6))
    size = None if relation is ADD_REMOVE else 5
    mechanism = kind(design=DESIGN, relation=relation, noise=noise, public_rows=size)
    assert mechanism.event.mu_squared == 1 / noise.squared_multiplier


def test_a_round_that_is_not_billed_would_show() -> None:
    """The wrong neighbour: what the rounds draw, added up anew, is the event and not less."""
    for relation in BOTH:
        mechanism = made(relation, 5, shares=(Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)))
        spent = sum(moments.mu_squared for moments in mechanism.moments)
        counted = 2 * Fraction(mechanism.tails.squared_sensitivity) / mechanism.tails.variance
        assert mechanism.event.mu_squared == spent + counted == 1
        assert counted == Fraction(3, 20)


def linear(size: int, seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(size, 3))
    return X, X @ np.array([1.0, -2.0, 0.5]) + 4 + 0.5 * generator.normal(size=size)


def distance(release: Any, X: Any, y: Any) -> float:
    """How far private predictions are from those of least squares, over the deviation of the response."""
    table = np.column_stack([np.ones(len(X)), X])
    exact = table @ np.linalg.lstsq(table, y)[0]
    return float(np.sqrt(np.mean((predict(release.value, X) - exact) ** 2)) / y.std())


WIDE = Design.between([(-50, 50)] * 3, (-200, 200))


@pytest.mark.parametrize("relation", BOTH)
def test_rounds_find_their_way_from_bounds_that_are_far_too_wide(relation: Relation) -> None:
    """Noise for the bounds themselves drowns the fit; after two rounds it follows the data."""
    X, y = linear(20_000, 5)
    noise = GaussianNoise.for_epsilon(1, Fraction(1, 10**6))
    size = None if relation is ADD_REMOVE else len(X)
    shared: dict[str, Any] = {"design": WIDE, "relation": relation, "noise": noise, "public_rows": size}
    records = np.column_stack([X, y])
    assert distance(RefinedRegression(**shared).release(records), X, y) < 0.1
    for crude in (NoisyStatistics, AdaSSP):
        assert distance(crude(**shared).release(records), X, y) > 0.2


def published_adassp(X: Any, y: Any, epsilon: float, delta: float, generator: Any) -> Any:
    """AdaSSP as published, for features and response within [-1, 1] and an intercept, under add-remove. [Wan18]"""
    table = np.column_stack([np.ones(len(X)), X])
    size, log = table.shape[1], math.log(6 / delta)
    unit = size * math.sqrt(log) / (epsilon / 3)  # Rows are no longer than the root of their number of entries.
    gram = table.T @ table
    least = max(np.linalg.eigvalsh(gram)[0] + unit * generator.normal() - size * log / (epsilon / 3), 0.0)
    ridge = max(unit * math.sqrt(size * math.log(2 * size**2 / 0.05)) - least, 0.0)
    upper = np.triu(generator.normal(size=(size, size)) * unit)
    noisy = gram + upper + np.triu(upper, 1).T + ridge * np.eye(size)
    return np.linalg.solve(noisy, table.T @ y + unit / math.sqrt(size) * generator.normal(size=size))


@pytest.mark.soak
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
@pytest.mark.parametrize("kind", ["normal", "skewed", "contaminated"])
def test_rounds_are_closer_to_least_squares_than_adassp_as_published(kind: str, epsilon: str) -> None:
    generator = np.random.default_rng(12)
    X = generator.normal(size=(20_000, 4))
    X = np.exp(X / 2) - 1 if kind == "skewed" else X
    y = 1 + X @ np.array([1.0, -0.5, 0.25, 0.0]) + generator.normal(size=len(X))
    y = np.where(generator.random(len(X)) < 0.05, 8.0, y) if kind == "contaminated" else y
    X, y = np.clip(X / 5, -1, 1), np.clip(y / 10, -1, 1)
    table = np.column_stack([np.ones(len(X)), X])
    exact = np.linalg.lstsq(table, y)[0]
    noise = GaussianNoise.for_epsilon(epsilon, Fraction(1, 10**6))
    ours = made(ADD_REMOVE, design=Design.between([(-1, 1)] * 4, (-1, 1)), noise=noise)
    rows = np.column_stack([X, y])
    fits = [np.array([float(value) for value in ours.release(rows).value]) for _ in range(25)]
    theirs = [published_adassp(X, y, float(epsilon), 1e-6, generator) for _ in range(25)]
    apart = [np.median([np.linalg.norm(table @ (fit - exact)) for fit in some]) for some in (fits, theirs)]
    # Measured: a tenth to a third.
    assert apart[0] < 0.7 * apart[1]


def test_fit_without_much_noise_is_least_squares() -> None:
    X, y = linear(5_000, 6)
    design = Design.between([(-5, 5)] * 3, (-20, 20))
    records = np.column_stack([X, y])
    for kind in (RefinedRegression, NoisyStatistics, AdaSSP):
        mechanism = kind(design=design, relation=ADD_REMOVE, noise=GaussianNoise.for_rho(10**4))
        assert distance(mechanism.release(records), X, y) < 0.01


def test_release_says_what_it_is() -> None:
    release = made(ADD_REMOVE, noise=GaussianNoise.for_epsilon(1, Fraction(1, 10**6))).release([(1, 2), (3, 0)])
    assert release.labels == ("intercept", "x1")
    assert release.cost == "ε = 1, δ = 1e-6"
    assert all(isinstance(value, Fraction) for value in release.value)
    with pytest.raises(Refused, match="depends on the data"):
        release.interval()


def test_no_records_and_equal_records_are_answered_too() -> None:
    for records in (np.zeros((0, 2)), [(1, 1)] * 3):
        assert len(made(ADD_REMOVE).release(records).value) == 2
    assert len(made(REPLACE_ONE, 3).release([(1, 1)] * 3).value) == 2
    with pytest.raises(InvalidParameter, match="number of rows"):
        made(REPLACE_ONE, 4).release([(1, 1)] * 3)


def test_original_units_undo_the_frame() -> None:
    design = Design.between([(0, 10), (-2, 0)], (100, 300))
    # Within the frame: y = 0.5 + 0.25 x1 - 1 x2.
    intercept, first, second = design.original([0.5, 0.25, -1.0])
    for x1, x2 in ((0, -2), (10, 0), (5, -1), (2, -1.5)):
        inside = 0.5 + 0.25 * (x1 / 5 - 1) - (x2 + 1)
        assert float(intercept + first * x1 + second * Fraction(x2)) == pytest.approx(200 + 100 * inside)
    assert predict((intercept, first, second), [[5, -1]]) == pytest.approx([250.0])


def test_shrinking_does_nothing_without_noise_and_all_with_much() -> None:
    gram, cross = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    assert shrunken(NoisyMoments(gram, cross, 1e-9, 1e-9)) == pytest.approx(np.linalg.solve(gram, cross))
    assert np.abs(shrunken(NoisyMoments(gram, cross, 1e6, 1e6))).max() < 1e-6
    turn = whitening(NoisyMoments(gram, cross, 0.0, 0.0), 50.0)
    assert turn.T @ gram @ turn == pytest.approx(50 * np.eye(2))


@pytest.mark.parametrize(
    "bad",
    [
        {"shares": (Fraction(1),)},
        {"shares": (Fraction(1, 2), Fraction(1, 4))},
        {"shares": (Fraction(3, 2), Fraction(-1, 2))},
        {"tails_share": 0},
        {"tails_share": 1},
        {"relation": None},
        {"relation": REPLACE_ONE},
        {"public_rows": 3},
        {"noise": GaussianNoise.for_rho(Fraction(1, 10**40))},
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    known: dict[str, Any] = {"design": DESIGN, "relation": ADD_REMOVE, "noise": GaussianNoise.for_rho(1)}
    with pytest.raises(InvalidParameter):
        RefinedRegression(**(known | bad))


@pytest.mark.parametrize(
    ("features", "response"),
    [([], (0, 1)), ([(1, 0)], (0, 1)), ([(0, 1)], (0, NAN)), ([(0,)], (0, 1)), (3, (0, 1)), ([(0, 1)], None)],
)
def test_bad_bounds_are_refused(features: Any, response: Any) -> None:
    with pytest.raises(InvalidParameter):
        Design.between(features, response)
