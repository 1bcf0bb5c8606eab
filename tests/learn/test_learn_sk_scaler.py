"""Scalers: what they measure, what they charge, and how their bounds travel through a pipeline."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from learn.sk_purse import Purse, Watched
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.lab import verify
from discreet.learn.sklearn.bounds import FeatureFrame, declared_bounds, read_bounds
from discreet.learn.sklearn.naive_bayes import GaussianNB
from discreet.learn.sklearn.scalers import MinMaxScaler, StandardScaler
from discreet.learn.sklearn.transformers import PrivateRanges
from discreet.mechanisms.quantile import Quantile
from discreet.privacy import Relation, epsilon
from discreet.privacy.events import GDP, BoundedRange, Composed, Repeated

MADE = np.random.default_rng(7)
ROWS = MADE.normal([100.0, -3.0], [10.0, 0.5], size=(20_000, 2))
BOUNDS = [(0, 200), (-10, 10)]


def standard(**fields: Any) -> StandardScaler:
    return StandardScaler(**({"epsilon": 1, "delta": 1e-6, "bounds": BOUNDS} | fields))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_means_and_deviations_are_near(relation: str) -> None:
    fit = standard(relation=relation).fit(ROWS)
    assert fit.mean_ == pytest.approx([100, -3], abs=1)
    assert fit.scale_ == pytest.approx([10, 0.5], rel=0.5)


def test_far_too_wide_bounds_are_narrowed_first() -> None:
    wide = standard(bounds=(-1e6, 1e6)).fit(ROWS)
    found = standard(bounds=(-1e6, 1e6), coverage=0.95, public_rows=20_000).fit(ROWS)
    assert wide.scale_[1] > 100  # What noise hides is not taken for a small spread.
    assert found.scale_ == pytest.approx([9, 0.45], rel=0.3)


def test_results_keep_the_limit_and_say_so() -> None:
    fit = standard(limit=3).fit(ROWS)
    scaled = fit.transform(np.array([[1e9, -1e9], [100.0, -3.0]]))
    assert declared_bounds(scaled) == (-3, 3)
    assert scaled[0].tolist() == [3, -3]
    assert np.abs(scaled[1]).max() < 0.5
    assert fit.inverse_transform(fit.transform(ROWS[:5])) == pytest.approx(ROWS[:5], rel=1e-6)


EXTREME = np.array([[1e9, -1e9], [-1e9, 1e9], [100.1, -3.1]])


@pytest.mark.parametrize("limit", [3, 0.1, 7, "2.7"])
def test_the_limit_holds_to_the_last_bit_whatever_the_noise_was(limit: Any) -> None:
    highest = float(Fraction(limit))
    for _ in range(60):
        fit = standard(limit=limit).fit(ROWS[:50])
        scaled = fit.transform(EXTREME)
        assert declared_bounds(scaled) == (-highest, highest)
        assert np.abs(scaled).max() <= highest


def test_ranges_hold_to_the_last_bit_whatever_the_noise_was() -> None:
    for place in range(60):
        low, high = -0.1 * place - 0.3, 0.7 / (place + 1)
        scaled = MinMaxScaler(epsilon=1, bounds=BOUNDS, feature_range=(low, high)).fit(ROWS[:200]).transform(EXTREME)
        assert declared_bounds(scaled) == (low, high)
        assert low <= scaled.min() < scaled.max() <= high


def test_a_frame_never_leads_out_of_one() -> None:
    for place in range(1, 400):
        frame = FeatureFrame(((Fraction(-place, 7), Fraction(place * place, 9)), (Fraction(1, place), Fraction(2))))
        moved = frame.scaled(np.array([[-1e300, 1e300], [1e300, -1e300], *frame.limits.T.tolist()]))
        assert np.abs(moved).max() <= 1


def test_what_is_computed_from_bounded_rows_is_a_plain_array() -> None:
    rows = standard(limit=3).fit(ROWS).transform(ROWS[:6])
    for kept in (rows[2:], rows[[1, 0]], rows[:, :1], rows.copy(), np.take(rows, [1], axis=0), rows[rows[:, 0] > -9]):
        assert declared_bounds(kept) == (-3, 3)
    for made in (
        rows * 9,
        rows @ np.eye(2),
        rows.dot(9 * np.eye(2)),
        np.dot(rows, 9 * np.eye(2)),
        np.hstack([rows, rows]),
    ):
        assert declared_bounds(made) is None


def test_columns_that_are_not_divided_still_have_bounds() -> None:
    fit = standard(with_std=False, with_mean=False).fit(ROWS)
    rows = fit.transform(ROWS[:100])
    assert np.asarray(rows) == pytest.approx(ROWS[:100], rel=1e-9)
    low, high = declared_bounds(rows)
    assert low == -high
    assert high > 100


def test_the_next_step_needs_no_bounds_and_pays_its_own_share() -> None:
    purse = Purse()
    labels = (ROWS[:, 0] > 100).astype(int)
    steps = make_pipeline(standard(session=purse), GaussianNB(epsilon=1, delta=1e-6, classes=[0, 1], session=purse))
    fit = clone(steps).fit(ROWS, labels)
    assert [purpose for _, _, purpose in purse.charges] == ["fit of StandardScaler", "fit of GaussianNB"]
    assert (fit.predict(ROWS[:1000]) == labels[:1000]).mean() > 0.9
    with pytest.raises(Refused, match="bounds"):
        GaussianNB(epsilon=1, delta=1e-6, classes=[0, 1]).fit(ROWS, labels)


@pytest.mark.parametrize("scaler", [standard(), standard(coverage=0.9), MinMaxScaler(epsilon=1, bounds=BOUNDS)])
def test_nothing_is_read_before_it_is_paid_for(scaler: Any) -> None:
    purse = Purse()
    clone(scaler).set_params(session=purse).fit(Watched(ROWS[:500], purse))
    assert len(purse.charges) == 1
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        clone(scaler).set_params(session=empty).fit(Watched(ROWS[:500], empty))


def test_with_a_session_no_value_is_an_error_in_fit_or_transform() -> None:
    odd = ROWS[:1000].copy()
    odd[3], odd[4, 0] = np.nan, np.inf
    scaled = standard(session=Purse()).fit_transform(odd)
    assert np.isfinite(scaled).all()
    with pytest.raises(ValueError, match="NaN"):
        standard().fit(odd)
    fit = standard(session=Purse()).fit(ROWS)
    with pytest.raises(ValueError, match="features"):
        fit.transform(ROWS[:, :1])


def test_costs_stay_within_what_is_asked() -> None:
    for scaler in (
        standard(epsilon="0.5"),
        standard(epsilon="0.5", coverage=0.9),
        MinMaxScaler(epsilon="0.5", bounds=BOUNDS),
        MinMaxScaler(epsilon="0.5", delta=1e-6, bounds=BOUNDS),
    ):
        spent = scaler.fit(ROWS).privacy_spent_
        assert 0.49 < spent.epsilon <= 0.5
        assert str(spent).startswith("ε = 0.5")


def test_the_event_of_found_bounds_names_both_steps() -> None:
    event = standard(coverage=0.9).fit(ROWS).privacy_spent_.event
    assert isinstance(event, Composed)
    ranges, moments = event.events
    assert isinstance(ranges, Repeated)
    assert isinstance(ranges.event, BoundedRange)
    assert ranges.times == 4
    assert isinstance(moments, GDP)
    # One quantile a column is the mistake of forgetting the other end.
    forgotten = Composed([Repeated(ranges.event, 2), moments])
    assert epsilon(forgotten, 1e-6, relation=Relation.ADD_REMOVE) < 0.97


def test_bounds_of_min_and_max_hold_most_rows() -> None:
    fit = MinMaxScaler(epsilon=1, bounds=(-1000, 1000), coverage=0.9, feature_range=(-1, 1)).fit(ROWS)
    inside = ((fit.data_min_ <= ROWS) & (fit.data_max_ >= ROWS)).mean(axis=0)
    assert inside == pytest.approx([0.9, 0.9], abs=0.05)
    rows = fit.transform(ROWS)
    assert declared_bounds(rows) == (-1, 1)
    assert fit.inverse_transform(rows).min(axis=0) == pytest.approx(fit.data_min_, abs=1e-9)
    with pytest.raises(InvalidParameter, match="coverage of"):
        MinMaxScaler(epsilon=1, bounds=(-1000, 1000), coverage=0.99, public_rows=1000).fit(ROWS)


def test_a_pair_of_quantiles_keeps_its_claim_on_all_small_data_sets() -> None:
    """The two choices behind one pair, on all data sets of up to three values out of five."""
    ranges = PrivateRanges(
        widest=read_bounds((0, 4), 1), coverage=Fraction(1, 2), epsilon=Fraction(1), relation=Relation.ADD_REMOVE
    )
    grid = dp.mechanisms.Grid.between(0, 4, step=1)
    world = verify.worlds(range(5), range(4))
    for at in (Fraction(1, 4), Fraction(3, 4)):
        one = Quantile(quantile=at, epsilon=ranges.epsilon, grid=grid, relation=ranges.relation)
        assert verify.check(one, world).holds


def test_one_value_alone_leaves_the_widest_bounds() -> None:
    fit = MinMaxScaler(epsilon=1000, bounds=(0, 10)).fit(np.full((500, 1), 5.0))
    assert (fit.data_min_[0], fit.data_max_[0]) == (0, 10)


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"coverage": 1}, {"coverage": 0}, {"delta": None}, {"with_mean": "no"}, {"epsilon": -1}]
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        standard(**wrong).fit(ROWS)
    with pytest.raises(InvalidParameter):
        MinMaxScaler(epsilon=1, bounds=BOUNDS, feature_range=(1, 0)).fit(ROWS)
