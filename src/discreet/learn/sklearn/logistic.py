"""Logistic regression with privacy."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative
from discreet.learn.sklearn.base import PrivatePredictor, Table
from discreet.learn.sklearn.bounds import Bounds
from discreet.learn.sklearn.class_moments import coarser
from discreet.learn.sklearn.logistic_coordinates import Coordinates, labelled, standardised
from discreet.learn.sklearn.logistic_fits import Fitted, by_newton, by_objective
from discreet.learn.sklearn.logistic_plan import NewtonPlan, ObjectivePlan
from discreet.mechanisms.fields import read_flag
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.lens import lengths

__all__ = ["LogisticRegression"]

Floats = NDArray[np.float64]
_METHODS = ("auto", "objective", "newton")


class LogisticRegression(PrivatePredictor, ClassifierMixin, BaseEstimator):
    """Fit a logistic regression to rows within declared bounds.

    Columns are centred and scaled by noisy means and spreads, long rows are shortened, and then

    - "objective" (also "auto") adds a random slope to the loss and tells its minimum: the least noise;
    - "newton" takes a few steps with noisy gradients and matrices: about twice the noise, but its cost is that of
      Gaussian noise and composes exactly with what else a session spends.

    More than two classes are fitted one against the rest, each with its part of the budget. `regularisation` is a ridge
    in units of the squared longest row; what privacy needs is the least.
    """

    classes_: NDArray[Any]
    coef_: Floats
    intercept_: Floats

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
        """Charge for the whole fit, then read the rows."""
        table = self._table(X, y)
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("classes must be at least two: one class leaves nothing to predict")
        plan = self._plan(table, len(classes))
        self._pay(plan.event, delta=self._delta(table.people))
        self.classes_, self.frame_ = classes, table.frame
        self._learn(plan, table)
        return self

    def _plan(self, table: Table, classes: int) -> ObjectivePlan | NewtonPlan:
        if self.method not in _METHODS:
            raise InvalidParameter(f"method must be one of {', '.join(_METHODS)}")
        features, problems = len(table.frame.bounds), 1 if classes == 2 else classes
        intercept = read_flag(self.fit_intercept, name="fit_intercept")
        wish = None if self.regularisation is None else nonnegative(self.regularisation, name="regularisation")
        if self.method == "newton":
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
            inference=read_flag(self.inference, name="inference"),
            ridge=wish,
            people=table.people,
        )

    def _learn(self, plan: ObjectivePlan | NewtonPlan, table: Table) -> None:
        codes, steps = table.codes(self.classes_), table.steps()
        coordinates, rows = _prepared(plan, table, codes, steps)
        labels = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        fits = [_fit(plan, labelled(rows, codes, label)) for label in labels]
        turned = np.array([coordinates.turn @ fit.coefficients for fit in fits])
        self.intercept_, self.coef_ = turned[:, 0], turned[:, 1:]
        self._estimates = np.array([coordinates.turn @ fit.estimate for fit in fits])
        self._errors = np.array([_errors(coordinates, fit) for fit in fits])

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second class, or of each class against the rest."""
        low, high = self.frame_.limits.T
        values = (self._seen(X) * (high - low) + low + high) / 2
        margins: Floats = values @ self.coef_.T + self.intercept_
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class; one against the rest, they are scaled to add up to one."""
        chances = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        if chances.ndim == 1:
            return np.column_stack([1 - chances, chances])
        total = chances.sum(axis=1, keepdims=True)
        found: Floats = np.where(total > 0, chances / np.maximum(total, 1e-300), 1 / len(self.classes_))
        return found

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the chances."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        found: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return found


def _prepared(
    plan: ObjectivePlan | NewtonPlan, table: Table, codes: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[Coordinates, NDArray[np.int64]]:
    """Measure columns and lengths, and return the coordinates, which are public, with the rows in them."""
    preparation, inside = plan.preparation, codes >= 0
    moments = preparation.moments
    seen = moments.measure(coarser(steps, moments.reach), np.where(inside, 0, -1))
    low, high = table.frame.limits.T
    columns = standardised(seen, None if plan.has_intercept else -(low + high) / (high - low))
    standard = columns.look(steps)
    far = np.where(inside, lengths(standard), 0.0)
    (longest,) = preparation.lengths.chosen((far,), _spared(plan, seen.counts[0]))
    coordinates = Coordinates(table.frame, columns, longest, plan.has_intercept)
    return coordinates, coordinates.rows(standard, inside)


def _spared(plan: ObjectivePlan | NewtonPlan, count: float) -> float:
    """Return how many rows may be shortened: as many as move a gradient by about the noise on it."""
    return min(0.5 * plan.features / math.sqrt(plan.preparation.mu_squared), 0.25 * max(count, 0.0))


def _fit(plan: ObjectivePlan | NewtonPlan, data: Any) -> Fitted:
    return by_objective(plan, data) if isinstance(plan, ObjectivePlan) else by_newton(plan, data)


def _errors(coordinates: Coordinates, fit: Fitted) -> Floats:
    """Return the standard errors of intercept and slopes, not a number where no budget was kept for them."""
    if fit.covariance is None:
        return np.full(len(coordinates.turn), np.nan)
    if not np.isfinite(fit.covariance).all():
        return np.full(len(coordinates.turn), np.inf)
    turned = coordinates.turn @ fit.covariance @ coordinates.turn.T
    return np.asarray(np.sqrt(np.maximum(np.diag(turned), 0.0)))
