"""Estimators of people with several rows: rows bounded per unit, paid for units, refused where nothing is proven."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtr
from sklearn.pipeline import Pipeline

import discreet as dp
from discreet.adaptive import bounded_memberships
from discreet.adaptive.bounded_memberships import filled_rows
from discreet.errors import InvalidParameter, Refused
from discreet.frames.column import Column
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.learn import sklearn as private
from discreet.learn.sklearn import logistic
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.kmeans import CellCounts, ClusterSums
from discreet.learn.sklearn.moments import ClassMoments
from discreet.learn.sklearn.pca import RowMoments
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.quantile import Quantile
from discreet.privacy import outcomes
from discreet.privacy.event_tree import grouped
from discreet.privacy.events import BoundedRange, Event, Repeated
from discreet.robust.regression_queries import Squares

ADD_REMOVE = dp.Relation.ADD_REMOVE

RNG = np.random.default_rng(3)
IDS = pd.Series(pd.array(np.repeat(np.arange(300), 4), dtype="Int64"), name="patient")
IDS[::10] = pd.NA
X = pd.DataFrame({"a": RNG.uniform(0, 10, 1200), "b": RNG.uniform(-1, 1, 1200)})
Y = 2 * X["a"] - X["b"]
LABELS = (X["a"] > 5).astype(int).to_numpy()
KNOWN: dict[str, Any] = {"epsilon": 2, "delta": 1e-6, "bounds": [(0, 10), (-1, 1)]}
REGRESSION = KNOWN | {"target_bounds": (-10, 30)}


class Purse:
    """A payer that notes what it is charged, and for whom."""

    def __init__(self) -> None:
        self.paid: list[tuple[Event, str]] = []

    def charge(
        self, event: Event, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.paid.append((event, unit))


def models(session: Any) -> dict[str, tuple[Any, Any, int]]:
    """Each estimator with its target and how many rows of a unit it takes."""
    classes = {"classes": [0, 1]}
    paying: dict[str, Any] = {"session": session}
    return {
        "linear": (private.LinearRegression(**REGRESSION, **paying), Y, 3),
        "once": (private.LinearRegression(**REGRESSION, **paying, method="noisy_statistics"), Y, 3),
        "adassp": (private.LinearRegression(**REGRESSION, **paying, method="adassp"), Y, 3),
        "huber": (private.LinearRegression(**REGRESSION, **paying, method="robust", inference=False), Y, 3),
        "ridge": (private.Ridge(**REGRESSION, **paying), Y, 3),
        "robust": (private.RobustRegressor(**REGRESSION, **paying, inference=False), Y, 3),
        "bayes": (private.GaussianNB(**KNOWN, **classes, **paying), LABELS, 3),
        "boosted": (private.BoostedTreesClassifier(**KNOWN, **classes, **paying), LABELS, 3),
        "forest": (private.RandomForestClassifier(**KNOWN, **classes, **paying), LABELS, 3),
        "boosted numbers": (private.BoostedTreesRegressor(**REGRESSION, **paying), Y, 3),
        "poisson": (private.PoissonRegressor(**KNOWN, target_bounds=(0, 30), **paying), Y, 3),
        "softmax": (private.LogisticRegression(**KNOWN, classes=[0, 1, 2], multi_class="softmax", **paying), LABELS, 3),
        "pca": (private.PCA(**KNOWN, **paying, coverage=None), None, 3),
        "scaler": (private.StandardScaler(**KNOWN, **paying, coverage=None), None, 3),
        "k-means": (private.KMeans(2, **KNOWN, **paying), None, 3),
        "tukey": (private.LinearRegression(**REGRESSION, **paying, method="tukey"), Y, 3),
        "intervals": (private.RobustRegressor(**REGRESSION, **paying), Y, 3),
        "logistic": (private.LogisticRegression(**KNOWN, **classes, **paying), LABELS, 3),
        "newton": (private.LogisticRegression(**KNOWN, **classes, **paying, method="newton"), LABELS, 3),
        "pca, coverage": (private.PCA(**KNOWN, **paying, coverage=0.9), None, 3),
        "scaler, coverage": (private.StandardScaler(**KNOWN, **paying, coverage=0.9), None, 3),
        "range": (private.MinMaxScaler(epsilon=2, bounds=KNOWN["bounds"], **paying), None, 3),
    }


@pytest.mark.parametrize("name", models(None))
def test_each_estimator_pays_for_people_what_was_asked_and_reads_no_more_of_their_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    purse, read = Purse(), []
    columns = TrainingTable.columns

    def noted(table: TrainingTable) -> list[Any]:
        found = columns(table)
        units = table.units()
        assert units is not None
        assert len(units) == len(found[0])
        read.append(int(np.bincount(units).max()))
        return found

    monkeypatch.setattr(TrainingTable, "columns", noted)
    model, target, most = models(purse)[name]
    model.fit(X, target, unit=IDS, max_rows=most)
    assert read == [most] * len(read)
    assert read
    ((event, unit),) = purse.paid
    assert unit == "patient"
    spent = model.privacy_spent_
    assert (spent.event, spent.unit, spent.max_rows) == (event, "patient", most)
    assert spent.epsilon <= 2 * (1 + 1e-6)
    assert f"for one patient, of whom at most {most} row" in str(spent)
    # It costs what rows do.
    monkeypatch.undo()
    alone, target, _ = models(None)[name]
    assert alone.fit(X, target).privacy_spent_.epsilon == pytest.approx(spent.epsilon, rel=1e-6)


def test_noise_for_a_slot_is_that_of_one_row_a_person_times_the_slots() -> None:
    seen = []
    for most in (1, 3):
        model = private.GaussianNB(**KNOWN, classes=[0, 1])
        table = model._table(X, LABELS, unit=IDS, max_rows=most).filled()
        seen.append(model._row_gaussian(table).squared_multiplier)
        # Rows protected, not people: the event of rows, at the noise of rows, is a ninth of what people lose.
        assert table.event_of(dp.privacy.GDP(mu_squared=1)) == dp.privacy.GDP(mu_squared=most**2)
        assert len(table) == most * IDS.nunique()
    assert seen[1] == 9 * seen[0]


# Exact small worlds: all people with up to three rows, who fill two slots in every way that is drawn.
MOST = 2


def fills(rows: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, slots: int = MOST) -> list[list[Any]]:
    """List what a person with these rows puts into their slots, once for each order that is drawn."""
    found = []
    for order in permutations(range(len(rows))):
        monkeypatch.setattr(bounded_memberships.noise, "permutation", lambda size, order=order: np.array(order))
        found.append([rows[place] for place in filled_rows(Column(["a"] * len(rows)), slots).tolist()])
    monkeypatch.undo()
    return found


def people(records: Any, most: int = MOST + 1) -> list[tuple[Any, ...]]:
    return [rows for size in range(1, most + 1) for rows in combinations_with_replacement(records, size)]


def told_of_classes(rows: list[Any]) -> tuple[ClassMoments, list[Any], list[Fraction]]:
    subject = ClassMoments(classes=2, dimension=1, reach=4, relation=ADD_REMOVE, mu_squared=Fraction(1, 7))
    table = np.array(rows)
    variances = [subject.count_variance, subject.sum_variance, subject.square_variance]
    return subject, list(subject.exact(table[:, :1], table[:, 1])), variances


def told_of_clusters(rows: list[Any]) -> tuple[ClusterSums, list[Any], list[Fraction]]:
    subject = ClusterSums(clusters=2, dimension=1, reach=2, relation=ADD_REMOVE, mu_squared=Fraction(1, 7))
    table = np.array(rows)
    return subject, list(subject.exact(table[:, :1], table[:, 1])), [subject.size_variance, subject.sum_variance]


def told_of_cells(rows: list[Any]) -> tuple[CellCounts, list[Any], list[Fraction]]:
    subject = CellCounts(cells=2, relation=ADD_REMOVE, mu_squared=Fraction(1, 7))
    return subject, [subject.exact(np.array(rows)[:, 1])], [subject.variance]


def told_of_rows(rows: list[Any]) -> tuple[RowMoments, list[Any], list[Fraction]]:
    subject = RowMoments(dimension=1, radius=4, relation=ADD_REMOVE, mu_squared=Fraction(1, 7))
    variances = [subject.count_variance, subject.total_variance, subject.gram_variance]
    return subject, list(subject.exact(np.array(rows)[:, :1])), variances


@pytest.mark.parametrize(
    ("told", "reach"), [(told_of_classes, 4), (told_of_clusters, 2), (told_of_cells, 1), (told_of_rows, 4)]
)
def test_a_person_moves_sums_by_the_slots_times_one_row_for_all_small_people(
    told: Any, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive Bayes, scalers, k-means and PCA are sums: a person more is what their slots add."""
    records = [(x, label) for x in (-reach, 0, reach) for label in (0, 1)]

    def loss(rows: list[Any]) -> Fraction:
        _, parts, variances = told(rows)
        squares = (int((np.asarray(part) ** 2).sum()) for part in parts)
        return sum((square / variance for square, variance in zip(squares, variances, strict=True)), Fraction(0))

    claimed = grouped(told(records)[0].event, MOST).mu_squared
    filled = [loss(slots) for rows in people(records) for slots in fills(rows, monkeypatch)]
    assert max(filled) == claimed
    # The event of one row; rows whose weights are not shared, so that each fills all slots; nobody bounds rows.
    assert max(filled) > told(records)[0].event.mu_squared
    assert max(loss(list(rows) * MOST) for rows in people(records)) > claimed
    assert max(loss(list(rows)) for rows in people(records)) > claimed


@dataclass(frozen=True)
class Ranges:
    """The law of one end of a range on people, over all ways in which they fill their slots."""

    mechanism: Quantile
    ways: dict[Any, list[list[Any]]]
    event: Event
    relation: Any = ADD_REMOVE

    def distribution(self, world: Any) -> outcomes.Outcomes:
        choices = [self.ways[rows] for rows in world]
        chance = Fraction(1)
        for options in choices:
            chance /= len(options)
        laws = Counter(tuple(row for slots in chosen for row in sorted(slots)) for chosen in product(*choices))
        return outcomes.mixture(
            (chance * times, self.mechanism.distribution(list(rows))) for rows, times in laws.items()
        )


@pytest.mark.long
@pytest.mark.parametrize("at", [Fraction(1, 20), Fraction(1, 2), Fraction(19, 20)])
def test_ends_of_ranges_keep_their_claim_for_whole_people(at: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    found = private.MinMaxScaler(epsilon=4, bounds=[(0, 2)], coverage=0.9)
    event = found.fit([[0.0]], unit=["a"], max_rows=MOST).privacy_spent_.event
    assert event == Repeated(BoundedRange(Fraction(2)), 2)
    grid = Grid.between(0, 2, step=1)
    mechanism = Quantile(quantile=at, epsilon=Fraction(2, MOST), grid=grid, relation=ADD_REMOVE)
    kinds = people((0, 1, 2))
    small = worlds(kinds, range(3))
    ways = {rows: fills(rows, monkeypatch) for rows in kinds}
    assert verify.check(Ranges(mechanism, ways, BoundedRange(Fraction(2))), small).holds
    assert verify.check(Ranges(mechanism, ways, mechanism.event), small).violated  # The event of one row.
    unshared = {rows: [list(rows) * MOST] for rows in kinds}
    assert verify.check(Ranges(mechanism, unshared, BoundedRange(Fraction(2))), small).violated


def test_everybody_weighs_the_same_however_many_rows_they_have() -> None:
    """Nine people in ten have one row near 2, one in ten has forty rows near 8."""
    ids = np.concatenate([np.arange(900), np.repeat(np.arange(900, 1000), 40)])
    near = np.where(ids < 900, 2.0, 8.0) + RNG.normal(size=len(ids)) / 10
    known: dict[str, Any] = {"epsilon": 20, "delta": 1e-6, "bounds": [(0, 10)]}
    told: dict[str, Any] = {"unit": {"patient": ids}, "max_rows": 8}
    scaler = private.StandardScaler(**known).fit(near[:, None], **told)
    assert scaler.mean_[0] == pytest.approx(0.9 * 2 + 0.1 * 8, abs=0.1)
    bayes = private.GaussianNB(**known, classes=[0, 1]).fit(near[:, None], (near > 5).astype(int), **told)
    assert bayes.class_count_ == pytest.approx([900, 100], abs=10)
    clusters = private.KMeans(2, **known).fit(near[:, None], **told)
    assert sorted(clusters.cluster_sizes_) == pytest.approx([100, 900], abs=25)
    ends = private.MinMaxScaler(epsilon=20, bounds=[(0, 10)], coverage=0.7).fit(near[:, None], **told)
    assert ends.data_max_[0] < 3  # Of all rows four in five are near 8.


@pytest.mark.parametrize("name", [name for name in models(None) if name not in ("linear", "once", "ridge")])
def test_awkward_ids_and_people_with_very_many_rows_are_no_error(name: str) -> None:
    """Somebody with nearly all rows, ids that are missing, people with fewer rows than slots, more slots than rows."""
    ids = pd.Series([None, *["a"] * 900, *[f"p{place // 2}" for place in range(298)], float("nan")], name="patient")
    model, target, _ = models(Purse())[name]
    model.fit(X, target, unit=ids, max_rows=100_000)
    assert model.privacy_spent_.max_rows <= 16
    assert model.privacy_spent_.epsilon <= 2 * (1 + 1e-6)
    with pytest.raises(InvalidParameter):
        model.fit(X, target, unit=X["a"], max_rows=2)  # Real numbers tell nobody apart.


@pytest.mark.parametrize("name", models(None))
@pytest.mark.parametrize("size", [0, 3])
def test_nobody_at_all_is_no_error(name: str, size: int) -> None:
    """No rows, or rows without an id: an error would tell that there is nobody."""
    model, target, _ = models(Purse())[name]
    rows = np.zeros((size, 2))
    model.fit(rows, None if target is None else np.zeros(size, int), unit={"patient": [None] * size}, max_rows=4)
    assert model.privacy_spent_.unit == "patient"


def test_several_classes_take_fewer_rows_of_a_person_where_their_corners_multiply() -> None:
    labels = RNG.integers(0, 4, len(X))
    for method, most in (("objective", 4), ("newton", 9)):
        model = private.LogisticRegression(**KNOWN, classes=[0, 1, 2, 3], method=method)
        model.fit(X, labels, unit=IDS, max_rows=9)
        assert model.privacy_spent_.max_rows == most
        assert model.privacy_spent_.epsilon <= 2 * (1 + 1e-6)


def test_a_session_of_people_pays_for_a_pipeline_and_is_told_so() -> None:
    table = X.assign(patient=IDS)
    session = dp.Session(
        table,
        unit=dp.Unit("patient", name="person"),
        budget=dp.Budget(epsilon=9, delta=1e-5),
        ledger="memory",
        dataset="stays",
        principal="ana",
    )
    pipe = Pipeline(
        [
            ("scaler", private.StandardScaler(**KNOWN, session=session)),
            ("model", private.LinearRegression(epsilon=2, delta=1e-6, target_bounds=(-10, 30), session=session)),
        ]
    )
    with pytest.raises(Refused):
        pipe.fit(X, Y)
    pipe.fit(X, Y, scaler__unit=IDS, model__unit=IDS, model__max_rows=4)
    assert len(session.ledger.history()) >= 2
    assert "for one person, of whom at most 4 rows count" in str(pipe[-1].privacy_spent_)
    assert "for one person" in repr(pipe[-1].release_)


def test_replace_one_and_unnamed_ids_are_refused_before_any_charge() -> None:
    purse = Purse()
    with pytest.raises(Refused):
        private.LinearRegression(**REGRESSION, relation="replace-one").fit(X, Y, unit=IDS)
    with pytest.raises(Refused):
        private.LinearRegression(**REGRESSION, session=purse).fit(X, Y, unit=IDS.to_list())
    assert not purse.paid


def logits(correlation: float, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """200 people with 16 rows; each row follows a logistic model, and those of one person are alike."""
    ids = np.repeat(np.arange(200), 16)
    x = np.clip(rng.normal(size=200)[ids] + 0.1 * rng.normal(size=len(ids)), -3, 3)
    own = np.sqrt(correlation) * rng.normal(size=200)[ids] + np.sqrt(1 - correlation) * rng.normal(size=len(ids))
    return ids, x, own


@pytest.mark.long
@pytest.mark.parametrize("kind", ["objective", "newton", "Huber"])
def test_intervals_by_person_cover_and_those_by_row_do_not(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {"epsilon": 200, "delta": 1e-6, "bounds": [(-3, 3)]}

    def covers(rng: np.random.Generator) -> bool:
        ids, x, own = logits(0.95, rng)
        given: dict[str, Any] = {"unit": {"patient": ids}, "max_rows": 16}
        if kind == "Huber":
            model: Any = private.RobustRegressor(**known, target_bounds=(-12, 14))
            low, high = model.fit(x[:, None], 1 + x + own, **given).intervals_()[1]
        else:
            model = private.LogisticRegression(**known, classes=[0, 1], method=kind, regularisation=None)
            labels = (ndtr(own) < expit(x)).astype(int)
            low, high = model.fit(x[:, None], labels, **given).intervals_()[1]
        return bool(low <= 1 <= high)

    def covered(times: int) -> int:
        rng = np.random.default_rng(5)
        return sum(covers(rng) for _ in range(times))

    # Of 120 true intervals fewer than 84 cover once in 10^9 if each covers nine times in ten.
    assert covered(120) >= 84
    if kind == "Huber":
        by_row = Squares.evaluate
        monkeypatch.setattr(
            Squares, "evaluate", lambda self, state, table: by_row(self, state, replace(table, units=None))
        )
        monkeypatch.setattr(Squares, "learn", lambda self, *told: LEARN(replace(self, slots=1), *told))
    else:
        monkeypatch.setattr(logistic, "_score_squares", lambda plan, data, place, units, curvature: curvature)
    assert covered(120) < 84


LEARN = Squares.learn
