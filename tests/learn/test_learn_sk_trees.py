"""Boosted trees and forests: what one row moves in a whole fit, the ways to get it wrong, and how well they predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from learn.sk_purse import Purse, Watched
from sklearn.metrics import roc_auc_score
from statistical import fits, rejects

import discreet as dp
from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.lab.verify.small_worlds import neighbours, worlds
from discreet.learn.sklearn import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    RandomForestClassifier,
    boosting,
    forest,
)
from discreet.learn.sklearn.boosting import BoostingPlan, LabelTarget, NumberTarget, boosted
from discreet.learn.sklearn.forest import ForestPlan, grown
from discreet.learn.sklearn.kmeans import CellCounts
from discreet.learn.sklearn.leaf_sums import LeafSums, cells_of, grouped, nonnegative, random_leaves, smoothed
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF

ADD_REMOVE, REPLACE_ONE = BOTH = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)


# --- one release: all neighbours ---

RADIUS = 5
ROUND = ((0, 5, 0), (0, 3, 4), (1, -4, 3), (1, -5, 0), (0, 0, 0), (1, 0, 5), (0, -5, 0), (1, 9, 9))


def sums(relation: Relation, **fields: Any) -> LeafSums:
    return LeafSums(**({"outputs": 2, "radius": RADIUS, "relation": relation, "mu_squared": Fraction(1, 7)} | fields))


def farthest(subject: LeafSums, relation: Relation, exact: Any = None) -> Fraction:
    """The largest squared distance, in units of the noise, over all neighbours of at most three rows."""
    found = worlds(ROUND, (2,) if relation is REPLACE_ONE else range(4))

    def told(rows: Any) -> Any:
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return (exact or subject.exact)(table[:, 0], table[:, 1:], 2)

    seen = [told(rows) for rows in found]
    return max(
        Fraction(int(((seen[one] - seen[other]) ** 2).sum())) / subject.variance
        for one, other in neighbours(found, relation)
    )


@pytest.mark.parametrize("relation", BOTH)
def test_one_row_moves_leaves_by_what_is_claimed_and_no_more(relation: Relation) -> None:
    subject = sums(relation)
    assert subject.event.mu_squared == subject.mu_squared == farthest(subject, relation)


class TestMutantsOfOneRelease:
    def test_replacing_billed_as_adding(self) -> None:
        assert farthest(sums(ADD_REMOVE), REPLACE_ONE) > sums(ADD_REMOVE).mu_squared

    def test_residuals_that_nobody_shortens(self) -> None:
        def long(places: Any, residuals: Any, leaves: int) -> Any:
            columns = [np.bincount(places, weights=column, minlength=leaves) for column in residuals.T]
            return np.stack(columns, axis=1).astype(np.int64)

        assert farthest(sums(ADD_REMOVE), ADD_REMOVE, long) > sums(ADD_REMOVE).mu_squared


@pytest.mark.statistical
def test_noise_of_leaves_follows_its_law() -> None:
    subject = sums(ADD_REMOVE, mu_squared=Fraction(30))
    nobody = np.zeros(0, dtype=np.int64)
    drawn = np.concatenate([subject.measure(nobody, nobody.reshape(0, 2), 40).ravel() for _ in range(50)])
    assert fits(drawn, RoundedGaussianLaw(subject.variance))
    assert rejects(drawn, RoundedGaussianLaw(2 * subject.variance))


# --- a whole fit: on neighbours that are told the same, all distances together ---


def plan(relation: Relation, **fields: Any) -> BoostingPlan:
    known: dict[str, Any] = {"features": 2, "outputs": 1, "mu_squared": Fraction(1, 3), "rows": None, "rounds": 2}
    return BoostingPlan(**({"relation": relation, "has_numbers": False} | known | fields))


class Told:
    """What a fit is told, again and again the same: a fit of neighbours then adds up how far its own sums are off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: list[tuple[Any, Any]] = []
        self.next = 0
        self.apart = Fraction(0)
        said = self

        def measured(kind: Any) -> Callable[..., Any]:
            def measure(mechanism: Any, *data: Any) -> Any:
                return said.answer(mechanism.variance, kind(mechanism, *data))

            return measure

        monkeypatch.setattr(LeafSums, "measure", measured(LeafSums.exact))
        monkeypatch.setattr(CellCounts, "measure", measured(CellCounts.exact))
        monkeypatch.setattr(noise, "permutation", lambda count: self.chance.permutation(count))
        monkeypatch.setattr(noise, "uniform", lambda count, size=None: self.chance.integers(count, size=size))

    def answer(self, variance: Fraction, exact: Any) -> Any:
        if self.next == len(self.said):
            self.said.append((exact, exact + np.rint(self.drawn.normal(size=exact.shape) * float(variance) ** 0.5)))
        first, answer = self.said[self.next]
        self.next += 1
        assert first.shape == exact.shape, "what is asked depends on rows"
        self.apart += Fraction(int(((first - exact) ** 2).sum())) / variance
        return answer

    def start(self) -> None:
        self.chance, self.drawn = np.random.default_rng(5), np.random.default_rng(7)
        self.next, self.apart = 0, Fraction(0)

    def fit(self, subject: Any, rows: Any, target: Callable[[Any], Any]) -> None:
        self.start()
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        fitted = grown if isinstance(subject, ForestPlan) else boosted
        fitted(subject, table[:, :2], target(table[:, 2]))


WORLD = ((-HALF, -HALF, 0), (HALF, HALF, 1), (0, HALF, 1), (HALF, -HALF // 2, 0))
TARGETS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "two classes": (lambda codes: LabelTarget(codes, 2), {}),
    "three classes": (lambda codes: LabelTarget(2 * codes, 3), {"outputs": 3}),
    "numbers": (lambda codes: NumberTarget((2 * codes - 1) * HALF), {"has_numbers": True}),
    "pairs": (lambda codes: LabelTarget(codes, 2), {"rows": 10**7}),
    "pairs of numbers": (lambda codes: NumberTarget((2 * codes - 1) * HALF), {"has_numbers": True, "rows": 10**7}),
}


def farthest_fit(
    monkeypatch: pytest.MonkeyPatch, kind: str, relation: Relation, sizes: Any, **fields: Any
) -> tuple[Fraction, BoostingPlan]:
    target, known = TARGETS[kind]
    return farthest_of(monkeypatch, plan(relation, **(known | fields)), relation, sizes, target)


def farthest_of(
    monkeypatch: pytest.MonkeyPatch, subject: Any, relation: Relation, sizes: Any, target: Callable[[Any], Any]
) -> tuple[Fraction, Any]:
    """The largest sum of squared distances, in units of the noise, over all neighbours who are told the same."""
    made, most = worlds(WORLD, sizes), Fraction(0)
    found = list(made)
    for one, other in neighbours(made, relation):
        told = Told(monkeypatch)
        told.fit(subject, found[one], target)
        told.fit(subject, found[other], target)
        monkeypatch.undo()
        most = max(most, told.apart)
    return most, subject


@pytest.mark.long
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("kind", TARGETS)
def test_all_rounds_together_move_no_more_than_is_paid_for(
    kind: str, relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given all that was told before, each release is Gaussian: squares of distances add up, whatever was told."""
    most, subject = farthest_fit(monkeypatch, kind, relation, (2,) if relation is REPLACE_ONE else (0, 1, 2))
    assert most <= subject.event.mu_squared
    # Nothing much is left unspent: a row that residuals are long for costs most of the price.
    assert most > subject.event.mu_squared / (10 if relation is REPLACE_ONE else 3)


@pytest.mark.long
class TestMutantsOfAFit:
    def test_rounds_that_are_billed_once_are_refused_before_they_are_measured(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        honest = boosting._Booster._sums
        with monkeypatch.context() as planted:
            planted.setattr(boosting._Booster, "_sums", lambda self, share: honest(self, share * 4))
            with pytest.raises(InvalidParameter, match="more than was paid for"):
                boosted(plan(ADD_REMOVE), np.zeros((3, 2), dtype=np.int64), LabelTarget(np.array([0, 1, 1]), 2))

    def test_rounds_that_are_not_composed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        honest = boosting._Booster._sums
        monkeypatch.setattr(boosting._Booster, "_sums", lambda self, share: honest(self, share * 4))
        monkeypatch.setattr(boosting._Booster, "_pay", lambda self, event: None)
        most, subject = farthest_fit(pytest.MonkeyPatch(), "two classes", ADD_REMOVE, (0, 1, 2))
        assert most > subject.event.mu_squared

    def test_a_cut_where_exact_rows_lie(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Cutting where the rows are halved: one row moves the cut, and with it what other rows add up to."""
        honest = LeafSums.exact

        def halved(self: LeafSums, places: Any, residuals: Any, leaves: int) -> Any:
            cut = np.sort(places)[len(places) // 2] if len(places) else 0
            return honest(self, (places >= cut).astype(np.int64), residuals, leaves)

        monkeypatch.setattr(LeafSums, "exact", halved)
        most, subject = farthest_fit(pytest.MonkeyPatch(), "two classes", ADD_REMOVE, (3, 4), leaves=2)
        assert most > subject.event.mu_squared

    def test_a_reach_that_is_read_from_the_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One long number more, and the residuals of all others are other shares of the longest."""

        def longest(self: Any, course: Any, total: float) -> None:
            self._target = NumberTarget(self._target.numbers, int(self._target.numbers.max(initial=1)))

        uneven = (lambda codes: NumberTarget(np.where(codes == 1, HALF, HALF // 8)), {"has_numbers": True})
        monkeypatch.setattr(boosting._Booster, "_settle_reach", longest)
        monkeypatch.setitem(TARGETS, "uneven numbers", uneven)
        most, subject = farthest_fit(pytest.MonkeyPatch(), "uneven numbers", ADD_REMOVE, (3, 4))
        assert most > subject.event.mu_squared


# --- forests: the same ---


def trees(relation: Relation, **fields: Any) -> ForestPlan:
    known: dict[str, Any] = {"features": 2, "classes": 2, "trees": 3, "mu_squared": Fraction(1, 3), "rows": None}
    return ForestPlan(**({"relation": relation} | known | fields))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("rows", [None, 100])
def test_all_trees_together_move_what_is_paid_for(
    relation: Relation, rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if relation is REPLACE_ONE and rows is None:
        rows = 2  # It is public.
    sizes = (2,) if relation is REPLACE_ONE else (0, 1, 2)
    most, subject = farthest_of(monkeypatch, trees(relation, rows=rows), relation, sizes, lambda codes: codes)
    assert subject.event.mu_squared == subject.mu_squared
    assert most == subject.mu_squared


class TestMutantsOfAForest:
    def test_trees_that_are_not_composed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each tree with all rows and all of mu: what is right where each row is in one tree alone."""
        honest = ForestPlan.leaves

        def whole(self: ForestPlan, depth: int) -> CellCounts:
            return replace(honest(self, depth), mu_squared=honest(self, depth).mu_squared * self.trees)

        monkeypatch.setattr(ForestPlan, "leaves", whole)
        most, subject = farthest_of(pytest.MonkeyPatch(), trees(ADD_REMOVE), ADD_REMOVE, (0, 1), lambda codes: codes)
        assert most > 2 * subject.mu_squared

    def test_a_cut_where_exact_rows_lie(self, monkeypatch: pytest.MonkeyPatch) -> None:
        honest = forest.RandomTree.places

        def halved(self: Any, cells: Any) -> Any:
            cuts = [int(np.sort(cells[:, place])[len(cells) // 2]) if len(cells) else 0 for place in self.features]
            return honest(self._replace(cuts=np.array(cuts)), cells)

        monkeypatch.setattr(forest.RandomTree, "places", halved)
        found = farthest_of(pytest.MonkeyPatch(), trees(ADD_REMOVE), ADD_REMOVE, (3, 4), lambda codes: codes)
        assert found[0] > found[1].event.mu_squared


def test_shares_of_leaves_that_noise_hides_are_those_of_all_rows() -> None:
    counts = np.array([[30.0, 10], [10, 30], [30, 10], [10, 30]])
    assert forest._chances(counts * 1000, 1e-6)[0] == pytest.approx([0.75, 0.25], abs=0.01)
    assert forest._chances(counts, 1e9) == pytest.approx(np.full((4, 2), 0.5), abs=0.01)


# --- residuals are whole numbers of one row ---


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers"])
def test_a_residual_depends_on_its_row_alone(kind: str) -> None:
    made = np.random.default_rng(2)
    target, known = TARGETS[kind]
    codes = made.integers(0, 2, size=1000)
    scores = made.integers(-9 * HALF, 9 * HALF, size=(1000, known.get("outputs", 1)))
    together = target(codes).residuals(scores)
    alone = [target(codes[row : row + 1]).residuals(scores[row : row + 1])[0] for row in range(1000)]
    assert (together == np.array(alone)).all()
    assert together.dtype == np.int64


def test_the_score_of_short_residuals_settles_where_chances_undo_it() -> None:
    """Where four rows in five are of the first class, residuals add up to zero at the score of that chance."""
    codes = np.array([0, 0, 0, 0, 1])
    target = LabelTarget(codes, 2)
    score = round(np.log(0.125 / 0.875) * boosting.SCORE)  # p / (2 - 2p) = 1/8 for p = 1/5
    left = np.clip(target.residuals(np.full((5, 1), score)), -target.radius, target.radius)
    assert abs(int(left.sum())) < 0.01 * target.radius
    assert target.chances(np.array([[score / boosting.SCORE]]))[0] == pytest.approx([0.8, 0.2], abs=1e-3)


# --- columns ---


def test_cells_are_within_the_bounds() -> None:
    assert cells_of(np.array([-HALF, 0, HALF])).tolist() == [0, 63, 127]


def test_counts_that_noise_hides_are_taken_to_lie_evenly() -> None:
    counts = np.zeros(128)
    counts[:32] = 100.0
    assert smoothed(counts, 1e-6, 3200.0) == pytest.approx(counts, abs=1e-3)
    assert smoothed(counts, 1e12, 3200.0) == pytest.approx(np.full(128, 25.0))


def test_groups_are_in_order_and_about_even() -> None:
    found = grouped(np.array([1.0, 1, 1, 1, 50, 1, 1, 1, 1]), 4)
    assert (np.diff(found) >= 0).all()
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    assert grouped(np.ones(128), 32).tolist() == np.repeat(np.arange(32), 4).tolist()


def test_counts_of_pairs_are_not_negative_and_add_up() -> None:
    found = nonnegative(np.array([5.0, -3, 2, 0]), 6.0)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(6)


def test_leaves_are_intervals_and_as_many_as_wanted() -> None:
    for _ in range(20):
        leaf = random_leaves(32, 8)
        assert leaf[0] == 0
        assert leaf[-1] == 7
        assert set(np.diff(leaf).tolist()) <= {0, 1}
    assert random_leaves(1, 8).tolist() == [0]
    assert random_leaves(3, 8).tolist() == [0, 1, 2]


# --- estimators ---

MADE = np.random.default_rng(11)
ROWS = MADE.uniform(-1, 1, size=(6000, 3))
CHANCE = 1 / (1 + np.exp(-(4 * np.abs(ROWS[:, 0]) - 2 + 2 * ROWS[:, 1])))
LABELS = (MADE.random(6000) < CHANCE).astype(np.int64)
NUMBERS = 3 * ROWS[:, 0] ** 2 + ROWS[:, 1] + MADE.normal(0, 0.3, 6000)


def classifier(**fields: Any) -> BoostedTreesClassifier:
    return BoostedTreesClassifier(
        **({"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], "public_rows": 6000} | fields)
    )


def regressor(**fields: Any) -> BoostedTreesRegressor:
    return BoostedTreesRegressor(
        **({"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "target_bounds": (-10, 10), "public_rows": 6000} | fields)
    )


def woods(**fields: Any) -> RandomForestClassifier:
    return RandomForestClassifier(
        **({"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], "public_rows": 6000} | fields)
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_forest_finds_curves_too(relation: str) -> None:
    fit = woods(relation=relation).fit(ROWS, LABELS)
    assert roc_auc_score(LABELS, fit.predict_proba(ROWS)[:, 1]) > roc_auc_score(LABELS, CHANCE) - 0.08
    assert fit.predict_proba(ROWS).sum(axis=1) == pytest.approx(1)
    assert 0.99 < fit.privacy_spent_.epsilon <= 1
    alone = [fit.predict_proba(ROWS[row : row + 1])[0] for row in range(50)]
    assert (fit.predict_proba(ROWS[:50]) == np.array(alone)).all()


@pytest.mark.parametrize("wrong", [{"n_estimators": 0}, {"max_depth": 0}, {"max_depth": 17}, {"epsilon": 0}])
def test_forests_of_nonsense_are_refused_before_they_are_paid(wrong: dict[str, Any]) -> None:
    purse = Purse()
    with pytest.raises(InvalidParameter):
        woods(session=purse, **wrong).fit(Watched(ROWS[:50], purse), Watched(LABELS[:50], purse))
    assert not purse.charges


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_curves_are_found_where_lines_see_nothing(relation: str) -> None:
    fit = classifier(relation=relation).fit(ROWS, LABELS)
    assert roc_auc_score(LABELS, fit.predict_proba(ROWS)[:, 1]) > roc_auc_score(LABELS, CHANCE) - 0.04
    assert fit.predict_proba(ROWS)[:, 1].mean() == pytest.approx(LABELS.mean(), abs=0.05)
    assert 0.99 < fit.privacy_spent_.epsilon <= 1
    assert regressor(relation=relation).fit(ROWS, NUMBERS).score(ROWS, NUMBERS) > 0.7


def test_pairs_are_found_where_single_features_tell_nothing() -> None:
    crossed = (ROWS[:, 0] * ROWS[:, 2] > 0).astype(np.int64)
    fit = classifier(epsilon=8).fit(ROWS, crossed)
    assert fit.score(ROWS, crossed) > 0.85
    assert ("x0", "x2") in [term.features for term in fit.terms()]
    assert classifier(epsilon=8, pairs=0).fit(ROWS, crossed).score(ROWS, crossed) < 0.65


def test_three_classes_are_told_apart() -> None:
    labels = np.digitize(ROWS[:, 0], [-0.3, 0.3]) * 2 % 3
    fit = classifier(classes=[0, 1, 2], epsilon=3).fit(ROWS, labels)
    assert fit.score(ROWS, labels) > 0.85
    assert fit.predict_proba(ROWS[:9]).sum(axis=1) == pytest.approx(1)


def test_terms_and_the_intercept_add_up_to_the_prediction() -> None:
    for fit, told in (
        (classifier(epsilon=8).fit(ROWS, LABELS), "decision_function"),
        (regressor(epsilon=8).fit(ROWS, NUMBERS), "predict"),
    ):
        total = np.full(50, fit.intercept_[0])
        for term in fit.terms():
            columns = [int(name[1:]) for name in term.features]
            places = [
                np.clip(np.searchsorted(edges, ROWS[:50, column], side="right") - 1, 0, len(edges) - 2)
                for edges, column in zip(term.edges, columns, strict=True)
            ]
            total += term.values[tuple(places)]
            assert term.rows.sum() == pytest.approx(6000, rel=1e-6)
        assert getattr(fit, told)(ROWS[:50]) == pytest.approx(total, abs=1e-5)
        assert fit.feature_importances_.argmin() == 2
        assert "│" in str(fit.terms()[0])


def test_rows_are_predicted_alone_as_together() -> None:
    fit = classifier(epsilon=8).fit(ROWS, LABELS)
    alone = np.array([fit.predict(ROWS[row : row + 1])[0] for row in range(100)])
    assert (fit.predict(ROWS[:100]) == alone).all()


def test_the_session_pays_once_and_before_anything_is_read() -> None:
    for make, target in ((classifier, LABELS), (regressor, NUMBERS), (woods, LABELS)):
        purse = Purse()
        fit = make(session=purse).fit(Watched(ROWS[:50], purse), Watched(target[:50], purse))
        assert [event for event, _, _ in purse.charges] == [fit.privacy_spent_.event]
        empty = Purse(is_empty=True)
        with pytest.raises(dp.BudgetExceeded):
            make(session=empty).fit(Watched(ROWS[:50], empty), Watched(target[:50], empty))
        with pytest.raises(Refused, match="PrivateSearch"):
            fit.score(ROWS, target)


def test_no_rows_are_fitted_as_others_are() -> None:
    """With a session nothing about the rows may end in an error, not even that there are none."""
    purse = Purse()
    for make in (classifier, woods):
        fit = make(session=purse, public_rows=None).fit(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
        assert fit.predict_proba(ROWS[:3]).shape == (3, 2)
    assert regressor(session=purse, public_rows=None).fit(np.zeros((0, 3)), np.zeros(0)).predict(ROWS[:3]).shape == (3,)


def test_strange_labels_and_values_count_for_nothing_or_the_middle() -> None:
    labels, rows = LABELS.astype(object), ROWS.copy()
    labels[:3], rows[5, 0], rows[6, 1] = ["x", None, 17], np.nan, np.inf
    fit = classifier(session=Purse(), epsilon=8).fit(rows, labels)
    assert fit.classes_.tolist() == [0, 1]
    assert regressor(session=Purse(), rounds=2).fit(rows, np.where(np.arange(6000) % 7, NUMBERS, np.nan)).intercept_


@pytest.mark.parametrize(
    "wrong",
    [
        {"pairs": -1},
        {"pairs": 1.5},
        {"rounds": 0},
        {"leaves": 0},
        {"delta": None},
        {"epsilon": 0},
        {"epsilon": Fraction(1, 10**12), "delta": Fraction(1, 10**30)},
    ],
)
def test_nonsense_is_refused_before_it_is_paid(wrong: dict[str, Any]) -> None:
    for make, target in ((classifier, LABELS), (regressor, NUMBERS)):
        purse = Purse()
        with pytest.raises(InvalidParameter):
            make(session=purse, **wrong).fit(Watched(ROWS[:50], purse), Watched(target[:50], purse))
        assert not purse.charges


def test_one_class_and_missing_bounds_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="two classes"):
        classifier(classes=[1], session=Purse()).fit(ROWS, LABELS)
    with pytest.raises(Refused, match="target_bounds"):
        regressor(target_bounds=None).fit(ROWS, NUMBERS)


# --- weights ---


def weighed(relation: Relation, weights: Any) -> tuple[Fraction, BoostingPlan]:
    """The farthest fits of neighbours whose rows have weights, by what they are beside."""
    subject, found = plan(relation), worlds(WORLD, (2,) if relation is REPLACE_ONE else (0, 1, 2))
    sets, most = list(found), Fraction(0)
    for one, other in neighbours(found, relation):
        with pytest.MonkeyPatch.context() as patched:
            told = Told(patched)
            for rows in (sets[one], sets[other]):
                told.start()
                table = np.array(rows, dtype=np.int64).reshape(-1, 3)
                boosted(subject, table[:, :2], LabelTarget(table[:, 2], 2), weights(table[:, 0]))
            most = max(most, told.apart)
    return most, subject


def some(column: Any) -> Any:
    return np.where(column > 0, 3 * boosting.HEAVIEST, boosting.HEAVIEST // 3)


@pytest.mark.parametrize("relation", BOTH)
def test_rows_with_weights_move_no_more_than_is_paid_for(relation: Relation) -> None:
    """Also those that are heavier than was declared: they count as much as the heaviest."""
    most, subject = weighed(relation, some)
    assert subject.event.mu_squared / 9 < most <= subject.event.mu_squared


def test_mutant_weights_that_nobody_clamps(monkeypatch: pytest.MonkeyPatch) -> None:
    def long(self: LeafSums, places: Any, residuals: Any, leaves: int) -> Any:
        columns = [np.bincount(places, weights=column, minlength=leaves) for column in residuals.T]
        return np.rint(np.stack(columns, axis=1)).astype(np.int64)

    monkeypatch.setattr(LeafSums, "exact", long)
    monkeypatch.setattr(boosting.np, "clip", lambda values, low, high: values, raising=True)
    most, subject = weighed(ADD_REMOVE, some)
    assert most > subject.event.mu_squared


def test_rows_of_no_weight_are_as_if_they_were_not_there() -> None:
    wrong = np.concatenate([LABELS, 1 - LABELS])
    twice, weights = np.concatenate([ROWS, ROWS]), np.repeat([5.0, 0.0], 6000)
    fit = classifier(weight_bounds=(0, 5)).fit(twice, wrong, weights)
    assert roc_auc_score(LABELS, fit.predict_proba(ROWS)[:, 1]) > roc_auc_score(LABELS, CHANCE) - 0.05
    numbers = np.concatenate([NUMBERS, -NUMBERS])
    assert regressor(weight_bounds=(0, 5)).fit(twice, numbers, weights).score(ROWS, NUMBERS) > 0.6


def test_classes_weigh_what_is_declared() -> None:
    plain, heavy = (classifier(class_weight=weights).fit(ROWS, LABELS) for weights in (None, {1: 5}))
    assert heavy.predict(ROWS).mean() > plain.predict(ROWS).mean() + 0.1
    assert heavy.privacy_spent_.epsilon <= 1


@pytest.mark.parametrize(
    ("wrong", "weights"),
    [
        ({}, np.ones(6000)),
        ({"weight_bounds": (1, 5)}, np.ones(6000)),
        ({"weight_bounds": (0, 5)}, np.ones(5999)),
        ({"weight_bounds": (0, 5)}, np.ones((6000, 1))),
        ({"class_weight": "balanced"}, None),
        ({"class_weight": {7: 1}}, None),
        ({"class_weight": {0: 0}}, None),
    ],
)
def test_weights_that_are_not_declared_are_refused(wrong: dict[str, Any], weights: Any) -> None:
    purse = Purse()
    with pytest.raises((InvalidParameter, Refused)):
        classifier(session=purse, **wrong).fit(ROWS, LABELS, weights)
    assert not purse.charges
