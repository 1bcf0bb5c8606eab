"""What private estimators share: public facts first, then the charge, then the values."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.adaptive.bounded_memberships import SLOTS, UnitRows, unit_codes, unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import significant_up
from discreet.frames.column import Column, as_column, reader_for, taken
from discreet.frames.tables import table_columns
from discreet.learn.sklearn.bounds import FeatureFrame, declared_bounds, is_by_place, read_bounds
from discreet.learn.sklearn.pipeline_guard import Paying, refuse_moved_columns, refuse_plain_steps, refuse_unpaid_looks
from discreet.learn.sklearn.validation import class_codes, read_classes, rows_to_predict, showing_no_text
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import small_delta
from discreet.mechanisms.release import cost_text
from discreet.names import escaped
from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.regression_design import centred

__all__ = ["PrivacySpent", "PrivateEstimator", "PrivatePredictor", "TrainingTable"]

# --- spent: What a fit has spent. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySpent:
    """The event of one fit, charged before it read a value, and what it means at `delta`.

    Args:
        event: What the fit spent.
        relation: The neighbouring relation.
        delta: The delta at which epsilon is quoted.
        unit: Whom it protects: each row, or what the ids that were handed over tell apart.
        max_rows: How many rows of such a unit count at most; None where rows are protected, or all rows count.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(20, 60, 1000)[:, None]
        >>> dp.learn.sklearn.MinMaxScaler(epsilon=1, bounds=[(0, 120)]).fit(X).privacy_spent_.epsilon
        1.0
    """

    event: Event
    relation: Relation
    delta: Fraction  # at which epsilon is quoted; 0 for pure privacy
    unit: str = "row"
    max_rows: int | None = None  # of each unit that count, where units have several

    @property
    def epsilon(self) -> float:
        """The best bound known, rounded up."""
        return epsilon(self.event, self.delta, relation=self.relation)

    def __str__(self) -> str:
        spent, told = self.epsilon, cost_text(self.event, relation=self.relation, delta=self.delta or None)
        if self.delta and isfinite(spent):
            # Many choices cost less at a delta than their epsilons add up to.
            told = f"ε = {significant_up(spent)}, δ = {significant_up(self.delta)}"
        if self.max_rows is not None:
            rows = "1 row counts" if self.max_rows == 1 else f"{self.max_rows} rows count"
            told = f"{told} for one {escaped(self.unit)}, of whom at most {rows}"
        elif self.unit != "row":
            told = f"{told} for one {escaped(self.unit)} with all their rows"
        return f"{told} ({self.relation.value} neighbours)"

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingTable:
    """A table and its target before they are read: what is publicly known of them, and how to read them once paid."""

    frame: FeatureFrame  # the bounds of the features
    size: int | None  # the number of rows where it is public: under replace-one
    people: int | None  # the same, or a public guess of it
    _X: Any = field(repr=False)
    _y: Any = field(repr=False)
    whom: UnitRows | None = None  # whom to protect, where units have several rows
    fills: bool = False  # whether each unit fills as many slots as it may have rows, so that all weigh the same
    _drawn: list[NDArray[np.int64]] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        """The number of rows, which is private under add-remove: nothing but what is paid for may follow from it."""
        return len(self._X) if self.whom is None else len(self._kept())

    def _kept(self) -> Any:
        """Return the places of the rows that count: drawn once, so that features and target are of the same rows."""
        if self.whom is None:
            return slice(None)
        if not self._drawn:
            draw = self.whom.filled if self.fills else self.whom.kept
            self._drawn.append(draw(len(self._X)))
        return self._drawn[0]

    def filled(self, most: int = SLOTS) -> TrainingTable:
        """Return the table in which each unit fills exactly `max_rows` slots with its rows, and at most so many."""
        if self.whom is None:
            return self
        return replace(self, whom=self.whom.with_slots(most), fills=True, _drawn=[])

    def units(self) -> NDArray[np.int64] | None:
        """Return a number for the unit of each row that counts; None where rows are protected. This is private."""
        return None if self.whom is None else unit_codes(taken(self.whom.ids(), self._kept()))

    @property
    def max_rows(self) -> int:
        """How many rows of one unit count at most, or how many slots each unit fills."""
        return 1 if self.whom is None else self.whom.max_rows

    def event_of(self, event: Event) -> Event:
        """Return what one unit spends where one row spends `event`."""
        return event if self.whom is None else self.whom.event_of(event)

    def columns(self) -> list[Any]:
        """Read the features, a column each; whatever stands there is a value or is missing. This is private."""
        kept = self._kept()
        return [taken(as_column(column), kept) for column in table_columns(self._X)]

    def steps(self) -> NDArray[np.int64]:
        """Return the rows clamped and moved, in steps of 1 / HALF from -HALF to HALF. This is private."""
        return self.frame.steps(self.columns())

    def values(self) -> NDArray[np.float64]:
        """Return the rows clamped to their bounds, in the units of the data. This is private."""
        placed = zip(self.frame.grids, self.columns(), strict=True)
        return np.column_stack([grid.indices(column) * float(grid.step) for grid, column in placed])

    def target(self) -> Column:
        """Read the target as a column. This is private."""
        return taken(as_column(self._y), self._kept())

    def is_beside(self, column: Any) -> bool:
        """Tell by its shape whether a column has one value for each row; what is no column is refused by its kind."""
        reader_for(column)
        return getattr(column, "shape", None) == (len(self._X),)

    def shares_of(self, column: Any, grid: Grid) -> NDArray[np.int64]:
        """Read a column beside the table, in steps from -HALF to HALF of its bounds. This is private."""
        return centred(grid, taken(as_column(column), self._kept()))

    def classes(self, declared: Any, *, has_session: bool) -> NDArray[Any]:
        """Return the sorted classes, declared or, if the caller said so and no session pays, found in the target."""
        return read_classes(declared, self._y, has_session=has_session)

    def codes(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of each label among the classes, -1 for whatever is none of them. This is private."""
        return class_codes(self.target(), classes)


_GAPS = (
    "Without a session a gap is an error (with one it counts as the middle of its bounds). Fill it with a public "
    "constant: discreet.learn.sklearn.Imputer(bounds=…) may stand before this in a Pipeline, and so may SimpleImputer "
    'with strategy="constant", fill_value=… and keep_empty_features=True; imputers that learn a mean or a median from '
    "the rows are refused."
)


class PrivateEstimator(Paying):
    """A mixin that stands before those of scikit-learn: `class PCA(PrivateEstimator, TransformerMixin, BaseEstimator)`.

    `fit` of an estimator asks `_table` for the public facts, makes its mechanism from them, and reads the values in
    `with self._paid(event)`. With a session nothing about the values can end in an error: what is missing counts as the
    middle of its bounds. Without one, where nothing is charged, tables are checked as scikit-learn does.
    """

    epsilon: Number
    delta: Number | None
    bounds: Any
    relation: str | Relation
    public_rows: int | None
    session: Payer | None
    n_features_in_: int
    privacy_spent_: PrivacySpent
    frame_: FeatureFrame

    def _table(
        self, X: Any, y: Any = None, *, y_numeric: bool = False, unit: Any = None, max_rows: int | None = None
    ) -> TrainingTable:
        """Look at kinds and shapes, at values only if no session pays for them."""
        relation = self._relation()
        whom = unit_rows(unit, max_rows, relation)
        brought = declared_bounds(X)
        if self.session is None:
            X, y = self._checked(X, y, y_numeric)
        else:
            self._look(X, y)
        if is_by_place(self.bounds):
            refuse_moved_columns(self)
        names = getattr(self, "feature_names_in_", None)
        frame = read_bounds(self.bounds, self.n_features_in_, brought=brought, names=names)
        size = len(X) if relation is Relation.REPLACE_ONE else None
        guess = None if self.public_rows is None else positive_integer(self.public_rows, name="public_rows")
        if None not in (size, guess) and size != guess:
            raise InvalidParameter("public_rows is not the number of rows, which is public under replace-one")
        return TrainingTable(frame, size, guess if size is None else size, X, y, whom)

    def _checked(self, X: Any, y: Any, y_numeric: bool) -> tuple[Any, Any]:
        try:
            with showing_no_text():
                if y is None and not self._needs_target():
                    return validate_data(self, X, dtype=np.float64), None
                return validate_data(self, X, y, dtype=np.float64, y_numeric=y_numeric)  # type: ignore[no-any-return]
        except ValueError as error:
            if "Input X contains NaN" not in str(error):
                raise
            raise ValueError(f"{str(error).splitlines()[0]} {_GAPS}") from None

    def _look(self, X: Any, y: Any) -> None:
        """Check kinds and shapes and set the names and the number of features."""
        if len(getattr(X, "shape", ())) != 2 or hasattr(X, "tocsr"):
            raise InvalidParameter("with a session, X must be a two-dimensional array or a table of pandas or polars")
        if not X.shape[1]:
            raise InvalidParameter("X must have at least one column")
        if self._needs_target():
            if y is None:
                raise InvalidParameter("this needs a target y")
            if len(getattr(y, "shape", (0,))) != 1 or len(y) != len(X):
                raise InvalidParameter("y must have one value for each row of X")
            reader_for(y)  # Refuses what is no column by its kind, while nothing is paid yet.
        validate_data(self, X, y if self._needs_target() else "no_validation", skip_check_array=True)

    def _needs_target(self) -> bool:
        return bool(self.__sklearn_tags__().target_tags.required)

    def _relation(self) -> Relation:
        return read_relation(self.relation)

    def _epsilon(self) -> Fraction:
        return positive(self.epsilon, name="epsilon")

    def _delta(self, people: int | None) -> Fraction:
        if self.delta is None:
            raise InvalidParameter(
                "this spends epsilon and delta: say delta=…, much below one over the number of people"
            )
        chance = small_delta(self.delta, public_rows=None)
        if people is not None and chance * people >= 1:
            raise InvalidParameter(
                "delta must be below one over the number of people: at that, publishing the record of one of them, "
                "chosen at random, would be allowed. Choose a smaller delta"
            )
        return chance

    def _gaussian(self, people: int | None) -> GaussianNoise:
        """Return the noise that spends epsilon and delta, exactly calibrated."""
        return GaussianNoise.for_epsilon(self._epsilon(), self._delta(people))

    def _row_gaussian(self, table: TrainingTable) -> GaussianNoise:
        """Return the noise for one row with which a unit, of which so many count, spends epsilon and delta."""
        return self._gaussian(table.people).part(Fraction(1, table.max_rows**2))

    def _paid(
        self, event: Event, *, delta: Fraction = Fraction(0), whom: UnitRows | None = None
    ) -> AbstractContextManager[None, None]:
        """Charge the session, if there is one, and remember what was spent; nothing may be read before.

        The event is that of one row, or, with `whom`, of one unit. The values are read within what is returned: where
        a session pays, whatever fails there looks the same.
        """
        spent = PrivacySpent(event=event, relation=self._relation(), delta=delta)
        if whom is not None:
            noun = getattr(getattr(self.session, "unit", None), "noun", whom.noun)
            spent = replace(spent, unit=noun, max_rows=whom.max_rows)
        if self.session is None:
            refuse_plain_steps()
        else:
            refuse_unpaid_looks()
        unit = "row" if whom is None or self.session is None else whom.account
        guard = paid(self.session, spent, purpose=self._purpose(), unit=unit)
        self.privacy_spent_ = spent
        return guard

    def _purpose(self) -> str:
        """Say what the ledger keeps of a fit: `_stored_as` of a class never changes, whatever the class is called.

        A class that somebody derives from one of ours is called by its own name.
        """
        return f"fit of {vars(type(self)).get('_stored_as', type(self).__name__)}"

    def _seen(self, X: Any) -> NDArray[np.float64]:
        """Check a table that is to be predicted, and return it clamped and moved to [-1, 1]."""
        check_is_fitted(self)
        return self.frame_.scaled(rows_to_predict(self, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """Share the session: a copy of it would be a second budget."""
        bare = copy.copy(self)
        bare.session = None
        twin: Self = BaseEstimator.__sklearn_clone__(bare)
        twin.session = self.session
        return twin


class PrivatePredictor(PrivateEstimator):
    """One that predicts and may be scored: `class Ridge(PrivatePredictor, RegressorMixin, BaseEstimator)`."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score as scikit-learn does; refused with a session, since exact scores of its data are data."""
        if self.session is not None:
            raise Refused(
                "score tells an exact fact about the table it is given, and no charge covers that",
                reason="cross-validation and GridSearchCV keep such scores of the session's data",
                way_out="choose with discreet.learn.sklearn.PrivateSearch, whose choice is charged; on a public table "
                "use sklearn.metrics and predict",
            )
        with showing_no_text():
            return super().score(X, y, sample_weight=sample_weight)  # type: ignore[misc, no-any-return]
