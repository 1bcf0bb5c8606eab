"""Gaussian naive Bayes from one noisy release of counts, sums and squares, class by class."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.learn.sklearn.base import PrivatePredictor
from discreet.learn.sklearn.moments import ClassMoments, ClassSums, class_laws, coarser
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["GaussianNB"]

Floats: TypeAlias = NDArray[np.float64]


class GaussianNB(PrivatePredictor, ClassifierMixin, BaseEstimator):
    """Classify by a normal law in each column and class, from noisy moments.

    Values are clamped to `bounds`. `classes` are declared; a label that is none of them belongs to no class. What the
    noisy moments say is weighed against how noisy they are, which is public: a class whose mean cannot be told from
    that of all rows takes that one.

    Guarantee   (epsilon, delta), for the count, the sums and the squares of all classes together.
    Theorem     See `ClassMoments`: one row is in one class, so the classes cost no more than one of them.
    Utility     noise of about sqrt(columns) / mu on each sum, in halves of the bounds; mu is about epsilon / 4.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        classes: The public classes.
        var_smoothing: The part of the largest variance that is added to all of them.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 1000)[:, None]
        >>> y = (X[:, 0] > 0).astype(int)
        >>> model = dp.learn.sklearn.GaussianNB(epsilon=5, delta=1e-6, bounds=[(-1, 1)], classes=[0, 1]).fit(X, y)
        >>> model.score(X, y) > 0.8
        True
    """

    _stored_as: ClassVar[str] = "GaussianNB"

    keeps_rows_alone = True

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        bounds: Any = None,
        classes: Any = None,
        var_smoothing: Number = 1e-4,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.var_smoothing = var_smoothing
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Measure the moments and derive the law of each class; with `unit`, those of people, each counted once."""
        table = self._table(X, y, unit=unit, max_rows=max_rows).filled()
        floor = float(positive(self.var_smoothing, name="var_smoothing"))
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("a classifier needs at least two classes; there is one class, or none, here")
        gaussian = self._row_gaussian(table)
        moments = ClassMoments(
            dimension=self.n_features_in_,
            classes=len(classes),
            relation=self._relation(),
            mu_squared=1 / gaussian.squared_multiplier,
            count_weight=Fraction(max(1, isqrt(self.n_features_in_))),
        )
        with self._paid(table.event_of(moments.event), delta=gaussian.delta or Fraction(0), whom=table.whom):
            measured = moments.measure(coarser(table.steps(), moments.reach), table.codes(classes))
            self.classes_, self.frame_ = classes, table.frame
            self._settle(measured, floor, table.max_rows)
            return self

    def _settle(self, measured: ClassSums, floor: float, slots: int) -> None:
        found = class_laws(measured, floor)
        middle, half = self._middle_and_half()
        self.class_count_ = found.sizes / slots
        self.class_prior_ = found.sizes / found.sizes.sum()
        self.theta_ = middle + half * found.means
        self.var_ = half**2 * found.variances

    def _middle_and_half(self) -> tuple[Floats, Floats]:
        low, high = self.frame_.limits.T
        return (low + high) / 2, (high - low) / 2

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of prior times density, one column a class."""
        moved = self._seen(X)
        middle, half = self._middle_and_half()
        joint = np.tile(np.log(self.class_prior_), (len(moved), 1))
        for place, column in enumerate((middle + half * moved).T):
            # One column after the other: see `validation`.
            spread = self.var_[:, place]
            joint -= 0.5 * (np.log(2 * np.pi * spread) + (column[:, None] - self.theta_[:, place]) ** 2 / spread)
        return joint

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the chance of each class."""
        joint = self.predict_joint_log_proba(X)
        logs: Floats = joint - logsumexp(joint, axis=1, keepdims=True)
        return logs

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class."""
        chances: Floats = np.exp(self.predict_log_proba(X))
        return chances

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class."""
        joint = self.predict_joint_log_proba(X)
        likeliest: NDArray[Any] = self.classes_[np.argmax(joint, axis=1)]
        return likeliest
