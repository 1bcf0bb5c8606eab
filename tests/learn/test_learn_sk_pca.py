"""Principal components: near to the plain ones, with an error, and rows that keep public bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from learn.sk_purse import Purse, Watched
from sklearn import decomposition
from sklearn.pipeline import make_pipeline

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.learn.sklearn.bounds import declared_bounds
from discreet.learn.sklearn.naive_bayes import GaussianNB
from discreet.learn.sklearn.pca import PCA, Centring, RowMoments
from discreet.privacy import Relation
from discreet.robust.noisy_moments import FINEST

MADE = np.random.default_rng(3)
TURN = np.linalg.qr(MADE.normal(size=(6, 6)))[0]
ROWS = MADE.normal(size=(8000, 6)) * [5, 3, 1, 1, 0.5, 0.2] @ TURN + 4
PLAIN = decomposition.PCA().fit(ROWS)


def pca(n_components: int | None = 2, **fields: Any) -> PCA:
    return PCA(n_components, **({"epsilon": 2, "delta": 1e-6, "bounds": (-30, 40)} | fields))


def overlap(components: Any) -> float:
    """How much of the plain components lies in the span of these: one where they span the same."""
    return float(np.linalg.norm(components @ PLAIN.components_[: len(components)].T) ** 2 / len(components))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_components_and_variances_are_near(relation: str) -> None:
    fit = pca(relation=relation).fit(ROWS)
    assert overlap(fit.components_) > 0.97
    assert fit.components_ @ fit.components_.T == pytest.approx(np.eye(2), abs=1e-9)
    assert fit.explained_variance_ == pytest.approx(PLAIN.explained_variance_[:2], rel=0.35)
    assert 0 < fit.explained_variance_error_ < 5
    assert fit.mean_ == pytest.approx(ROWS.mean(axis=0), abs=1)
    assert 1.99 < fit.privacy_spent_.epsilon <= 2


def test_without_noise_to_speak_of_it_is_the_plain_one() -> None:
    fit = pca(None, epsilon=100_000, coverage=None).fit(ROWS)
    assert fit.explained_variance_ == pytest.approx(PLAIN.explained_variance_, abs=0.01)
    assert fit.explained_variance_ratio_.sum() == pytest.approx(1)
    assert fit.inverse_transform(fit.transform(ROWS[:9])) == pytest.approx(ROWS[:9], abs=0.01)


def test_finding_the_centre_and_the_radius_pays() -> None:
    plain, found = pca(coverage=None).fit(ROWS), pca().fit(ROWS)
    assert found.radius_ < plain.radius_ / 4
    assert found.explained_variance_error_ < plain.explained_variance_error_ / 10


def test_rows_keep_the_radius_and_say_so_to_the_next_step() -> None:
    fit = pca().fit(ROWS)
    turned = fit.transform(ROWS * 1000)
    assert declared_bounds(turned) == (-fit.radius_, fit.radius_)
    assert np.abs(turned).max() <= fit.radius_
    labels = (ROWS @ TURN.T[:, 0] > ROWS.mean(axis=0) @ TURN.T[:, 0]).astype(int)
    steps = make_pipeline(pca(), GaussianNB(epsilon=1, delta=1e-6, classes=[0, 1])).fit(ROWS, labels)
    assert steps.score(ROWS, labels) > 0.85
    assert steps[0].get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_what_becomes_of_a_row_depends_on_that_row_alone() -> None:
    fit = pca(None).fit(ROWS)
    whole = np.asarray(fit.transform(ROWS[:257]))
    for start, stop in ((0, 1), (1, 3), (100, 257), (256, 257)):
        assert (np.asarray(fit.transform(ROWS[start:stop])) == whole[start:stop]).all()


def test_nothing_is_read_before_it_is_paid_for() -> None:
    purse = Purse()
    fit = pca(session=purse).fit(Watched(ROWS[:300], purse))
    assert [event for event, _, _ in purse.charges] == [fit.privacy_spent_.event]
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        pca(session=empty).fit(Watched(ROWS[:300], empty))


def test_with_a_session_no_value_is_an_error() -> None:
    odd = ROWS[:500].copy()
    odd[0], odd[1, 1] = np.nan, -np.inf
    assert np.isfinite(pca(session=Purse()).fit_transform(odd)).all()


def test_the_radius_is_measured_about_the_released_mean() -> None:
    centring = Centring(
        dimension=2,
        relation=Relation.ADD_REMOVE,
        size=None,
        coverage=Fraction(9, 10),
        mu_squared=Fraction(100),
        epsilon=Fraction(10),
    )
    angles = np.linspace(0, 2 * np.pi, 4000)
    rows = np.rint(np.stack([8000 + 1000 * np.cos(angles), 1000 * np.sin(angles)], axis=1)).astype(np.int64)
    centre, radius = centring.find(rows)
    assert centre == pytest.approx([8000, 0], abs=100)
    assert radius == pytest.approx(1000, abs=200)


@pytest.mark.parametrize(
    "wrong", [{"n_components": 0}, {"n_components": 7}, {"coverage": 1}, {"delta": None}, {"epsilon": 0}]
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        pca(**wrong).fit(ROWS)


def test_no_measured_row_is_longer_than_the_radius_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is for rows within the radius, and the radius leaves some of them out."""
    seen: list[tuple[float, int]] = []

    def measure(moments: RowMoments, rows: Any) -> Any:
        seen.append((float(np.linalg.norm(rows, axis=1).max()), moments.radius))
        return plain(moments, rows)

    plain = RowMoments.measure
    monkeypatch.setattr(RowMoments, "measure", measure)
    pca(epsilon=10).fit(np.vstack([ROWS, np.full((8, 6), 40.0)]))
    ((longest, radius),) = seen
    assert longest <= radius < FINEST
