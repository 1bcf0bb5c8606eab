"""Poisson regression with privacy: what a row can move, what a fit spends, and what it finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model as plain
from convex_worlds import hockey
from sk_purse import Purse, Watched
from sklearn.base import clone

from discreet.errors import InvalidParameter, Refused
from discreet.lab.verify.small_worlds import neighbours, worlds
from discreet.learn.convex import delta_bound
from discreet.learn.convex.logistic_gradient import (
    KNOTS,
    PIECE,
    RADIUS,
    STEEPEST,
    TOP,
    Labelled,
    LogisticCurvature,
    exponential_curve,
)
from discreet.learn.sklearn import PoissonRegressor
from discreet.learn.sklearn.poisson import POISSON_ROW, PoissonPlan
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = BOTH = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
RNG = np.random.default_rng(8)
X = RNG.normal(size=(8000, 2))
Y = RNG.poisson(np.exp(0.5 + 0.5 * X[:, 0] - 0.3 * X[:, 1]))
KNOWN: dict[str, Any] = {"epsilon": 2, "delta": 1e-6, "bounds": (-5, 5), "target_bounds": (0, 200)}


# --- the curve ---


@pytest.mark.parametrize("offset", [0, -1, -64, -300, -15 << PIECE])
def test_the_curve_rises_to_its_cap_and_is_near_the_exponential_one(offset: int) -> None:
    curve = exponential_curve(offset)
    places = np.arange(-KNOTS // 2, KNOTS // 2 + 1) / (1 << PIECE)
    wanted = np.minimum(np.exp(np.minimum(places + offset / (1 << PIECE), 0)), 1)
    assert (curve.rises >= 0).all()
    assert np.abs(curve.values / (1 << TOP) - wanted).max() <= 2.0**-19 + 1e-12
    assert curve.rises[0] == curve.rises[-1] == 0  # Beyond the knots it is flat, so the loss is convex everywhere.
    assert curve.steepest <= POISSON_ROW.trace == 1
    assert curve.values[-1] == 1 << TOP


@pytest.mark.parametrize("offset", [1, -16 << PIECE])
def test_offsets_beyond_the_knots_are_refused(offset: int) -> None:
    with pytest.raises(InvalidParameter):
        exponential_curve(offset)


@pytest.mark.parametrize("relation", BOTH)
def test_matrices_stay_within_their_sensitivity_and_reach_it(relation: Relation) -> None:
    angles = np.linspace(0, 2 * np.pi, 60)
    rows = np.trunc(np.column_stack([np.cos(angles), np.sin(angles)]) * RADIUS).astype(np.int64)
    curve, place = exponential_curve(0), np.array([-(1 << 34), 0])  # Just below the cap, where it is steepest.
    matrix = LogisticCurvature(dimension=2, relation=relation, mu_squared=Fraction(1), steepest=Fraction(1))
    parts = [matrix.exact(Labelled(row[None, :], np.array([0]), curve), place).reshape(-1) for row in rows]
    found = np.array(parts, dtype=np.float64)
    sizes = [((found - row) ** 2).sum(axis=1).max() for row in found]
    largest = float((found**2).sum(axis=1).max() if relation is ADD_REMOVE else max(sizes))
    assert 0.9 * matrix.squared_sensitivity <= largest <= matrix.squared_sensitivity
    wrong = LogisticCurvature(dimension=2, relation=relation, mu_squared=Fraction(1))
    with pytest.raises(InvalidParameter):  # One that was prepared for the logistic curve would claim a quarter.
        wrong.exact(Labelled(rows[:1], np.array([0]), curve), place)


# --- privacy, by integrals ---


@dataclass(frozen=True)
class PoissonMinimum:
    """The ideal minimum of rows (x, count next to the cap), with a ridge and a slope of this deviation."""

    sigma: float
    ridge: float
    offset: int = -32

    def density(self, world: Any, theta: Any) -> Any:
        curve = exponential_curve(self.offset)
        down, curved = self.ridge * theta, np.full_like(theta, self.ridge)
        for (x, y), times in Counter(world).items():
            place = np.clip(x * theta, -15.999, 15.999) * (1 << PIECE)
            piece = np.floor(place).astype(int)
            rises = curve.rises[piece + KNOTS // 2]
            values = (curve.values[piece + KNOTS // 2] + rises * (place - piece)) / (1 << TOP)
            down = down + times * (values - y) * x
            curved = curved + times * rises / (1 << (TOP - PIECE)) * x * x
        return np.exp(-((down / self.sigma) ** 2) / 2) / (self.sigma * np.sqrt(2 * np.pi)) * curved


def claim(subject: PoissonMinimum, epsilon: float, relation: Relation, **wrong: Any) -> float:
    found = delta_bound(
        Fraction(epsilon),
        kappa=Fraction(log(1 + float(wrong.get("steepest", POISSON_ROW.trace)) / subject.ridge)),
        sums=Fraction(0),
        each=Fraction(wrong.get("squared_length", 1) / subject.sigma**2),
        problems=1,
        relation=relation,
        ends=POISSON_ROW.ends,
    )
    return float(found)


def largest_delta(subject: PoissonMinimum, pairs: Any, epsilons: tuple[float, ...], beyond: float = 0.0) -> list[float]:
    far = (3 + 8 * subject.sigma) / subject.ridge + beyond
    theta = np.linspace(-far, far, 20_001)
    laws = {world: subject.density(world, theta) for world in {world for pair in pairs for world in pair}}
    both, width = [*pairs, *((b, a) for a, b in pairs)], float(theta[1] - theta[0])
    return [max(hockey(laws[a], laws[b], width, epsilon) for a, b in both) for epsilon in epsilons]


POINTS = [(x, y) for x in (-1.0, 0.5, 1.0) for y in (0.0, 0.4, 1.0)]


@pytest.mark.parametrize("subject", [PoissonMinimum(1.0, 1.0), PoissonMinimum(2.0, 0.8), PoissonMinimum(0.7, 4.0, 0)])
@pytest.mark.parametrize("relation", BOTH)
def test_the_bound_dominates_brute_force(subject: PoissonMinimum, relation: Relation) -> None:
    bases: list[Any] = [(), *((point,) for point in POINTS), ((1.0, 1.0),) * 60, ((1.0, 0.0),) * 60]
    pairs = [(base, (*base, point)) for base in bases for point in POINTS]
    if relation is REPLACE_ONE:
        pairs = [((*base, a), (*base, b)) for base in bases[::4] for a, b in product(POINTS, repeat=2) if a < b]
    epsilons = (1.0, 2.0, 3.0)
    for epsilon, found in zip(epsilons, largest_delta(subject, pairs, epsilons, beyond=6.0), strict=True):
        assert found <= claim(subject, epsilon, relation) + 1e-6


def test_counts_above_the_cap_and_noise_for_half_a_count_are_caught() -> None:
    """Many rows without counts move means to nothing, and one at the cap has a residual of one."""
    subject, epsilon, many = PoissonMinimum(1.0, 4.0, 0), 3.0, ((1.0, 0.0),) * 3000
    right, above = (largest_delta(subject, [(many, (*many, (1.0, y)))], (epsilon,), 9.0)[0] for y in (1.0, 2.0))
    allowed = claim(subject, epsilon, ADD_REMOVE)
    assert claim(subject, epsilon, ADD_REMOVE, squared_length=0.25) < right <= allowed < above


def test_the_jacobian_of_the_logistic_curve_is_caught() -> None:
    """No row has a slope above 1/4 there; just below the cap it is nearly 1 here."""
    subject, epsilon = PoissonMinimum(8.0, 0.1, 0), 2.2
    (found,) = largest_delta(subject, [((), ((1.0, 1.0),))], (epsilon,))
    assert claim(subject, epsilon, ADD_REMOVE, steepest=STEEPEST) < found <= claim(subject, epsilon, ADD_REMOVE)


# --- the plan ---


def plan(**changes: Any) -> PoissonPlan:
    model: Any = PoissonRegressor(**(KNOWN | changes))
    found: PoissonPlan = model._plan(model._table(X, Y))
    return found


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_cap_and_mean_spend_what_is_kept_for_them(relation: str) -> None:
    subject = plan(relation=relation)
    assert subject.fit.sums_spent <= subject.fit.calibration.sums
    assert subject.fit.event.epsilon == 2
    assert subject._spent <= subject.fit.kept * subject.fit.calibration.mu_squared
    with pytest.raises(InvalidParameter):  # A plan that forgot the mean.
        PoissonPlan(fit=replace(subject.fit, kept=Fraction(5, 100)))


@pytest.mark.parametrize("relation", BOTH)
def test_the_sum_of_counts_moves_by_one_cap_for_all_neighbours(relation: Relation) -> None:
    subject = plan(relation=relation)
    found = worlds([0, 1, 5000, (1 << TOP) - 1, 1 << TOP], (2,) if relation is REPLACE_ONE else (0, 1, 2))
    sums = [int((np.array(data, dtype=np.int64) >> (TOP - 10)).sum()) for data in found]
    most = max((sums[a] - sums[b]) ** 2 for a, b in neighbours(found, relation))
    assert most / subject.mean_variance == subject._slot * Fraction(2, 100)


# --- the estimator ---


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_much_budget_finds_the_exact_fit(relation: str) -> None:
    model = PoissonRegressor(**(KNOWN | {"epsilon": 500, "relation": relation})).fit(X, Y)
    wanted = plain.PoissonRegressor(alpha=0).fit(X, Y)
    assert np.allclose(model.coef_, wanted.coef_, atol=0.02)
    assert model.intercept_ == pytest.approx(wanted.intercept_, abs=0.02)
    assert model.score(X, Y) == pytest.approx(wanted.score(X, Y), abs=0.01)
    ends = model.intervals_()
    assert (ends[:, 0] < [0.5, 0.5, -0.3]).all()
    assert (ends[:, 1] > [0.5, 0.5, -0.3]).all()
    assert np.ptp(ends, axis=1).max() < 0.15
    assert "x1" in str(model.summary())


def test_nothing_is_read_before_it_is_paid_for_and_no_value_is_an_error() -> None:
    purse, counts, rows = Purse(), Y.astype(float), X.copy()
    counts[:4], rows[:2] = [np.nan, np.inf, -5.0, 1e9], np.nan
    model = PoissonRegressor(**KNOWN, session=purse)
    model.fit(Watched(rows, purse), Watched(counts, purse))
    assert len(purse.charges) == 1
    assert model.privacy_spent_.epsilon == 2
    assert np.allclose(model.coef_, [0.5, -0.3], atol=0.25)
    with pytest.raises(Refused):
        model.score(X, Y)
    assert clone(model).session is purse


def test_a_prediction_depends_on_its_row_alone_whatever_numpy_does_to_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search adds up how near predictions are: those of others must not move by a last bit with one row more."""
    model = PoissonRegressor(**KNOWN).fit(X, Y)
    exact = np.exp
    monkeypatch.setattr(np, "exp", lambda values: exact(values) * (1 + 2.0**-52 * (np.arange(len(values)) % 4 == 3)))
    together = model.predict(X[:9])
    assert together.tolist() == [model.predict(row[None, :])[0] for row in X[:9]]


def test_wide_bounds_cost_little_and_predictions_stay_within_them() -> None:
    model = PoissonRegressor(**KNOWN).fit(X, Y)
    assert model.cap_ < 50
    told = model.predict(np.array([[100.0, -100.0], [-100.0, 100.0]]))
    assert ((told >= 0) & (told <= 200)).all()
    assert model.score(X, Y) > 0.2


def test_people_with_several_rows_and_weights() -> None:
    ids = np.arange(8000) // 2
    by_person = PoissonRegressor(**KNOWN).fit(X, Y, unit=ids, max_rows=2)
    assert np.allclose(by_person.coef_, [0.5, -0.3], atol=0.25)
    assert by_person.privacy_spent_.max_rows == 2
    twice, counts = np.concatenate([X, X]), np.concatenate([Y, 9 - np.minimum(Y, 9)])
    weighted = PoissonRegressor(**KNOWN, weight_bounds=(0, 2)).fit(twice, counts, np.repeat([2.0, 0.0], 8000))
    assert np.allclose(weighted.coef_, [0.5, -0.3], atol=0.25)


@pytest.mark.parametrize(
    ("wrong", "weights"),
    [
        ({"target_bounds": None}, None),
        ({"target_bounds": (-1, 5)}, None),
        ({"bounds": None}, None),
        ({"regularisation": -1}, None),
        ({}, np.ones(8000)),
    ],
)
def test_what_is_not_declared_is_refused(wrong: dict[str, Any], weights: Any) -> None:
    purse = Purse()
    with pytest.raises((InvalidParameter, Refused)):
        PoissonRegressor(**(KNOWN | wrong), session=purse).fit(X, Y, weights)
    assert not purse.charges


def test_intervals_that_nobody_paid_for_are_refused() -> None:
    with pytest.raises(Refused):
        PoissonRegressor(**KNOWN, inference=False).fit(X, Y).intervals_()


@pytest.mark.parametrize("slots", [2, 3])
def test_the_bound_dominates_brute_force_when_a_person_is_added(slots: int) -> None:
    """A person fills slots of weight 1 / slots: the same minimum as with noise and ridge times the slots."""
    subject = PoissonMinimum(1.0, 1.0)
    spread = PoissonMinimum(subject.sigma * slots, subject.ridge * slots)
    people = list(product(POINTS[3:], repeat=slots))
    bases: list[Any] = [(), ((1.0, 0.4),) * slots, ((1.0, 0.0),) * (60 * slots)]
    pairs = [(base, (*base, *person)) for base in bases for person in people[:: 1 if slots == 2 else 5]]
    epsilons = (1.5, 2.5)
    for epsilon, found in zip(epsilons, largest_delta(spread, pairs, epsilons, beyond=6.0), strict=True):
        kappa, each = Fraction(1 / subject.ridge), Fraction(1 / subject.sigma**2)
        given: dict[str, Any] = {"problems": 1, "relation": ADD_REMOVE, "slots": slots, "ends": POISSON_ROW.ends}
        assert found <= float(delta_bound(Fraction(epsilon), kappa=kappa, sums=Fraction(0), each=each, **given)) + 1e-6
    # Rows of a person that keep their weight are seen.
    many, wrong = ((1.0, 0.0),) * 3000, PoissonMinimum(1.0, 4.0, 0)
    (above,) = largest_delta(wrong, [(many, (*many, *((1.0, 1.0),) * slots))], (3.0,), 9.0)
    given = {"kappa": Fraction(1, 4), "sums": Fraction(0), "each": Fraction(1), "problems": 1, "relation": ADD_REMOVE}
    assert above > float(delta_bound(Fraction(3), **given, slots=slots, ends=POISSON_ROW.ends))
