"""Logistic regression by objective perturbation or by noisy Newton steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from discreet.adaptive.bounded_memberships import SLOTS
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, nonnegative
from discreet.learn.convex.logistic_gradient import FINE, LOGISTIC, Labelled, RisingCurve, unit_scores
from discreet.learn.convex.softmax_gradient import SoftmaxRows
from discreet.learn.sklearn.base import PrivatePredictor, TrainingTable
from discreet.learn.sklearn.bounds import FeatureBounds, FeatureFrame
from discreet.learn.sklearn.linear_model import Summary, SummaryRow, read_method
from discreet.learn.sklearn.logistic_plan import (
    LogisticCoordinates,
    NewtonPlan,
    ObjectivePlan,
    standardised,
)
from discreet.learn.sklearn.moments import coarser
from discreet.learn.sklearn.validation import combined, rows_to_predict
from discreet.learn.sklearn.weights import class_shares, read_weights, shares_of_rows
from discreet.mechanisms.parameters import read_confidence, read_flag
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.functionals import quantile
from discreet.robust.least_squares import CAUTION
from discreet.robust.regression_design import HALF
from discreet.robust.reweighting import lengths
from discreet.schema.columns import Bounds

__all__ = ["Estimates", "Fits", "Ground", "LogisticFit", "LogisticRegression", "by_objective", "fitted", "prepared"]

FloatArray = NDArray[np.float64]
_METHODS = ("auto", "objective", "newton")
_MULTI_CLASS = ("auto", "ovr", "softmax")
_LARGEST_SOFTMAX = 4096  # Coefficients; second derivatives are matrices of so many rows.


class LogisticRegression(PrivatePredictor, ClassifierMixin, BaseEstimator):
    """Fit a logistic regression to rows within declared bounds.

    Columns are centred and scaled by noisy means and spreads, and long rows are shortened. Then

    - "objective", which "auto" takes, adds a random slope to the loss and tells the minimum: the least noise;
    - "newton" takes a few steps with noisy gradients and matrices: about twice the noise, but what it spends is
      Gaussian and composes exactly with what else a session spends.

    More than two classes are fitted one against the rest, each with its part of the budget, or, with
    `multi_class="softmax"` and where no intervals are asked for, in one multinomial regression for all of it.
    `regularisation` is a ridge in units of the squared longest row, where privacy sets the least. A part of the budget
    goes into intervals unless `inference=False`.

    Guarantee   (epsilon, delta), for everything that is measured together.
    Theorem     See `discreet.learn.convex.objective_perturbation`, and `Curvature` and `Scores` for "newton".
    Utility     noise of about 1 / mu on the gradient in units of the longest row; mu is about epsilon / 4.

    Args:
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        classes: The public classes.
        method: "auto", "objective" or "newton".
        regularisation: The ridge, in units of the squared longest row; the least that privacy needs if not said.
        fit_intercept: Whether there is an intercept.
        multi_class: With more than two classes, "ovr" fits each against the rest, and "softmax" all in one multinomial
            regression: less noise, no intervals, and only by "objective". "auto" takes it where intervals are not
            asked for, with `inference=False`.
        inference: Whether a tenth of the budget pays for intervals; with weights it is a fifth.
        weight_bounds: The public bounds (0, high) of `sample_weight`, which is private and clamped to them.
        class_weight: A public weight for each class; 1 for those that are not named.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 1000)[:, None]
        >>> y = (X[:, 0] > 0).astype(int)
        >>> model = dp.learn.sklearn.LogisticRegression(
        ...     epsilon=5, delta=1e-6, bounds=[(-1, 1)], classes=[0, 1]
        ... ).fit(X, y)
        >>> model.predict_proba(X).shape
        (1000, 2)
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
        bounds: FeatureBounds | None = None,
        classes: Any = None,
        method: str = "auto",
        regularisation: Number | None = None,
        fit_intercept: bool = True,
        multi_class: str = "auto",
        inference: bool = True,
        weight_bounds: Bounds | None = None,
        class_weight: Mapping[Any, Number] | None = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.method = method
        self.regularisation = regularisation
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.inference = inference
        self.weight_bounds = weight_bounds
        self.class_weight = class_weight
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Pay for the whole fit, then read the rows; with `unit`, a person's loss is the mean over their rows."""
        table = self._table(X, y, unit=unit, max_rows=max_rows)
        weighing = read_weights(sample_weight, self.weight_bounds, table, has_session=self.session is not None)
        classes = table.classes(self.classes, has_session=self.session is not None)
        if len(classes) < 2:
            raise InvalidParameter("a classifier needs at least two classes; there is one class, or none, here")
        table = table.filled(self._most_slots(len(classes)))
        shares = class_shares(self.class_weight, classes)
        plan = self._plan(table, len(classes), weighted=weighing is not None or shares is not None)
        event = table.event_of(plan.event) if isinstance(plan, NewtonPlan) else plan.event
        with self._paid(event, delta=self._delta(table.people), whom=table.whom):
            units, codes = table.units() if plan.slots > 1 else None, table.codes(classes)
            weights = shares_of_rows(weighing, shares, table, codes)
            fits = fitted(plan, table.frame, table.steps(), codes, units, weights)
            self.classes_, self.frame_, self.method_ = classes, table.frame, plan.method
            self.intercept_, self.coef_ = fits.coefficients[:, 0], fits.coefficients[:, 1:]
            self._estimates = Estimates(fits.estimates, fits.errors, fits.hidden, is_softmax=plan.method == "softmax")
            return self

    def _is_softmax(self, classes: int) -> bool:
        """Tell whether all classes are fitted in one problem; two classes are so anyway."""
        if self.multi_class not in _MULTI_CLASS:
            raise InvalidParameter(f"multi_class must be one of {', '.join(_MULTI_CLASS)}")
        is_large = classes * (self.n_features_in_ + 1) > _LARGEST_SOFTMAX
        is_newton = read_method(self.method, _METHODS) == "newton"
        if self.multi_class == "auto":
            return not (classes == 2 or is_newton or is_large or read_flag(self.inference, name="inference"))
        is_softmax = self.multi_class == "softmax" and classes > 2
        if is_softmax and is_newton:
            raise InvalidParameter('multi_class="softmax" is fitted by method="objective"')
        if is_softmax and is_large:
            raise InvalidParameter(
                f'multi_class="softmax" has at most {_LARGEST_SOFTMAX} coefficients, features times classes: '
                'use "ovr", or fewer features'
            )
        return is_softmax

    def _most_slots(self, classes: int) -> int:
        """Return how many rows of a person are worth their price: corners of minima multiply over problems and slots.

        A slot of softmax has as many corners as there are classes; 2^16 of all slots together cost about a quarter.
        """
        if read_method(self.method, _METHODS) == "newton" or classes == 2:
            return SLOTS
        return max(1, int(SLOTS / math.log2(classes)) if self._is_softmax(classes) else SLOTS // classes)

    def _plan(self, table: TrainingTable, classes: int, *, weighted: bool) -> ObjectivePlan | NewtonPlan:
        is_softmax = self._is_softmax(classes)
        features, problems = len(table.frame.bounds), 1 if classes == 2 or is_softmax else classes
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
                noise=self._row_gaussian(table),
                slots=table.max_rows,
                weighted=weighted,
            )
        return ObjectivePlan.for_budget(
            self._epsilon(),
            self._delta(table.people),
            relation=self._relation(),
            features=features,
            problems=problems,
            has_intercept=intercept,
            inference=inference and not is_softmax,
            ridge=wish,
            people=table.people,
            slots=table.max_rows,
            weighted=weighted,
            outputs=classes if is_softmax else 1,
        )

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of the second class, or of each class against the rest, for features in their bounds.

        Those of softmax are beside the mean of all classes.
        """
        check_is_fitted(self)
        values = rows_to_predict(self, X)
        inside: FloatArray = np.clip(values, *self.frame_.limits.T)
        margins = combined(inside, self.coef_.T) + self.intercept_
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the chance of each class; where each was fitted against the rest, they are scaled to add up to one."""
        margins = self.decision_function(X)
        if self.method_ == "softmax":
            powers = np.exp(np.maximum(margins - margins.max(axis=1, keepdims=True), -60.0))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)
        chances = 1 / (1 + np.exp(-np.clip(margins, -30, 30)))
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


# --- logistic_fits: The fits of a private logistic regression: from clamped rows to coefficients and their errors. ---


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_LARGEST: Final = 2.0**19  # Of a coefficient; beyond it steps of 2^-42 would not fit 63 bits.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """All problems, one row each, the intercept first, in the units of the data. All of it is public."""

    coefficients: Floats  # to predict with
    estimates: Floats  # without the pull of a ridge
    errors: Floats | None  # standard errors of the estimates
    hidden: Floats | None = None  # a direction of the standardised columns that the noise hides


@final
@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """One problem, the intercept first, in the units of the data. All of it is public."""

    coefficients: Floats
    estimate: Floats
    errors: Floats | None  # by sampling and by noise; infinite where they cannot be told
    hidden: Floats | None = None  # the direction that the noise hides most, where it hides any


def fitted(
    plan: ObjectivePlan | NewtonPlan,
    frame: FeatureFrame,
    steps: Integers,
    codes: Integers,
    units: Integers | None = None,
    weights: Integers | None = None,
) -> Fits:
    """Measure columns and lengths, then fit one problem after the other. It must have been paid for.

    `units` are whose each row is, where each unit fills the slots of the plan; `weights` are shares of the heaviest.
    """
    if weights is not None:
        # Whoever made them, none is heavier than the heaviest that noise is for, and one of nothing is not there.
        weights = np.clip(weights, 0, HALF)
        codes = np.where(weights > 0, codes, -1)
    if plan.squares is not None and units is None:
        units = np.arange(len(codes))
    ground = replace(prepared(plan, frame, steps, codes), units=units, weights=weights)
    if isinstance(plan, ObjectivePlan) and plan.outputs > 1:
        return _by_softmax(plan, ground, codes)
    labels = [1] if plan.problems == 1 else range(plan.problems)
    fits = [_fit(plan, ground, (codes == label).astype(np.int64)) for label in labels]
    errors = [fit.errors for fit in fits if fit.errors is not None]
    return Fits(
        coefficients=np.array([fit.coefficients for fit in fits]),
        estimates=np.array([fit.estimate for fit in fits]),
        errors=np.array(errors) if errors else None,
        hidden=next((fit.hidden for fit in fits if fit.hidden is not None), None),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Standardised rows, and coordinates in which they lie in a ball. The rows are private."""

    coordinates: LogisticCoordinates
    standard: Floats = field(repr=False)
    inside: NDArray[np.bool_] = field(repr=False)
    units: Integers | None = field(default=None, repr=False)
    weights: Integers | None = field(default=None, repr=False)
    curve: RisingCurve = LOGISTIC
    count: float = 0.0  # about how many rows there are, as was told

    def labelled(self, coordinates: LogisticCoordinates, labels: Integers) -> Labelled:
        return Labelled(self.rows(coordinates), labels, self.curve, self.weights)

    def rows(self, coordinates: LogisticCoordinates) -> Integers:
        return coordinates.rows(self.standard, self.inside)


def prepared(plan: ObjectivePlan | NewtonPlan, frame: FeatureFrame, steps: Integers, codes: Integers) -> Ground:
    """Choose coordinates by noisy means, spreads and lengths.

    A row whose label is no class adds nothing to a fit. It is counted, in the middle of the bounds: under replace-one
    the number of rows is public, and how many of them have such labels is not.
    """
    preparation, inside = plan.preparation, codes >= 0
    moments = preparation.moments
    steps = np.where(inside[:, None], steps, 0)
    seen = moments.measure(coarser(steps, moments.reach), np.zeros(len(steps), dtype=np.int64))
    low, high = frame.limits.T
    columns = standardised(seen, None if plan.has_intercept else -(low + high) / (high - low))
    standard = columns.look(steps)
    far = np.where(inside, lengths(standard), 0.0)
    (longest,) = preparation.lengths.chosen((far,), _spared(plan, float(seen.counts[0])))
    coordinates = LogisticCoordinates(frame, columns, longest, plan.constant)
    return Ground(coordinates, standard, inside, count=float(seen.counts[0]))


def _spared(plan: ObjectivePlan | NewtonPlan, count: float) -> float:
    """Return how many rows may be shortened: as many as move a gradient by about its noise, or as sampling does."""
    people = max(count, 0.0)
    sampled = math.sqrt(people * plan.slots)
    return min(max(plan.features / math.sqrt(plan.preparation.mu_squared), sampled), people / 4)


def _fit(plan: ObjectivePlan | NewtonPlan, ground: Ground, labels: Integers) -> LogisticFit:
    return by_objective(plan, ground, labels) if isinstance(plan, ObjectivePlan) else _by_newton(plan, ground, labels)


def by_objective(plan: ObjectivePlan, ground: Ground, labels: Integers) -> LogisticFit:
    """Find the minimum with a random slope, and measure the matrix there if intervals are wanted."""
    objective, matrix, plain = plan.objective, plan.curvature, ground.coordinates
    found = np.array([float(value) for value in objective.release(ground.labelled(plain, labels))])
    if matrix is None:
        return LogisticFit(plain.turn @ found, plain.turn @ found, None)
    even = replace(plain, share=plan.even_constant)
    factors = even.next_to(plain)
    place = found * factors
    data = ground.labelled(even, labels)
    curvature = matrix.measure(data, _steps(place))
    inverse, hidden = _inverse(curvature, matrix.deviation)
    # At the minimum H (theta - truth) = score - slope - ridge theta, to first order: take the last term away.
    pull = inverse @ (float(objective.ridge) * place / factors**2)
    noise = 1 / (float(objective.mu_squared) * factors**2) + _blurred(matrix.deviation, pull)
    last = float(objective.output_variance) * 4.0**-FINE * factors**2
    meat = _score_squares(plan, data, place, ground.units, curvature)
    covariance = inverse @ (meat + np.diag(noise)) @ inverse + np.diag(last)
    errors = _errors(even.turn, covariance, hidden is None)
    return LogisticFit(plain.turn @ found, even.turn @ (place + pull), errors, hidden)


def _by_softmax(plan: ObjectivePlan, ground: Ground, codes: Integers) -> Fits:
    """Find the minimum of all classes together; what is common to them predicts nothing, and is taken away."""
    data = SoftmaxRows(ground.rows(ground.coordinates), codes, plan.outputs, ground.weights)
    found = np.array([float(value) for value in plan.objective.release(data)]).reshape(plan.outputs, -1)
    turned = (found - found.mean(axis=0)) @ ground.coordinates.turn.T
    return Fits(turned, turned, None)


def _by_newton(plan: NewtonPlan, ground: Ground, labels: Integers) -> LogisticFit:
    """Take early steps over the matrix at zero, which no curvature exceeds, and a last one over that of the fit."""
    data, turn = ground.labelled(ground.coordinates, labels), ground.coordinates.turn
    place, gram = np.zeros(plan.dimension), plan.gram
    first = _raised(gram.measure(data, _steps(place)), gram.deviation)
    for scores in plan.early:
        place = place + np.linalg.solve(first, scores.measure(data, _steps(place)))
    matrix, last = plan.matrix, plan.last
    curvature = matrix.measure(data, _steps(place))
    move = np.asarray(np.linalg.solve(_raised(curvature, matrix.deviation), last.measure(data, _steps(place))))
    inverse, hidden = _inverse(curvature, matrix.deviation)
    noise = last.deviation**2 + _blurred(matrix.deviation, move)
    meat = _score_squares(plan, data, place + move, ground.units, curvature)
    covariance = inverse @ (meat + noise * np.eye(plan.dimension)) @ inverse
    found = turn @ (place + move)
    return LogisticFit(found, found, _errors(turn, covariance, hidden is None), hidden)


def _score_squares(
    plan: ObjectivePlan | NewtonPlan, data: Labelled, place: Floats, units: Integers | None, curvature: Floats
) -> Floats:
    """Return how scores vary: as the curvature where rows are independent and alike, else measured by unit. [LZ86]

    The mean of the scores of a unit lies in the unit ball, as the score of one row does.
    """
    squares = plan.squares
    if squares is None or units is None:
        return curvature
    scores, longest = unit_scores(data, _steps(place), units)
    radius = longest * plan.slots
    measured = squares.measure(scores, np.full(len(scores), radius), radius)
    values, vectors = np.linalg.eigh(measured)
    # As for least squares: somewhat larger than it looks, for noise may have made it smaller.
    found = (vectors * (np.maximum(values, 0.0) + 2 * CAUTION * squares.deviation)) @ vectors.T
    return np.asarray(found * plan.slots**2, dtype=np.float64)


def _steps(place: Floats) -> Integers:
    return np.rint(np.clip(place, -_LARGEST, _LARGEST) * 2.0**FINE).astype(np.int64)


def _blurred(deviation: float, move: Floats) -> float:
    """Return the variance of each entry of noise * move, for noise with half the variance off the diagonal."""
    return float(deviation**2 * (move @ move) / 2)


def _length(deviation: float, size: int) -> float:
    """Return about how long the noise on a matrix is: sqrt(2 size) deviations."""
    return deviation * math.sqrt(2 * size)


def _raised(matrix: Floats, deviation: float) -> Floats:
    """Raise the eigenvalues that drown in the noise, so that no step is too long."""
    values, vectors = np.linalg.eigh(matrix)
    raised: Floats = (vectors * np.maximum(values, max(2 * _length(deviation, len(values)), 1e-9))) @ vectors.T
    return raised


def _inverse(matrix: Floats, deviation: float) -> tuple[Floats, Floats | None]:
    """Invert a noisy matrix, and return its weakest direction unless all eigenvalues stand out of the noise.

    In one direction the noise has one deviation, so that an eigenvalue above its length is known to a part.
    """
    values, vectors = np.linalg.eigh(matrix)
    least = max(_length(deviation, len(values)), 3 * deviation)
    inverse: Floats = (vectors / np.maximum(values, least)) @ vectors.T
    return inverse, None if values.min() >= least else vectors[:, 0]


def _errors(turn: Floats, covariance: Floats, is_known: bool) -> Floats:
    """Return standard errors in the units of the data. For a logistic model the scores vary as the matrix says."""
    if not is_known:
        return np.full(len(turn), math.inf)
    return np.asarray(np.sqrt(np.maximum(np.diag(turn @ covariance @ turn.T), 0.0)))


# --- logistic_summary: The coefficients of a logistic regression with their errors, and what may be said of them. ---


_COVERS = (
    "Intervals are for the source of the rows if it is such a model, sampling and noise together: of many such fits to "
    "many rows, that share covers."
)
_NOT_ASKED = "no budget was kept for them, say inference=True."
_SOFTMAX = 'none are told of softmax, and no budget is kept for them: say multi_class="ovr".'
_DROWNED = (
    "the noise hides how much the rows tell in some direction. Columns that nearly follow from others make one: of "
    "the columns of a coded category drop the commonest (OneHotEncoder(drop=[…])), and leave out what others tell; "
    "else use more rows or a larger budget."
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Coefficients in the units of the data, one row a problem, the intercept first. All of it is public."""

    values: Floats
    errors: Floats | None  # standard errors, infinite where none can be told; nothing where they were not asked for
    hidden: Floats | None = None  # a direction of the standardised columns that the noise hides
    is_softmax: bool = False

    @property
    def reason(self) -> str | None:
        """Why there are no intervals, if there are none."""
        if self.errors is None:
            return _SOFTMAX if self.is_softmax else _NOT_ASKED
        return None if np.isfinite(self.errors).all() else _DROWNED

    @property
    def _lack(self) -> str:
        return "No intervals" if self.errors is None else "Intervals are unbounded"

    def _direction(self, names: Sequence[str]) -> str:
        """Name the columns that make up most of the hidden direction."""
        if self.hidden is None or not len(self.hidden) == self.values.shape[1] == len(names):
            return ""
        sizes = np.abs(self.hidden)
        chief = [names[place] for place in np.argsort(-sizes)[:6] if sizes[place] >= sizes.max() / 2]
        return f" Hidden most, together: {', '.join(chief)}."

    def intervals(self, confidence: Fraction) -> Floats:
        """Return the ends of an interval for each coefficient."""
        assert self.errors is not None
        # What noise hides in one direction is in every coefficient, more or less.
        errors = self.errors if self.reason is None else np.full_like(self.errors, np.inf)
        reach = quantile((1 + float(confidence)) / 2) * errors
        return np.stack([self.values - reach, self.values + reach], axis=-1)

    def summary(self, *, title: str, cost: str, confidence: Fraction, names: Sequence[str]) -> Summary:
        """Write the table."""
        ends: list[tuple[Fraction, Fraction] | None] = [None] * len(names)
        if self.reason is None:
            pairs = self.intervals(confidence).reshape(-1, 2).tolist()
            ends = [(Fraction(low), Fraction(high)) for low, high in pairs]
        values = map(Fraction, self.values.reshape(-1).tolist())
        return Summary(
            title=title,
            cost=cost,
            confidence=confidence,
            rows=tuple(
                SummaryRow(name=name, coefficient=value, interval=pair)
                for name, value, pair in zip(names, values, ends, strict=True)
            ),
            covers=_COVERS if self.reason is None else f"{self._lack}: {self.reason}{self._direction(names)}",
            is_unbounded=self.reason is not None and self.errors is not None,
        )
