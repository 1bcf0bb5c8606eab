"""Logistic regression with privacy."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, nonnegative
from discreet.learn.sklearn.base import PrivatePredictor, TrainingTable
from discreet.learn.sklearn.bounds import Bounds
from discreet.learn.sklearn.logistic_fits import fitted
from discreet.learn.sklearn.logistic_plan import NewtonPlan, ObjectivePlan
from discreet.learn.sklearn.logistic_summary import Estimates
from discreet.learn.sklearn.regressor import read_method
from discreet.learn.sklearn.rows_alone import combined
from discreet.learn.sklearn.summary import Summary
from discreet.mechanisms.fields import read_confidence, read_flag
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["LogisticRegression"]

FloatArray = NDArray[np.float64]
_METHODS = ("auto", "objective", "newton")


class LogisticRegression(PrivatePredictor, ClassifierMixin, BaseEstimator):
    """Fit a logistic regression to rows within declared bounds.

    Columns are centred and scaled by noisy means and spreads, and long rows are shortened. Then

    - "objective", which "auto" takes, adds a random slope to the loss and tells the minimum: the least noise;
    - "newton" takes a few steps with noisy gradients and matrices: about twice the noise, but what it spends is
      Gaussian and composes exactly with what else a session spends.

    More than two classes are fitted one against the rest, each with its part of the budget. `regularisation` is a ridge
    in units of the squared longest row, where privacy sets the least. A part of the budget goes into intervals unless
    `inference=False`.

    Guarantee   (epsilon, delta), for everything that is measured together.
    Theorem     See `discreet.learn.convex.calibrated`, and `Curvature` and `Scores` for "newton".
    Utility     noise of about 1 / mu on the gradient in units of the longest row; mu is about epsilon / 4.
    """

    _stored_as: ClassVar[str] = "LogisticRegression"

    keeps_rows_alone = True
    classes_: NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    method_: str

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Bounds | None = None,
        classes: Any = None,
        method: str = "auto",
        regularisation: Number | None = None,
        fit_intercept: bool = True,
        inference: bool = True,
        relation: str | Relation = "add-remove",
        public_size: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.method = method
        self.regularisation = regularisation
        self.fit_intercept = fit_intercept
        self.inference = inference
        self.relation = relation
        self.public_size = public_size
        self.session = session

    def fit(self, X: Any, y: Any) -> Self:
        """Pay for the whole fit, then read the rows."""
        table = self._table(X, y)
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("a classifier needs at least two classes; there is one class, or none, here")
        plan = self._plan(table, len(classes))
        self._pay(plan.event, delta=self._delta(table.people))
        fits = fitted(plan, table.frame, table.steps(), table.codes(classes))
        self.classes_, self.frame_, self.method_ = classes, table.frame, plan.method
        self.intercept_, self.coef_ = fits.coefficients[:, 0], fits.coefficients[:, 1:]
        self._estimates = Estimates(fits.estimates, fits.errors)
        return self

    def _plan(self, table: TrainingTable, classes: int) -> ObjectivePlan | NewtonPlan:
        features, problems = len(table.frame.bounds), 1 if classes == 2 else classes
        intercept = read_flag(self.fit_intercept, name="fit_intercept")
        wish = None if self.regularisation is None else nonnegative(self.regularisation, name="regularisation")
        inference = read_flag(self.inference, name="inference")
        if read_method(self.method, _METHODS) == "newton":
            if wish is not None:
                raise InvalidParameter('regularisation is for method="objective": "newton" has no ridge')
            return NewtonPlan(
                features=features,
                has_intercept=intercept,
                relation=self._relation(),
                problems=problems,
                noise=self._gaussian(table.people),
            )
        return ObjectivePlan.for_budget(
            self._epsilon(),
            self._delta(table.people),
            relation=self._relation(),
            features=features,
            problems=problems,
            has_intercept=intercept,
            inference=inference,
            ridge=wish,
            people=table.people,
        )

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of the second class, or of each class against the rest, for features in their bounds."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64)
        inside: FloatArray = np.clip(values, *self.frame_.limits.T)
        margins = combined(inside, self.coef_.T) + self.intercept_
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the chance of each class; where each was fitted against the rest, they are scaled to add up to one."""
        chances = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -30, 30)))
        if chances.ndim == 1:
            return np.column_stack([1 - chances, chances])
        found: FloatArray = chances / chances.sum(axis=1, keepdims=True)
        return found

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the chances."""
        logs: FloatArray = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class."""
        margins = self.decision_function(X)
        places = (margins > 0).astype(np.int64) if margins.ndim == 1 else margins.argmax(axis=1)
        found: NDArray[Any] = self.classes_[places]
        return found

    def intervals_(self, confidence: Number = 0.95) -> FloatArray:
        """Return an interval (low, high) for each coefficient, the intercept first, class by class if there are more
        than two. Where they were paid for and the noise hides too much, they are unbounded, (-inf, inf).
        """
        check_is_fitted(self)
        if self._estimates.errors is None:
            raise Refused("there are no intervals for this fit", reason=str(self._estimates.reason))
        found = self._estimates.intervals(read_confidence(confidence))
        return found[0] if len(self.classes_) == 2 else found

    def summary(self, confidence: Number = 0.95) -> Summary:
        """Return a table of the coefficients, the intercept first, with their errors and the price.

        It tells the coefficients without the pull of the ridge; `coef_`, to predict with, are those with it.
        """
        check_is_fitted(self)
        given = getattr(self, "feature_names_in_", None)
        features = [f"x{place}" for place in range(self.n_features_in_)] if given is None else given.tolist()
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        prefixes = [""] if len(labels) == 1 else [f"{label}: " for label in labels]
        return self._estimates.summary(
            title=f"{type(self).__name__} ({self.method_})",
            cost=str(self.privacy_spent_),
            confidence=read_confidence(confidence),
            names=[prefix + name for prefix in prefixes for name in ("intercept", *features)],
        )
