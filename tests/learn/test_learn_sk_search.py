"""Private search: one price, known before; no exact score of private rows leaves it, nor scikit-learn's own search."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from learn.sk_purse import Purse, Watched
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import discreet as dp
from discreet.adaptive.bounded_memberships import unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.learn.random_stopping import RandomStopping
from discreet.learn.sklearn.base import PrivatePredictor
from discreet.learn.sklearn.naive_bayes import GaussianNB
from discreet.learn.sklearn.neural import DPClassifier
from discreet.learn.sklearn.pca import PCA
from discreet.learn.sklearn.scalers import MinMaxScaler, StandardScaler
from discreet.learn.sklearn.search import Prepaid, PrivateSearch, prepared, quote
from discreet.learn.sklearn.validation import BEST, added_up, combined, keeps_rows_alone, nearness, rightness
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import nearest_floats
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.privacy import Relation, epsilon
from discreet.privacy.events import ApproxDP, Composed, Gaussian, Parallel, PureDP, RandomlyStopped

MADE = np.random.default_rng(2)
LABELS = MADE.integers(0, 2, size=4000)
ROWS = MADE.normal(size=(4000, 3)) + LABELS[:, None] * [2.0, 0.0, 0.0]


def _bytes(module: torch.nn.Module) -> bytes:
    return b"".join(weight.detach().numpy().tobytes() for weight in module.parameters())


def bayes(**fields: Any) -> GaussianNB:
    return GaussianNB(**({"epsilon": 1, "delta": 1e-6, "bounds": (-5, 7), "classes": [0, 1]} | fields))


def search(estimator: Any = None, candidates: Any = None, **fields: Any) -> PrivateSearch:
    given = {"var_smoothing": [1e-4, 100]} if candidates is None else candidates
    known = {"epsilon": 1, "delta": 1e-6, "holdout": 0.2}
    return PrivateSearch(bayes() if estimator is None else estimator, given, **(known | fields))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_better_candidate_is_chosen_within_the_budget(relation: str) -> None:
    """The right label of a rare class is only found with a small floor; the difference is dozens of rows."""
    skewed = np.where(MADE.random(4000) < 0.8, 0, LABELS)
    rows = MADE.normal(size=(4000, 3)) + skewed[:, None] * [3.0, 0.0, 0.0]
    fit = search(relation=relation, epsilon=16).fit(rows, skewed)  # So much that chance never decides.
    assert fit.best_params_ == {"var_smoothing": 1e-4}
    assert fit.best_index_ == 0
    assert 15 < fit.privacy_spent_.epsilon <= 16
    assert (fit.predict(rows) == skewed).mean() > 0.9
    assert fit.predict_proba(rows).shape == (4000, 2)
    assert fit.classes_.tolist() == [0, 1]


def test_the_price_is_charged_once_and_covers_every_fit_and_the_choice() -> None:
    purse = Purse()
    fit = search(session=purse).fit(Watched(ROWS, purse), Watched(LABELS, purse))
    ((event, relation, purpose),) = purse.charges
    assert (relation, purpose) == (Relation.ADD_REMOVE, "fit of PrivateSearch")
    assert isinstance(event, Parallel)
    fits, choice = event.events
    assert isinstance(fits, Composed)
    assert len(fits.events) == 2
    assert choice == PureDP(1)
    assert epsilon(event, 1e-6, relation=relation) <= 1
    # The mistake of charging the best fit alone.
    assert epsilon(fits.events[0], 1e-6, relation=relation) < 0.75
    assert fit.best_estimator_.session is purse
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        search(session=empty).fit(Watched(ROWS, empty), Watched(LABELS, empty))


def test_labels_outside_of_declared_classes_are_an_error_where_nobody_pays() -> None:
    with pytest.raises(InvalidParameter, match="labels that are not among classes"):
        search(bayes(classes=[1, 2])).fit(ROWS, LABELS)
    assert search(bayes(classes=["no", "yes"]), session=Purse()).fit(ROWS, LABELS.astype(object)).best_index_ in (0, 1)


def test_the_choice_is_charged_under_replace_one() -> None:
    """There a row may be in the fits of one data set and in the choice of its neighbour: everybody pays for both."""
    purse = Purse()
    search(session=purse, relation="replace-one").fit(ROWS, LABELS)
    ((event, relation, _),) = purse.charges
    assert relation is Relation.REPLACE_ONE
    assert isinstance(event, Composed)
    fits, choice = event.events[:-1], event.events[-1]
    assert len(fits) == 2
    assert choice == PureDP(Fraction(1, 10))
    assert 0.99 < epsilon(event, 1e-6, relation=relation) <= 1
    # The mistake of charging the fits alone tells less than is spent.
    assert epsilon(Composed(fits), 1e-6, relation=relation) < 0.97


def test_a_pipeline_is_searched_and_its_epsilons_only_compare() -> None:
    steps = make_pipeline(
        StandardScaler(epsilon=1, bounds=(-5, 7)), PCA(epsilon=1, coverage=None), GaussianNB(epsilon=2, classes=[0, 1])
    )
    fit = search(steps, {"pca__n_components": [1, 3]}).fit(ROWS, LABELS)
    assert fit.best_params_["pca__n_components"] in (1, 3)
    scaler, _, last = (step for _, step in fit.best_estimator_.steps)
    assert last.epsilon == 2 * scaler.epsilon
    assert fit.privacy_spent_.epsilon <= 1


def test_pure_privacy_is_split_exactly() -> None:
    purse = Purse()
    steps = make_pipeline(MinMaxScaler(epsilon=1, bounds=(-5, 7)), _Threshold(epsilon=1, bounds=(0, 1)))
    fit = search(steps, {"_threshold__column": [0, 1]}, delta=None, session=purse).fit(ROWS, LABELS)
    assert fit.privacy_spent_.delta == 0
    assert fit.privacy_spent_.epsilon == pytest.approx(1, rel=1e-3)


class _Threshold(PrivatePredictor, ClassifierMixin, BaseEstimator):
    """Predict by a public threshold; it pays, and could as well have read."""

    keeps_rows_alone = True

    def __init__(
        self, *, epsilon, delta=None, bounds=None, relation="add-remove", public_rows=None, session=None, column=0
    ):
        self.epsilon, self.delta, self.bounds, self.relation = epsilon, delta, bounds, relation
        self.public_rows, self.session, self.column = public_rows, session, column

    def fit(self, X: Any, y: Any) -> _Threshold:
        table = self._table(X, y)
        self._paid(PureDP(self._epsilon()))
        self.frame_, self.classes_ = table.frame, np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        return (self._seen(X)[:, self.column] > 0).astype(int)


class _Dearer(_Threshold):
    """An estimator whose price depends on what it sees, which no search accepts."""

    def fit(self, X: Any, y: Any) -> _Dearer:
        table = self._table(X, y)
        self._paid(PureDP(self._epsilon() * (2 if len(X) > 1 else 1)))
        self.frame_, self.classes_ = table.frame, np.array([0, 1])
        return self


def test_a_fit_that_spends_something_else_than_quoted_is_refused() -> None:
    with pytest.raises(Refused, match="something else"):
        search(_Dearer(epsilon=1, bounds=(-5, 7)), {"column": [0, 1]}).fit(ROWS, LABELS)
    with pytest.raises(Refused, match="no session"):
        search(DummyClassifier(), {"strategy": ["prior"]}).fit(ROWS, LABELS)


def test_quotes_see_no_data_and_prepaid_takes_what_was_quoted() -> None:
    (event,) = quote(bayes(), rows=1, columns=3)
    assert event == bayes().fit(ROWS, LABELS).privacy_spent_.event
    payer = Prepaid([event])
    payer.charge(event, relation=Relation.ADD_REMOVE, purpose="")
    with pytest.raises(Refused):
        payer.charge(event, relation=Relation.ADD_REMOVE, purpose="")
    twin = prepared(bayes(), factor=Fraction(1, 2), delta=Fraction(1, 10**9), public_rows=7)
    assert (twin.epsilon, twin.delta, twin.public_rows) == (Fraction(1, 2), Fraction(1, 10**9), 7)


class TestRandomStopping:
    """With `runs`, a secret number of candidates is drawn, fitted and scored with noise; the best is kept."""

    GRID: ClassVar = {"var_smoothing": np.logspace(-6, 2, 12).tolist()}

    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_it_is_charged_once_before_a_row_is_read_and_each_fit_gets_a_third(self, relation: str) -> None:
        purse = Purse()
        fit = search(candidates=self.GRID, runs=3, relation=relation, session=purse)
        fit.fit(Watched(ROWS[:500], purse), Watched(LABELS[:500], purse))
        ((event, charged, purpose),) = purse.charges
        assert (charged.value, purpose) == (relation, "fit of PrivateSearch")
        assert 0.99 < epsilon(event, 1e-6, relation=charged) <= 1
        assert 0.4 < fit.best_estimator_.epsilon < 0.7
        # The mistake of charging the run that is kept.
        alone = fit.best_estimator_.privacy_spent_.event
        assert epsilon(alone, 1e-6, relation=charged) < 0.7
        empty = Purse(is_empty=True)
        with pytest.raises(dp.BudgetExceeded):
            search(candidates=self.GRID, runs=3, session=empty).fit(Watched(ROWS, empty), Watched(LABELS, empty))

    def test_a_row_is_fitted_or_scored_in_all_runs_under_add_remove_and_both_under_replace_one(self) -> None:
        purse = Purse()
        search(runs=5, session=purse).fit(ROWS, LABELS)
        search(runs=5, session=purse, relation="replace-one").fit(ROWS, LABELS)
        cells, both = (event for event, _, _ in purse.charges)
        assert isinstance(cells, Parallel)
        fits, points = cells.events
        assert isinstance(fits, RandomlyStopped)
        assert isinstance(points, RandomlyStopped)
        assert (fits.shape, fits.stopping) == (points.shape, points.stopping) == (1, Fraction(1, 5))
        assert points.events[0].squared_sensitivity == BEST**2
        assert isinstance(both, RandomlyStopped)
        assert all(isinstance(run, Composed) and isinstance(run.events[-1], Gaussian) for run in both.events)

    def test_fits_have_more_of_the_budget_than_if_all_were_made(self) -> None:
        fewer, all_of_them = (search(candidates=self.GRID, runs=runs).fit(ROWS, LABELS) for runs in (12, None))
        assert fewer.best_estimator_.epsilon > 1.3 * all_of_them.best_estimator_.epsilon

    def test_nothing_is_kept_that_tells_how_many_runs_there_were(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two searches that differ in the number of runs alone keep the same facts, but for the fit itself."""
        found = []
        for runs in (1, 30):
            monkeypatch.setattr(RandomStopping, "draw", lambda _, runs=runs: runs)
            fit = search(bayes(), [{"var_smoothing": 1.0}], runs=10).fit(ROWS, LABELS)
            inner = {name: value for name, value in vars(fit.best_estimator_).items() if not name.endswith("_")}
            found.append((sorted(vars(fit)), sorted(vars(fit.best_estimator_)), repr(inner), str(fit.privacy_spent_)))
        assert found[0] == found[1]

    def test_no_generator_tells_how_many_runs_there_were_nor_which_one_is_kept(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each run begins with other weights than any that follow from the program's seed, which stays where it was."""
        begun: list[bytes] = []
        monkeypatch.setattr(RandomStopping, "draw", lambda _: 3)
        monkeypatch.setattr("discreet.learn.sklearn.neural._check_shape", lambda made, *_: begun.append(_bytes(made)))
        torch.manual_seed(1)
        states = torch.get_rng_state(), np.random.get_state()[1].tobytes(), random.getstate()
        network = DPClassifier(
            epsilon=1, delta=1e-5, public_rows=4000, bounds=[(-5, 7)] * 3, classes=[0, 1], epochs=0.1, batch_size=100
        )
        given = PrivateSearch(network, [{"clip": 1.0}], epsilon=4, delta=1e-4, runs=10, holdout=0.5)
        given.fit(ROWS, LABELS)
        priced = len(begun) - 3
        torch.manual_seed(1)
        public = {_bytes(network._module(3, 2)) for _ in range(100)}
        assert set(begun[:priced]) <= public  # Prices need a module, and nothing of it is released.
        assert len(set(begun[priced:]) - public) == 3
        assert (np.random.get_state()[1].tobytes(), random.getstate()) == states[1:]
        torch.set_rng_state(states[0])
        for _ in range(priced):
            network._module(3, 2)
        wanted = torch.get_rng_state()
        torch.set_rng_state(states[0])
        given.fit(ROWS, LABELS)
        assert torch.equal(torch.get_rng_state(), wanted)

    def test_runs_that_share_a_part_of_their_modules_do_not_train_it_on(self) -> None:
        shared = torch.nn.Linear(3, 3)
        before = _bytes(shared)
        network = DPClassifier(
            lambda inputs, outputs: torch.nn.Sequential(shared, torch.nn.Linear(inputs, outputs)),
            epsilon=1, delta=1e-5, public_rows=4000, bounds=[(-5, 7)] * 3, classes=[0, 1], epochs=0.1, batch_size=100,
        )  # fmt: skip
        PrivateSearch(network, [{"clip": 1.0}], epsilon=4, delta=1e-4, runs=3, holdout=0.5).fit(ROWS, LABELS)
        assert _bytes(shared) == before

    def test_as_many_runs_as_were_drawn_are_made_and_the_best_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[int] = []
        monkeypatch.setattr(RandomStopping, "draw", lambda _: 12)
        monkeypatch.setattr(GaussianNoise, "draw", lambda *_: [0])
        monkeypatch.setattr(
            "discreet.learn.sklearn.search._score", lambda fit, _: made.append(int(fit.var_smoothing)) or made[-1]
        )
        fit = search(candidates=[{"var_smoothing": size} for size in range(1, 6)], runs=4).fit(ROWS, LABELS)
        assert len(made) == 12
        assert fit.best_params_ == {"var_smoothing": max(made)}

    def test_pure_runs_share_the_pure_price(self) -> None:
        purse = Purse()
        steps = make_pipeline(MinMaxScaler(epsilon=1, bounds=(-5, 7)), _Threshold(epsilon=1, bounds=(0, 1)))
        fit = search(steps, {"_threshold__column": [0, 1]}, delta=None, runs=4, session=purse).fit(ROWS, LABELS)
        assert fit.privacy_spent_.epsilon == pytest.approx(1, rel=1e-3)
        assert sum(step.epsilon for _, step in fit.best_estimator_.steps) == pytest.approx(Fraction(1, 3), rel=1e-3)

    def test_people_are_protected_as_without_it(self) -> None:
        ids = {"patient": np.repeat(np.arange(1000), 4)}
        fit = search(runs=3, epsilon=16).fit(ROWS, LABELS, unit=ids, max_rows=3)
        assert (fit.best_estimator_.privacy_spent_.unit, fit.best_estimator_.privacy_spent_.max_rows) == ("patient", 3)
        assert fit.privacy_spent_.epsilon <= 16

    def test_nothing_tells_while_it_runs_how_many_runs_there_are(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A pipeline writes a line for every step of every fit, if it is told to."""
        steps = make_pipeline(MinMaxScaler(epsilon=1, bounds=(-5, 7)), bayes(bounds=None), verbose=True)
        for candidates in ({"gaussiannb__var_smoothing": [1e-4, 1]}, [{"verbose": True}, {"verbose": True}]):
            search(steps, candidates, runs=3).fit(ROWS, LABELS)
            assert capsys.readouterr() == ("", "")
        search(steps, {"gaussiannb__var_smoothing": [1e-4, 1]}).fit(ROWS, LABELS)
        assert "Pipeline" in capsys.readouterr().out  # All candidates, which is no secret.

    @pytest.mark.skipif(not hasattr(Pipeline, "set_callbacks"), reason="this scikit-learn calls nobody back")
    def test_nobody_is_called_back_who_would_count_the_runs(self) -> None:
        """Copies share their callbacks; a progress bar of a pipeline, or of one within it, has a line for every fit."""
        inner, outer = _Counting(), _Counting()
        last = make_pipeline(bayes(bounds=None)).set_callbacks(inner)
        steps = make_pipeline(MinMaxScaler(epsilon=1, bounds=(-5, 7)), last).set_callbacks(outer)
        grid = {"pipeline__gaussiannb__var_smoothing": [1e-4, 1]}
        search(steps, grid, runs=3).fit(ROWS, LABELS)
        assert (inner.fits, outer.fits) == (0, 0)
        search(steps, grid).fit(ROWS, LABELS)
        assert min(inner.fits, outer.fits) > 0  # All candidates, which is no secret.

    def test_candidates_with_a_delta_of_their_own_are_refused(self) -> None:
        purse = Purse()
        with pytest.raises(Refused, match="priced by divergences"):
            search(_Revealing(epsilon=1, bounds=(-5, 7)), [{}, {"column": 1}], runs=3, session=purse).fit(ROWS, LABELS)
        assert not purse.charges

    @pytest.mark.parametrize("runs", [0, 1, -3, "many", 10**9, float("nan")])
    def test_nonsense_is_refused(self, runs: Any) -> None:
        with pytest.raises(InvalidParameter):
            search(runs=runs).fit(ROWS, LABELS)


class _Counting:
    """A callback of scikit-learn that counts fits."""

    fits = 0

    def setup(self, estimator: Any, context: Any) -> None:
        self.fits += 1

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        pass


class _Revealing(_Threshold):
    """An estimator that may reveal a row, with a small chance."""

    def fit(self, X: Any, y: Any) -> _Revealing:
        table = self._table(X, y)
        self._paid(ApproxDP(self._epsilon(), Fraction(1, 10**9)))
        self.frame_, self.classes_ = table.frame, np.array([0, 1])
        return self


class TestGridSearch:
    """scikit-learn catches what scoring raises and goes on; it must not on the data of a session."""

    def test_a_search_of_scikit_learn_fails_loudly_and_charges_nothing(self) -> None:
        purse = Purse()
        grid = GridSearchCV(bayes(session=purse), {"var_smoothing": [1e-4, 1]}, cv=2)
        with pytest.raises(ValueError, match="PrivateSearch"):
            grid.fit(ROWS, LABELS)
        assert not purse.charges

    @pytest.mark.parametrize("scoring", [None, "accuracy"])
    def test_cross_validation_fails_loudly(self, scoring: str | None) -> None:
        purse = Purse()
        with pytest.raises(ValueError, match="refused on the data of a session"):
            cross_val_score(bayes(session=purse), ROWS, LABELS, cv=2, scoring=scoring)
        with pytest.raises(Refused):
            cross_val_predict(bayes(session=purse), ROWS, LABELS, cv=2)
        assert not purse.charges

    def test_a_pipeline_with_a_session_inside_fails_too(self) -> None:
        purse = Purse()
        steps = make_pipeline(StandardScaler(epsilon=1, delta=1e-6, bounds=(-5, 7), session=purse), bayes(bounds=None))
        with pytest.raises(ValueError, match="PrivateSearch"):
            cross_val_score(steps, ROWS, LABELS, cv=2)

    def test_without_a_session_it_is_the_callers_own_matter(self) -> None:
        assert cross_val_score(bayes(), ROWS, LABELS, cv=2).mean() > 0.7

    def test_the_scores_of_a_search_with_a_session_are_refused(self) -> None:
        fit = search(session=Purse()).fit(ROWS, LABELS)
        with pytest.raises(Refused):
            fit.score(ROWS, LABELS)
        assert search().fit(ROWS, LABELS).score(ROWS, LABELS) > 0.7


@pytest.mark.parametrize("relation", list(Relation))
def test_scores_move_by_what_the_choice_pays_for_on_all_neighbours(relation: Relation) -> None:
    """Three rules and all tables of up to two rows: one row moves every score by 0 to BEST, and all one way."""
    rules = [_Threshold(epsilon=1, bounds=(-1, 1), column=j).fit(np.zeros((2, 3)), np.array([0, 1])) for j in range(3)]
    records = [(x, y, 0.5, label) for x, y in product((-1.0, 1.0, np.nan), repeat=2) for label in (0, 1, 7)]

    def scores(table: Any) -> Any:
        rows = np.array([record[:3] for record in table]).reshape(-1, 3)
        return np.array([rightness(rule, rows, [record[3] for record in table]).sum() for rule in rules])

    for kept in ([], [records[0]]):
        without, told = scores(kept), [scores([*kept, record]) for record in records]
        for one, other in product(told, told if relation is Relation.REPLACE_ONE else [without]):
            assert np.abs(one - other).max() <= BEST
            assert relation is Relation.REPLACE_ONE or (one - other).min() >= 0
    assert PermuteAndFlip(epsilon=1, sensitivity=BEST, candidates=3, relation=relation).sensitivity == BEST


def test_points_for_nearness_are_bounded_and_total() -> None:
    class Constant:
        def predict(self, rows: Any) -> Any:
            return np.full(len(rows), 3.0)

    rows = np.zeros((5, 1))
    rows[4] = np.nan
    targets = nearest_floats([3.0, 13.0, -1e9, None, 3.0])
    # Right; far above and far below, both a share of the width off; nothing; a row with a gap.
    found = nearness(Constant(), rows, targets, (Fraction(0), Fraction(10))).tolist()
    assert found == [BEST, round(0.3 * BEST), round(0.7 * BEST), 0, 0]


def test_a_person_brings_at_most_the_points_of_one_row_for_all_small_people() -> None:
    rest, beyond = np.array([BEST, 7]), 0
    for size in (1, 2, 3):
        for points in product((0, 1, BEST // 2, BEST), repeat=size):
            rows, units = np.array([*points, *rest]), np.array([*[0] * size, 1, 1])
            brought = added_up(rows, units) - added_up(rest, np.array([0, 0]))
            assert 0 <= brought <= BEST
            beyond += rows.sum() - rest.sum() > BEST  # Rows scored, not people.
    assert beyond
    assert added_up(np.zeros(0, np.int64), np.zeros(0, np.int64)) == 0


def test_all_rows_of_a_person_are_fitted_or_scored_by_one_coin() -> None:
    ids = np.repeat(np.arange(40), 5)
    whom = unit_rows({"patient": ids}, 3, Relation.ADD_REMOVE)
    for _ in range(5):
        fitted, scored = search()._divided(whom, np.zeros(200, dtype=bool))
        assert fitted.units is not None
        assert scored.units is not None
        assert not set(fitted.units.tolist()) & set(scored.units.tolist())
        assert np.array_equal(ids[fitted.places], fitted.units)
        assert np.bincount(fitted.units).max() <= 3
        assert len(fitted.places) + len(scored.places) == 120
    # The mistake of a coin a row puts some person on both sides.
    rows = np.array([False, True] * 100)
    fitted, scored = search()._divided(None, rows)
    assert set(ids[fitted.places]) & set(ids[scored.places])


def test_a_search_of_people_pays_for_people_and_tells_its_steps_whose_rows_there_are() -> None:
    ids = {"patient": np.repeat(np.arange(1000), 4)}
    steps = make_pipeline(StandardScaler(epsilon=1, bounds=(-5, 7)), GaussianNB(epsilon=2, classes=[0, 1]))
    for estimator, grid in ((None, None), (steps, {"gaussiannb__var_smoothing": [1e-4, 100]})):
        fit = search(estimator, grid, epsilon=16).fit(ROWS, LABELS, unit=ids, max_rows=3)
        last = fit.best_estimator_ if estimator is None else fit.best_estimator_[-1]
        assert (last.privacy_spent_.unit, last.privacy_spent_.max_rows) == ("patient", 3)
        assert str(fit.privacy_spent_).endswith("for one patient, of whom at most 3 rows count (add-remove neighbours)")
        assert fit.privacy_spent_.epsilon <= 16
        assert (fit.predict(ROWS) == LABELS).mean() > 0.75


def test_a_search_of_people_refuses_what_is_not_told_whose_rows_there_are() -> None:
    ids, purse = {"patient": np.repeat(np.arange(1000), 4)}, Purse()
    nested = make_pipeline(make_pipeline(StandardScaler(epsilon=1, bounds=(-5, 7))), bayes(bounds=None))
    for estimator in (nested, _Threshold(epsilon=1, bounds=(-5, 7))):
        asked = search(estimator, [{}], session=purse)
        with pytest.raises(Refused):
            asked.fit(ROWS, LABELS, unit=ids, max_rows=2)
    assert not purse.charges


def test_arithmetic_that_keeps_rows_alone_is_the_product_to_the_last_bit_of_each_row() -> None:
    rows, weights = MADE.normal(size=(301, 7)), MADE.normal(size=(7, 3))
    whole = combined(rows, weights)
    assert whole == pytest.approx(rows @ weights)
    for start, stop in ((0, 1), (5, 8), (100, 301)):
        assert (combined(rows[start:stop], weights) == whole[start:stop]).all()
    assert keeps_rows_alone(make_pipeline(StandardScaler(epsilon=1), bayes()))
    assert not keeps_rows_alone(make_pipeline(StandardScaler(epsilon=1), DummyClassifier()))


def test_rows_with_gaps_are_no_error_with_a_session() -> None:
    odd = ROWS.copy()
    odd[::7, 1] = np.nan
    fit = search(session=Purse()).fit(odd, np.where(LABELS == 1, None, LABELS))
    assert fit.best_index_ in (0, 1)


def test_a_search_can_be_cloned_and_keeps_its_session() -> None:
    purse = Purse()
    twin = clone(search(session=purse))
    assert twin.session is purse
    assert twin.get_params()["estimator__var_smoothing"] == bayes().var_smoothing


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": []},
        {"candidates": 3},
        {"candidates": [3]},
        {"holdout": 0},
        {"holdout": 1},
        {"epsilon": 0},
        {"candidates": {"var_smoothing": [0]}},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        search(**wrong).fit(ROWS, LABELS)


@pytest.mark.parametrize("categories", ["auto", [["a", "b"]]])
def test_steps_that_code_texts_are_refused_with_a_way_out(categories: Any) -> None:
    """Candidates are handed numbers: texts raised pandas' error, or were gaps where a session paid."""
    coder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
    for purse in (None, Purse()):
        with pytest.raises(Refused, match="code the table before the search"):
            search(make_pipeline(coder, bayes()), {"gaussiannb__var_smoothing": [1e-4, 1]}, session=purse).fit(
                pd.DataFrame({"x": ["a", "b"]}), [0, 1]
            )
        assert purse is None or not purse.charges
