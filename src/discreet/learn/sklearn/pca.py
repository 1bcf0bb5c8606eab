"""Principal components of a noisy covariance matrix."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.bounds import BoundedArray
from discreet.learn.sklearn.centring import Centring
from discreet.learn.sklearn.private_ranges import choice_epsilon, shared_mu_squared
from discreet.learn.sklearn.row_moments import RowMoments, RowSums, covariance, covariance_error
from discreet.learn.sklearn.rows_alone import combined
from discreet.learn.sklearn.scaling import Floats, PrivateTransformer
from discreet.mechanisms.fields import read_share
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.privacy.events import Composed, Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.design import HALF
from discreet.robust.moments import FINEST

__all__ = ["PCA"]

_MEAN, _RADIUS = Fraction(1, 8), Fraction(1, 16)  # Of the budget, where the centre and the radius are found first.
_CONFIDENCE = 0.95


class _PCAMechanisms(NamedTuple):
    centring: Centring | None
    mu_squared: Fraction  # for the moments; how far out they reach is only known later

    def moments(self, dimension: int, relation: Relation, radius: int) -> RowMoments:
        return RowMoments(dimension=dimension, relation=relation, mu_squared=self.mu_squared, radius=radius)


class PCA(PrivateTransformer, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Find the directions in which rows vary most, from their covariance with symmetric noise.

    Noise grows with the square of the length of the longest row. So the mean of the rows and a radius about it that
    holds a share `coverage` of them are found first; what lies beyond is shortened. With `coverage=None` rows are
    taken as they are, about the middle of the bounds.

    `explained_variance_error_` tells how far noise may have moved each variance, with 95 % confidence, next to the
    variances of the rows as they were shortened. Rows that come out are clamped to `radius_`, and say so.

    Guarantee   (epsilon, delta), for mean, radius and covariance together.
    Theorem     See `RowMoments` and `Centring`. What is done with a noisy matrix is free.
    Utility     noise of about sqrt(2 columns) radius^2 / (mu rows) on each variance; mu is about epsilon / 4.
    """

    _stored_as: ClassVar[str] = "PCA"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number,
        delta: Number | None = None,
        bounds: Any = None,
        coverage: Number | None = 0.9,
        relation: str | Relation = "add-remove",
        public_size: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.coverage = coverage
        self.relation = relation
        self.public_size = public_size
        self.session = session

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measure the covariance and find its eigenvectors."""
        table = self._table(X)
        kept = self._kept()
        delta = self._delta(table.people)
        mechanisms = self._mechanisms(table, delta)
        self._pay(self._event(mechanisms), delta=delta)
        self.frame_ = table.frame
        rows = self._rows(table)
        centre, radius = (
            (np.zeros(self.n_features_in_, dtype=np.int64), FINEST)
            if mechanisms.centring is None
            else mechanisms.centring.find(rows)
        )
        moments = mechanisms.moments(self.n_features_in_, self._relation(), radius)
        self._settle(moments, moments.measure(clip_to_ball(rows - centre, radius)), centre, kept)
        return self

    def _kept(self) -> int:
        if self.n_components is None:
            return self.n_features_in_
        kept = positive_integer(self.n_components, name="n_components")
        if kept > self.n_features_in_:
            raise InvalidParameter(f"n_components must be at most {self.n_features_in_}, the number of columns")
        return kept

    def _mechanisms(self, table: TrainingTable, delta: Fraction) -> _PCAMechanisms:
        if self.coverage is None:
            return _PCAMechanisms(None, 1 / self._gaussian(table.people).squared_multiplier)
        coverage, relation = read_share(self.coverage, name="coverage"), self._relation()
        mu_squared = shared_mu_squared(self._epsilon(), delta, relation, share=_RADIUS, choices=1)
        centring = Centring(
            dimension=self.n_features_in_,
            relation=relation,
            size=table.size,
            coverage=coverage,
            mu_squared=_MEAN * mu_squared,
            epsilon=choice_epsilon(_RADIUS * mu_squared, 1),
        )
        return _PCAMechanisms(centring, (1 - _MEAN - _RADIUS) * mu_squared)

    def _event(self, mechanisms: _PCAMechanisms) -> Event:
        # The cost of the moments is that of mu, whatever radius will be found.
        moments = mechanisms.moments(self.n_features_in_, self._relation(), FINEST).event
        return moments if mechanisms.centring is None else Composed([mechanisms.centring.event, moments])

    def _unit(self) -> float:
        """Return the size of a step in the units of the data: FINEST of them reach every corner of the bounds."""
        _, half = self._middle_and_half()
        # Rounding moves a row by at most half the root of the number of columns.
        return float(np.linalg.norm(half)) / (FINEST - 1 - sqrt(self.n_features_in_))

    def _rows(self, table: TrainingTable) -> NDArray[np.int64]:
        """Place rows about the middle of the bounds, one step for all columns."""
        _, half = self._middle_and_half()
        rows: NDArray[np.int64] = np.rint(table.steps() * (half / (HALF * self._unit()))).astype(np.int64)
        return clip_to_ball(rows, FINEST)

    def _settle(self, moments: RowMoments, measured: RowSums, centre: NDArray[np.int64], kept: int) -> None:
        unit, (middle, _) = self._unit(), self._middle_and_half()
        values, vectors = np.linalg.eigh(covariance(measured))
        order = np.argsort(values)[::-1][:kept]
        variances = np.maximum(values, 0.0) * unit**2
        self.components_ = _upright(vectors[:, order].T)
        self.explained_variance_ = variances[order]
        self.explained_variance_ratio_ = variances[order] / max(variances.sum(), np.finfo(float).tiny)
        self.explained_variance_error_ = covariance_error(measured, _CONFIDENCE, moments.centre) * unit**2
        self.mean_ = middle + unit * (centre + measured.total / max(measured.rows, 1.0))
        self.radius_ = moments.radius * unit
        self.n_components_ = kept

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> BoundedArray:
        """Return coordinates along the components, clamped to the radius. Rows stay as private as they were."""
        moved = self._moved(X)
        middle, half = self._middle_and_half()
        turned = combined(middle + half * moved - self.mean_, self.components_.T)
        return BoundedArray.clamped(turned, -self.radius_, self.radius_)

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that have these coordinates and no others."""
        found: Floats = np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_
        return found


def _upright(components: Floats) -> Floats:
    """Turn each component so that its largest entry is positive: otherwise its sign is chance."""
    largest = np.abs(components).argmax(axis=1)
    found: Floats = components * np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)[:, None]
    return found
