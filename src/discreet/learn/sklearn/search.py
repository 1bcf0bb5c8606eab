"""Private hyper-parameter search: every candidate is fitted on some rows, and one is chosen by the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from inspect import signature
from typing import Any, ClassVar, NoReturn, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet import noise
from discreet.adaptive.bounded_memberships import UnitRows, unit_codes, unit_rows
from discreet.errors import DiscreetError, InvalidParameter, Refused
from discreet.exact import Number, exact, positive_integer
from discreet.frames.column import as_column, taken
from discreet.learn.random_stopping import RandomStopping
from discreet.learn.secret_chance import with_own_chance
from discreet.learn.sklearn.base import PrivatePredictor
from discreet.learn.sklearn.bounds import Pair, read_pair
from discreet.learn.sklearn.pipeline_guard import answered_for
from discreet.learn.sklearn.validation import (
    BEST,
    FOUND_IN_Y,
    added_up,
    named,
    nearness,
    read_classes,
    rightness,
    rows_to_predict,
)
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise, Sensitivity
from discreet.mechanisms.grid import nearest_floats, number_rows
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.mechanisms.parameters import read_share
from discreet.privacy import calibrate, renyi
from discreet.privacy.events import Composed, Event, Gaussian, Parallel
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["Prepaid", "PrivateSearch", "prepared", "private_parameters", "quote", "together"]

Bools: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]

_CHOICE = Fraction(1, 10)  # Of epsilon, where a row may count for the fits and for the choice.
_POINTS = Sensitivity.scalar(BEST)  # Of what a fit scores: a row, or a unit, brings from 0 to BEST.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchPlan:
    """All fits with their prices, and the choice among them."""

    fits: tuple[Any, ...]  # unfitted estimators
    prices: tuple[list[Event], ...]
    chooser: PermuteAndFlip

    @property
    def event(self) -> Event:
        """What everything costs. A row is in the fits or in the choice, by a coin of its own.

        Under add-remove that makes two cells of a partition. Under replace-one, where a replaced row keeps its coin but
        cells are billed as if it might not, both are paid for by everybody.
        """
        if self.chooser.relation is Relation.ADD_REMOVE:
            return Parallel([self.dearest, self.chooser.event])
        return self.dearest

    @property
    def dearest(self) -> Event:
        """What the fits cost, with the choice where everybody pays for it."""
        fits = [event for price in self.prices for event in price]
        return together(fits if self.chooser.relation is Relation.ADD_REMOVE else [*fits, self.chooser.event])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _StoppedPlan:
    """Candidates with their prices, of which each run draws one, and the noise with which its points are told."""

    fits: tuple[Any, ...]  # unfitted estimators
    prices: tuple[list[Event], ...]
    rule: RandomStopping
    points: Noise
    relation: Relation

    @property
    def event(self) -> Event:
        """What the best run costs. Given the coins, a row is in the fits of all runs or in the points of all."""
        if self.relation is Relation.ADD_REMOVE:
            return Parallel([self.dearest, self.rule.event([self.points.event(_POINTS)])])
        return self.dearest

    @property
    def dearest(self) -> Event:
        """What the fits cost, with the points where everybody pays for both."""
        told = [] if self.relation is Relation.ADD_REMOVE else [self.points.event(_POINTS)]
        return self.rule.event(together([*price, *told]) for price in self.prices)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SearchRows:
    """The places of the rows that are fitted, or of those that are scored, and whose they are. Private."""

    places: Integers = field(repr=False)
    units: Integers | None = field(default=None, repr=False)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SearchTable:
    """The rows that are fitted and those that are scored, with their targets and whose they are. Private."""

    fitted: tuple[Any, list[Any]] = field(repr=False)
    scored: tuple[NDArray[np.float64], list[Any]] = field(repr=False)
    units: tuple[Integers | None, Integers | None] = field(repr=False)
    whom: UnitRows | None
    within: Pair | None  # the bounds of the target, for a regressor


class PrivateSearch(PrivatePredictor, MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator with each of some parameters, and keep the fit that predicts best, for one known price.

    `candidates` is a grid as for GridSearchCV, or a list of settings. A secret coin puts a share `holdout` of the rows
    aside, to choose by. The epsilons of the estimator, and of the steps of a pipeline, only say how they compare: they
    are scaled so that everything together costs `epsilon` and `delta`.

    With `runs` not all candidates are fitted once: a secret number of runs, so many on average, each draw a candidate,
    fit it and score it with noise, and the best is kept. Fifty candidates then cost about as much as two or three fits,
    and nobody is told how many runs there were; only the time it took hints at that.

    Guarantee   (epsilon, delta), for all fits and the choice together; known, and charged, before anything is read.
    Theorem     Given the coins, a row is in all fits or in the choice. The fits compose; the choice is permute-and-flip
                on the number of right predictions (or how near they are), which a row moves one way, by at most one.
                What holds given any coins holds for the mixture. Units have one coin for all their rows, fits that
                protect units, and the mean of the points of their rows. [MS20, DMNS06]
                With `runs`: `RandomStopping` of one run, which is a fit, or points with noise. [LT19, PS22]
    Utility     the chosen fit predicts at most (1 / epsilon) ln(candidates / b) rows worse than the best, with chance
                1 - b; each fit has about 1 / sqrt(candidates) of the budget, so few candidates are better than many.
                With `runs`, each fit has about a third of epsilon, however many candidates there are: better from
                about ten of them on, at the risk that the best is never drawn (one half at as many runs as candidates).

    Args:
        estimator: The private estimator, or a pipeline with one.
        candidates: The settings to try: a grid as for GridSearchCV, or a list.
        epsilon: What all fits and the choice together spend.
        delta: The delta that goes with epsilon.
        holdout: The share of rows to choose by.
        target_bounds: The public bounds of the target, for a regressor.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.
        runs: How many runs to make on average, by random stopping; every candidate once if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(-1, 1, 1000)[:, None]
        >>> y = (X[:, 0] > 0).astype(int)
        >>> model = dp.learn.sklearn.GaussianNB(epsilon=1, delta=1e-6, bounds=[(-1, 1)], classes=[0, 1])
        >>> grid = {"var_smoothing": [1e-4, 1e-2]}
        >>> search = dp.learn.sklearn.PrivateSearch(model, grid, epsilon=5, delta=1e-6).fit(X, y)
        >>> search.predict(X).shape
        (1000,)
    """

    _stored_as: ClassVar[str] = "PrivateSearch"

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        epsilon: Number,
        delta: Number | None = None,
        holdout: Number = 0.1,
        target_bounds: Any = None,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
        runs: Number | None = None,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.epsilon = epsilon
        self.delta = delta
        self.holdout = holdout
        self.target_bounds = target_bounds
        self.relation = relation
        self.public_rows = public_rows
        self.session = session
        self.runs = runs

    def fit(self, X: Any, y: Any, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Price, charge, fit all candidates and choose one; with `unit`, ids one a row, whole units are protected."""
        whom = unit_rows(unit, max_rows, self._relation())
        self._check_encoders()
        if self.session is None:
            X, y = self._checked(X, y, y_numeric=False)
        else:
            self._look(X, y)
        settings = self._settings()
        within = None if is_classifier(self.estimator) else self._within()
        found = read_classes(FOUND_IN_Y, y, has_session=False).tolist() if self._finds_classes() else None
        self._check_labels(y)
        aside = noise.bernoulli(read_share(self.holdout, name="holdout"), len(X)).astype(bool)
        plan = answered_for(lambda: self._planned(settings, rows=int(len(X) - aside.sum()), classes=found, whom=whom))
        with self._paid(plan.event, delta=self._delta_or_none() or Fraction(0), whom=whom):
            table = self._read(X, y, self._divided(whom, aside), whom, within)
            self.best_index_, best = answered_for(lambda: self._chosen(plan, table))
            self.best_params_ = settings[self.best_index_]
            self.best_estimator_ = self._ours(best)
            return self

    def _chosen(self, plan: _SearchPlan | _StoppedPlan, table: _SearchTable) -> tuple[int, Any]:
        """Fit and score candidates as was paid for; return which one is chosen, and its fit."""
        if isinstance(plan, _SearchPlan):
            fits = [_fitted(fit, price, table) for fit, price in zip(plan.fits, plan.prices, strict=True)]
            index = plan.chooser.release([_score(fit, table) for fit in fits]).value
            return index, fits[index]

        def run() -> tuple[int, int, Any]:
            index = noise.uniform(len(plan.fits))
            with with_own_chance():  # From a known seed a fit's first weights would tell which run it was.
                fit = _fitted(clone(plan.fits[index]), plan.prices[index], table)
            return _score(fit, table) + plan.points.draw(_POINTS)[0], index, fit

        _, index, best = plan.rule.best(run, lambda outcome: outcome[0])
        return index, best

    def _divided(self, whom: UnitRows | None, aside: Bools) -> tuple[_SearchRows, _SearchRows]:
        """Divide rows by their coins, or units by one coin each: all rows of a unit go one way. This is private."""
        if whom is None:
            return _SearchRows(np.flatnonzero(~aside)), _SearchRows(np.flatnonzero(aside))
        places = whom.kept(len(aside))
        units = unit_codes(taken(whom.ids(), places))
        share = read_share(self.holdout, name="holdout")
        coins = noise.bernoulli(share, int(units.max(initial=-1)) + 1).astype(bool)[units]
        return _SearchRows(places[~coins], units[~coins]), _SearchRows(places[coins], units[coins])

    def _check_encoders(self) -> None:
        """Refuse steps that code texts: candidates are handed numbers, and a text would be a gap."""
        for step in self.estimator.get_params(deep=True).values():
            if isinstance(step, (OneHotEncoder, OrdinalEncoder)) and not _codes_numbers(step):
                raise Refused(
                    f"a search hands rows to its candidates as numbers, and {type(step).__name__} codes texts",
                    reason="a text would be a gap in every candidate",
                    way_out="code the table before the search, with declared categories, which learns nothing from "
                    'the rows: coded = coder.set_output(transform="pandas").fit_transform(X), and search over the '
                    "steps behind it",
                )

    def _settings(self) -> list[dict[str, Any]]:
        given = self.candidates
        if isinstance(given, Mapping):
            given = list(ParameterGrid(given))
        if not isinstance(given, Sequence) or not all(isinstance(one, Mapping) for one in given) or not given:
            raise InvalidParameter("candidates must be a grid {name: [values]} or a list of {name: value}")
        return [dict(one) for one in given]

    def _within(self) -> Pair:
        """Return the bounds of the target, said here or by the estimator."""
        values = self.estimator.get_params(deep=True)
        own = [values[key] for key in private_parameters(self.estimator, "target_bounds")]
        declared = [pair for pair in (self.target_bounds, *own) if pair is not None]
        if not declared:
            raise Refused(
                "choosing among regressors needs target_bounds=(low, high)",
                reason="errors are scored relative to the width of these bounds",
                way_out="declare what is publicly known of the target",
            )
        return read_pair(declared[0], "target_bounds")

    def _delta_or_none(self) -> Fraction | None:
        return None if self.delta is None else self._delta(self.public_rows)

    def _finds_classes(self) -> bool:
        """Tell whether the caller says that the labels which occur are public; no session accepts that."""
        values = self.estimator.get_params(deep=True)
        finds = any(_is_found(values[key]) for key in private_parameters(self.estimator, "classes"))
        if finds and self.session is not None:
            read_classes(FOUND_IN_Y, None, has_session=True)  # Refuses, and says how to declare them.
        return finds

    def _check_labels(self, y: Any) -> None:
        """Refuse, where nobody pays, labels that are none of the declared classes, before candidates skip such rows."""
        values = self.estimator.get_params(deep=True)
        for key in private_parameters(self.estimator, "classes"):
            if self.session is None and values[key] is not None:
                read_classes(values[key], y, has_session=False)

    def _planned(self, settings: list[dict[str, Any]], **known: Any) -> _SearchPlan | _StoppedPlan:
        """Scale all candidates so that the whole search spends what it may."""
        make = self._plan if self.runs is None else self._stopped_plan
        plan = make(settings, **known)
        _ = plan(Fraction(1))  # Refuses parameters that no budget helps.
        return plan(
            calibrate(
                lambda factor: plan(factor).dearest,
                epsilon=self._epsilon(),
                delta=self._delta_or_none() or 0,
                relation=self._relation(),
                increasing=True,
            )
        )

    def _plan(self, settings: list[dict[str, Any]], **known: Any) -> Callable[[Fraction], _SearchPlan]:
        relation, spent = self._relation(), self._epsilon()
        chooser = PermuteAndFlip(
            epsilon=spent if relation is Relation.ADD_REMOVE else spent * _CHOICE,
            sensitivity=Fraction(BEST),
            candidates=len(settings),
            relation=relation,
            # A row comes with its own points, none of them negative: it moves all scores one way.
            monotone=relation is Relation.ADD_REMOVE,
        )
        priced = self._priced(settings, len(settings), **known)
        return lambda factor: _SearchPlan(**priced(factor), chooser=chooser)

    def _stopped_plan(self, settings: list[dict[str, Any]], **known: Any) -> Callable[[Fraction], _StoppedPlan]:
        relation, delta = self._relation(), self._delta_or_none()
        rule = RandomStopping.for_mean(self.runs)  # type: ignore[arg-type]  # It is said, or this is not called.
        spent = self._epsilon() * (1 if relation is Relation.ADD_REMOVE else _CHOICE)
        points: Noise = LaplaceNoise(epsilon=spent / (2 + rule.shape))
        if delta is not None:
            multiplier = calibrate(lambda noise: rule.event([Gaussian(noise)]), epsilon=spent, delta=delta)
            points = GaussianNoise(squared_multiplier=multiplier**2)
        priced = self._priced(settings, 1, **known)

        def plan(factor: Fraction) -> _StoppedPlan:
            made = _StoppedPlan(**priced(factor), rule=rule, points=points, relation=relation)
            _require_divergences(made)
            return made

        return plan

    def _priced(
        self, settings: list[dict[str, Any]], many: int, *, rows: int, classes: Any, whom: UnitRows | None = None
    ) -> Callable[[Fraction], dict[str, Any]]:
        """Return what makes candidates and their prices, for a factor of their epsilons."""
        delta, size = self._delta_or_none(), rows if self._relation() is Relation.REPLACE_ONE else 1
        columns, names = self.n_features_in_, self._names()

        def priced(factor: Fraction) -> dict[str, Any]:
            fits = tuple(self._candidate(one, classes, factor, delta, many) for one in settings)
            prices = tuple(quote(fit, rows=size, columns=columns, names=names, whom=whom) for fit in fits)
            return {"fits": fits, "prices": prices}

        return priced

    def _candidate(
        self, setting: dict[str, Any], classes: Any, factor: Fraction, delta: Fraction | None, many: int
    ) -> Any:
        estimator = clone(self.estimator)
        if classes is not None:
            estimator.set_params(**dict.fromkeys(private_parameters(estimator, "classes"), classes))
        estimator.set_params(**setting)
        if self.runs is not None:
            _silence(estimator)
        steps = max(1, len(private_parameters(estimator, "session")))
        # Half of delta is left for what turns Gaussian noise, or a composition, into an epsilon.
        each = None if delta is None else delta / (2 * many * steps)
        return prepared(estimator, factor=factor, delta=each, relation=self.relation, **self._trained())

    def _trained(self) -> dict[str, int | None]:
        """Return about how many rows are fitted, as a parameter, where that is publicly known."""
        if self._relation() is Relation.REPLACE_ONE:
            return {"public_rows": None}  # It is the number of rows that are there.
        if self.public_rows is None:
            return {}
        rows = positive_integer(self.public_rows, name="public_rows")
        return {"public_rows": max(1, round(rows * (1 - read_share(self.holdout, name="holdout"))))}

    def _read(
        self, X: Any, y: Any, parts: tuple[_SearchRows, _SearchRows], whom: UnitRows | None, within: Pair | None
    ) -> _SearchTable:
        """Read rows as floats, NaN where there is no number, and targets as they are. This is private."""
        numbers, (fitted, scored) = number_rows(X), parts
        return _SearchTable(
            (named(numbers[fitted.places], self._names()), _picked(y, fitted)),
            (numbers[scored.places], _picked(y, scored)),
            (fitted.units, scored.units),
            whom,
            within,
        )

    def _ours(self, fit: Any) -> Any:
        """Hand the fit the session of this search: whoever fits or scores it again is charged or refused."""
        return fit.set_params(**dict.fromkeys(private_parameters(fit, "session"), self.session))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the chosen fit."""
        classes: NDArray[Any] = self.best_estimator_.classes_
        return classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict by the chosen fit."""
        check_is_fitted(self)
        found: NDArray[Any] = self.best_estimator_.predict(self._like_fitted(X))
        return found

    @available_if(lambda search: hasattr(search.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of each class by the chosen fit."""
        check_is_fitted(self)
        found: NDArray[np.float64] = self.best_estimator_.predict_proba(self._like_fitted(X))
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score the chosen fit as scikit-learn does; refused with a session."""
        if self.session is not None:
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        return float(self.best_estimator_.score(self._like_fitted(X), y, sample_weight=sample_weight))

    def _like_fitted(self, X: Any) -> Any:
        return named(rows_to_predict(self, X), self._names())

    def _names(self) -> Any:
        """Return the names of the columns, where they have any."""
        return getattr(self, "feature_names_in_", None)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        return tags


def _silence(estimator: Any) -> None:
    """Let fits show nothing and call nobody back while they run: whoever watches progress would count the runs.

    Copies of an estimator share its callbacks, so one that keeps a log would have a line for every run.
    """
    estimator.set_params(**dict.fromkeys(private_parameters(estimator, "verbose"), False))
    for part in (estimator, *estimator.get_params(deep=True).values()):
        if isinstance(part, BaseEstimator) and hasattr(part, "set_callbacks"):
            part.set_callbacks()


def _fitted(fit: Any, price: list[Event], table: _SearchTable) -> Any:
    """Fit a candidate on the rows that are not put aside; it spends what was quoted or is refused."""
    payer = Prepaid(list(price), _account(table.whom))
    given = _units_for(fit, table.whom, table.units[0])
    fit.set_params(**dict.fromkeys(private_parameters(fit, "session"), payer))
    return fit.fit(*table.fitted, **given)


def _score(fit: Any, table: _SearchTable) -> int:
    """Return how well a fit does on the rows that were put aside. This is private."""
    (rows, target), units = table.scored, table.units[1]
    if table.within is None:
        return added_up(rightness(fit, rows, target), units)
    return added_up(nearness(fit, rows, nearest_floats(target), table.within), units)


def _require_divergences(plan: _StoppedPlan) -> None:
    """Refuse fits that reveal something with a small chance: no divergence of theirs has a bound."""
    if not math.isfinite(renyi(plan.dearest, 2, relation=plan.relation)):
        raise Refused(
            "random stopping is priced by divergences, and a candidate may reveal something with a chance of delta",
            reason="the best of many runs would reveal it with as many times that chance",
            way_out="leave runs out, which fits every candidate once and pays for all",
        )


def _account(whom: UnitRows | None) -> str:
    """Return whom candidates charge for: units, or rows where one row of each unit is handed to them."""
    return whom.noun if whom is not None and whom.max_rows > 1 else "row"


def _units_for(estimator: Any, whom: UnitRows | None, units: Any) -> dict[str, Any]:
    """Return what the fit of an estimator, or of each step of a pipeline, is told of units with several rows."""
    if whom is None or whom.max_rows == 1:
        return {}
    said: dict[str, Any] = {}
    for name in private_parameters(estimator, "session"):
        step = name.removesuffix("session")
        fitted = estimator.get_params(deep=True)[step.removesuffix("__")] if step else estimator
        if step.count("__") > 1 or "unit" not in signature(fitted.fit).parameters:
            raise Refused(
                "a search with several rows of a unit is over estimators whose fit takes unit=…, alone or as steps "
                "of a Pipeline",
                reason="scikit-learn hands the ids of rows to the steps of a pipeline, and not to parts of these",
                way_out="leave max_rows out: then one row of each unit counts, drawn in secret",
            )
        said |= {f"{step}unit": {whom.noun: units}, f"{step}max_rows": whom.max_rows}
    return said


def _codes_numbers(encoder: Any) -> bool:
    """Tell whether all declared categories are numbers."""
    said = encoder.categories
    return not isinstance(said, str) and all(np.asarray(labels).dtype.kind in "biuf" for labels in said)


def _is_found(classes: Any) -> bool:
    return isinstance(classes, str) and classes == FOUND_IN_Y


def _picked(y: Any, chosen: _SearchRows) -> list[Any]:
    """Pick some values of a target, whatever kind of column it is. This is private."""
    values = as_column(y).objects()
    return [values[place] for place in chosen.places.tolist()]


# --- quotes: What a fit will cost, before any data are seen: estimators are asked, not trusted. ---
#
# Every private estimator charges its session before it reads a value. So a payer that writes down what it is charged,
# and
# stops the fit there, finds the price of any of them, or of a pipeline of them, on a table of zeros.


class _Priced(DiscreetError):
    """The fit has named its whole price; there is no need to go on."""


@final
@dataclass(slots=True, eq=False)
class _Quoting:
    """A payer that writes down charges and stops at the last one it waits for."""

    waits_for: int
    account: str = "row"  # for whom
    events: list[Event] = field(default_factory=list)

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if unit != self.account:
            _refuse()
        self.events.append(event)
        if len(self.events) == self.waits_for:
            raise _Priced

    def __deepcopy__(self, memo: dict[int, Any]) -> _Quoting:
        return self


@final
@dataclass(slots=True, eq=False)
class Prepaid:
    """A payer for a fit whose events were quoted and charged before; it takes those and no others."""

    left: list[Event]
    account: str = "row"  # for whom

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if unit != self.account or not self.left or self.left.pop(0) != event:
            _refuse()

    def __deepcopy__(self, memo: dict[int, Any]) -> Prepaid:
        return self


def _refuse() -> NoReturn:
    raise Refused(
        "a fit spends something else than what it was charged for",
        reason="its price must follow from its parameters and the number of columns alone",
        way_out="search over estimators of discreet.learn.sklearn, alone or in a Pipeline",
    )


def private_parameters(estimator: Any, name: str) -> list[str]:
    """Return the full names of a parameter in an estimator and in the steps within it."""
    return [key for key in estimator.get_params(deep=True) if key.rpartition("__")[2] == name]


def prepared(estimator: Any, *, factor: Fraction, delta: Number | None, **others: Any) -> Any:
    """Return a copy that spends `factor` times each epsilon and `delta` in each step, with other parameters set."""
    twin = clone(estimator)
    values = twin.get_params(deep=True)
    spent = {key: factor * exact(values[key], name=key) for key in private_parameters(twin, "epsilon")}
    chances = dict.fromkeys(private_parameters(twin, "delta"), delta)
    rest = {key: value for name, value in others.items() for key in private_parameters(twin, name)}
    return twin.set_params(**spent, **chances, **rest)


def quote(estimator: Any, *, rows: int, columns: int, names: Any = None, whom: UnitRows | None = None) -> list[Event]:
    """Return the events of a fit on so many rows and columns, in order: of units where these have several rows."""
    sessions = private_parameters(estimator, "session")
    if not sessions:
        raise Refused(
            "this estimator takes no session that could be charged, so its privacy loss is unknown",
            way_out="search over estimators of discreet.learn.sklearn, alone or in a Pipeline",
        )
    payer = _Quoting(waits_for=len(sessions), account=_account(whom))
    given = _units_for(estimator, whom, np.arange(rows))
    twin = clone(estimator).set_params(**dict.fromkeys(sessions, payer))
    try:
        twin.fit(named(np.zeros((rows, columns)), names), [0.0] * rows, **given)  # A list says no kind of labels.
    except _Priced:
        return payer.events
    _refuse()


def together(events: list[Event]) -> Event:
    """Return all of them as one."""
    return events[0] if len(events) == 1 else Composed(events)
