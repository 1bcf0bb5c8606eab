"""What may stand around a private estimator in scikit-learn: steps that pay, and those that learn nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn.declared_steps import Binner, Imputer
from discreet.mechanisms.grid import number_rows

__all__ = [
    "COMPOSED",
    "Paying",
    "RowFunction",
    "all_pay",
    "answered_for",
    "learns_before_private",
    "moves_columns_before",
    "refuse_moved_columns",
    "refuse_plain_steps",
    "refuse_unpaid_looks",
]

# --- row_function: A function of one row as a step of a pipeline: declared so, and tried so before it is used. ---


Floats: TypeAlias = NDArray[np.float64]

# Numbers about nobody, of many sizes and signs, so that means, ranks, extremes and sums of columns all differ.
_MADE_UP = (0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 120.0, 1e-3, 4.5e4, -2.5e6, 1e9, 17.0, 2.0**-20)
_ROWS = 29


class RowFunction(TransformerMixin, BaseEstimator):
    """Apply a function of rows before a private estimator: `RowFunction(lambda X: np.log1p(X))`.

    `func` takes an array of floats with one row for each record and returns one row for each, made from that row
    alone. You declare that by using this class, as nobody can read it off a function; that it holds is tried at every
    fit on made-up rows, which must come out alike to the last bit alone, in company and in another order, with numbers
    that are missing or infinite and rows that come twice. A function that scales by the mean of a column or fills it
    in, ranks or drops rows is refused before any charge.

    What is no number reaches the function as NaN, and rows that it fails on come out as NaN, so that no value ends in
    an error.

    Args:
        func: The function, from an array of rows to an array with one row for each.

    Examples:
        >>> import numpy as np
        >>> dp.learn.sklearn.RowFunction(np.log1p).fit_transform(np.zeros((2, 1))).tolist()
        [[0.0], [0.0]]
    """

    def __init__(self, func: Callable[[Floats], Any]) -> None:
        self.func = func

    def fit(self, X: Any, y: Any = None) -> Self:
        """Try the function on made-up rows of as many columns; no value of X is looked at."""
        if len(getattr(X, "shape", ())) != 2 or hasattr(X, "tocsr"):
            raise InvalidParameter("X must be a two-dimensional array or a table of pandas or polars")
        validate_data(self, X, skip_check_array=True)
        self.n_features_out_ = self._tried(X.shape[1])
        return self

    def _tried(self, columns: int) -> int:
        """Return how many columns come out; refuse a function in which rows meet."""
        places = np.arange(_ROWS * columns).reshape(_ROWS, columns)
        made_up: Floats = np.array(_MADE_UP)[places * 7 % len(_MADE_UP)] + 1.0 * (places % 5)
        order = np.arange(_ROWS) * 11 % _ROWS
        together, shuffled = self._called(made_up), self._called(made_up[order])
        alone = [self._called(row[None, :]) for row in made_up]
        few = self._called(made_up[:5])
        same = together.shape[1:] == alone[0].shape[1:] and together.ndim == 2 and len(together) == _ROWS
        same = same and all(len(row) == 1 and _alike(row[0], whole) for row, whole in zip(alone, together, strict=True))
        same = same and _alike(shuffled, together[order]) and _alike(few, together[:5])
        if not (same and all(self._keeps_apart(rows, together.shape[1]) for rows in _odd(made_up))):
            raise Refused(
                "this function does not make each row from that row alone",
                reason="on made-up rows it gave another result in company: one person would move the rows of others",
                way_out="use a function of single rows; means and spreads come from discreet.learn.sklearn scalers",
            )
        self._keeps_columns = together.shape == made_up.shape and all(
            _alike(self._called(_but_for(made_up, place))[:, place], together[:, place]) for place in range(columns)
        )
        return int(together.shape[1])

    def _keeps_apart(self, rows: Floats, width: int) -> bool:
        """Tell whether rows that a function may fail on become in company what they become alone."""
        return _alike(self._applied(rows, width), np.concatenate([self._or_missing(row, width) for row in rows]))

    def _called(self, rows: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(self.func(rows.copy()), dtype=np.float64)

    def transform(self, X: Any) -> Floats:
        """Apply the function. Rows stay as private as they were."""
        check_is_fitted(self)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._applied(number_rows(X), self.n_features_out_)

    def _applied(self, rows: Floats, width: int) -> Floats:
        try:
            return self._shaped(rows, width)
        except Exception:  # noqa: BLE001 - whatever one row makes the function raise must not end the fit of all
            return np.concatenate([self._or_missing(row, width) for row in rows])

    def _shaped(self, rows: Floats, width: int) -> Floats:
        found = self._called(rows)
        if found.shape != (len(rows), width):
            raise ValueError("not one row for each")
        return found

    def _or_missing(self, row: Floats, width: int) -> Floats:
        try:
            return self._shaped(row[None, :], width)
        except Exception:  # noqa: BLE001 - see above
            return np.full((1, width), np.nan)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that come out: as they came in if each is made from its own alone, else by their places."""
        check_is_fitted(self)
        given = getattr(self, "feature_names_in_", input_features)
        if given is not None and self._keeps_columns:
            return np.asarray(given, dtype=object)
        return np.array([f"row{place}" for place in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _odd(rows: Floats) -> list[Floats]:
    """Make rows of which some lack numbers, have infinite ones, or come twice."""
    row, column = np.indices(rows.shape)
    some = (2 * row + 3 * column) % 5 == 0
    return [*(np.where(some, odd, rows) for odd in (np.nan, np.inf, -np.inf)), np.concatenate([rows[:7], rows[:7]])]


def _but_for(rows: Floats, place: int) -> Floats:
    """Move all columns but one by some rows: what is made from that one stays as it is."""
    moved: Floats = np.roll(rows, 3, axis=0)
    moved[:, place] = rows[:, place]
    return moved


def _alike(one: Floats, other: Floats) -> bool:
    """Tell whether two tables are the same to the last bit; a missing number has none."""
    return one.shape == other.shape and _spelled(one) == _spelled(other)


def _spelled(rows: Floats) -> bytes:
    return np.where(np.isnan(rows), np.nan, rows).tobytes()


# --- cross_validation ---
# What of scikit-learn may fit around a private estimator: steps that pay, and nothing that looks for free.
#
# Cross-validation keeps exact scores; calibration, stacking and their like learn from private rows without paying; a
# plain scaler in a pipeline tells exact means, and one row then moves all others. So on the data of a session whoever
# is
# not known is refused. Without a session nothing is charged and scores are the caller's own, but a reported epsilon
# must
# still be true: a plain step that is fitted on the rows before a private one is refused as well.
#
# scikit-learn does not tell a step which pipeline it is in, and what comes out of a plain scaler is an array like any
# other. So what is at work is read off the stack: objects by their type, functions of scikit-learn and joblib by the
# module they are in, and a search of ours by the very function through which it fits.


_ALLOWED = (
    "sklearn.base",
    "sklearn.pipeline",
    "sklearn.compose._column_transformer",
    "sklearn.utils",
    "sklearn.callback",
)
_LEARNING = (TransformedTargetRegressor, StackingClassifier, StackingRegressor, RANSACRegressor)
_FILLING = "sklearn.impute."  # Its imputers begin with plain means, whichever estimator they go on with.
_DRAWING = (BaggingClassifier, BaggingRegressor, AdaBoostRegressor)
_WORKERS = "joblib."
T = TypeVar("T")


def answered_for(work: Callable[[], T]) -> T:
    """Let a search quote or fit its candidates: its own charge is checked by itself, with all that stands above it."""
    return work()


def refuse_unpaid_looks() -> None:
    """With a session, raise if something of scikit-learn is at work above us whose looks at the rows nobody pays for.

    A refusal in `score` would be caught in model selection and become a missing number, and scorers that call `predict`
    would not even see it; so the fit itself is refused, and where every fit fails, model selection says so. A private
    search above us answers for what stands above itself. A worker of joblib does not show who has sent it.
    """
    above = list(_above())
    hidden = bool(above) and above[-1][0].startswith(_WORKERS)
    if hidden or not all(name.startswith((*_ALLOWED, _WORKERS)) or _is_composed(owner) for name, owner in above):
        raise Refused(
            "cross-validation and searches of scikit-learn are refused on the data of a session, and so is what else "
            "looks at rows around a fit: calibration, stacking, bagging, selection of features, workers of n_jobs",
            reason="their scores are exact facts about private rows, and every fold would be charged anew",
            way_out="choose with discreet.learn.sklearn.PrivateSearch, whose whole price is charged once",
        )
    for owner in (owner for _, owner in above if _is_composed(owner) and not all_pay(owner)):
        raise Refused(
            f"a step of this pipeline learns from the rows, and no session is charged for it{_named(owner, True)}",
            reason="what it keeps are exact facts about private rows, and one row would move all others after it",
            way_out=_WAY_OUT.format("all with the same session; "),
        )


def refuse_plain_steps() -> None:
    """Without a session, raise if our rows were made by a step that learnt from all of them and is not private."""
    for name, owner in _above():
        if issubclass(type(owner), _DRAWING) and getattr(owner, "bootstrap", True):
            raise Refused(
                "bagging and boosting hand over some rows several times",
                reason="whoever is drawn three times loses three times the epsilon that is reported here",
                way_out="use bagging with bootstrap=False, which draws every row once at most",
            )
        if issubclass(type(owner), AdaBoostClassifier):
            raise Refused(
                "boosting of scikit-learn weighs each row by how many there are, and by earlier fits to all of them",
                reason="one row would move the weights of all others, so the epsilon reported here would not hold",
                way_out="use BoostedTreesClassifier, which boosts within its epsilon, or weights that rows bring along",
            )
        learns = name.startswith(_FILLING) or issubclass(type(owner), _LEARNING) or _ranks_rows(owner)
        if learns or (_is_composed(owner) and learns_before_private(owner, at_work=True)):
            raise Refused(
                f"a step before this estimator is fitted on the rows, and is not private{_named(owner, False)}",
                reason="one row would move all others after it, so the epsilon that is reported here would not hold",
                way_out=_WAY_OUT.format(""),
            )


def _ranks_rows(owner: Any) -> bool:
    """Tell whether rows are taken that are predicted surest of all: one row more pushes out another."""
    return issubclass(type(owner), SelfTrainingClassifier) and owner.criterion != "threshold"


def refuse_moved_columns(estimator: Any) -> None:
    """Raise if a pipeline makes or moves columns before an estimator whose bounds are told by place."""
    owners = [owner for _, owner in _above() if _is_composed(owner)]
    if any(moves_columns_before(owner, [estimator, *owners]) for owner in owners):
        raise Refused(
            "bounds by place stand behind a step that makes or moves columns",
            reason="pairs would clamp other columns than those that they were written for, and nobody would notice",
            way_out='name the columns, bounds={"age": (0, 120), …}, and say .set_output(transform="pandas") on the '
            "pipeline so that they keep their names (ColumnTransformer puts that of a step before them unless "
            "verbose_feature_names_out=False); or give one pair for all columns",
        )


_WAY_OUT = (
    "use scalers and estimators of discreet.learn.sklearn, {}encoders with declared categories "
    '(OneHotEncoder(categories=[…], handle_unknown="ignore", sparse_output=False)), Imputer and Binner '
    "with declared values and edges, Normalizer, Binarizer, PolynomialFeatures, and RowFunction for a function of "
    "single rows"
)


def _named(owner: Any, has_session: bool) -> str:
    """Name the first step that is in the way, and what it lacks."""
    step = next(_plain_steps(owner, has_session), None)
    if step is None:
        return ""
    lacks = [text for kind, tell in _LACKS.items() if isinstance(step, kind) for text in tell(step, has_session)]
    ours = type(step).__name__ if type(step).__name__ in _OURS else None
    if isinstance(step, Paying):
        lacks = ["session=…"]
    elif ours is not None:
        return f" ({ours} of scikit-learn: use that of discreet.learn.sklearn)"
    return f" ({type(step).__name__}{': say ' + ', '.join(lacks) if lacks else ''})"


def _plain_steps(step: Any, has_session: bool) -> Iterator[Any]:
    if isinstance(step, COMPOSED):
        for part in _parts(step):
            yield from _plain_steps(part, has_session)
    elif _is_private(step):
        yield from [step] if has_session and step.session is None else []
    elif not _learns_nothing(step, has_session=has_session) and not _has_private(step):
        yield step


def _is_composed(owner: Any) -> bool:
    return issubclass(type(owner), COMPOSED)


def _above() -> Iterator[tuple[str, Any]]:
    """List what of scikit-learn or made like it is at work above us: its module, and the object if there is one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is answered_for.__code__:
            return
        name = frame.f_globals.get("__name__", "")
        owner = frame.f_locals.get("self")
        if name.startswith(("sklearn.", _WORKERS)) or _is_composed(owner):
            yield name, owner
        frame = frame.f_back


# --- pipeline_steps ---
# Which steps may stand before a private estimator: those that pay, and those that learn nothing from the rows.
#
# What a step has learnt from all rows is in every row that it hands on. One person more or less then moves the rows of
# everybody, and the noise of the estimator behind it was made for one. So a step is let through only if it is known to
# turn each row into another by public facts alone. Whatever is not known is refused.


COMPOSED = (Pipeline, FeatureUnion, ColumnTransformer)


class Paying:
    """What every estimator of ours is that may be charged to a session."""


def all_pay(step: Any) -> bool:
    """Tell whether a step, and every step within it, is charged to a session or learns nothing from values."""
    if isinstance(step, COMPOSED):
        return _picks_columns_by_names(step, has_session=True) and all(all_pay(part) for part in _parts(step))
    return (_is_private(step) and step.session is not None) or _learns_nothing(step, has_session=True)


def learns_before_private(step: Any, *, at_work: bool = False) -> bool:
    """Tell whether a plain step learns from the rows that a private one behind it is handed, both within this one.

    One that is at work around a private estimator holds it, though no step may show it: its last step counts as private
    then, for it may make one in its own fit.
    """
    parts = list(_parts(step)) if isinstance(step, COMPOSED) else []
    if isinstance(step, Pipeline):
        hidden = len(step.steps) - 1 if at_work else 0
        last = max((place for place, part in enumerate(parts) if _has_private(part)), default=hidden)
        if not all(_is_private_or_plain_rows(part) for part in parts[:last]):
            return True
    if isinstance(step, ColumnTransformer) and _has_private(step) and not _picks_columns_by_names(step):
        return True
    return any(learns_before_private(part) for part in parts)


def moves_columns_before(step: Any, at_work: Sequence[Any]) -> bool:
    """Tell whether, in a pipeline, a step before the one that is at work may change which column stands where."""
    if not isinstance(step, Pipeline):
        return False
    parts = list(_parts(step))
    # A step that is fitted as a copy is not found: then all of them count as standing before.
    here = next((place for place, part in enumerate(parts) if _contains(part, at_work)), len(parts))
    return not all(_keeps_columns(part) for part in parts[:here])


def _contains(step: Any, wanted: Sequence[Any]) -> bool:
    inside = isinstance(step, COMPOSED) and any(_contains(part, wanted) for part in _parts(step))
    return inside or (step is not None and any(step is one for one in wanted))


def _keeps_columns(step: Any) -> bool:
    if isinstance(step, Pipeline):
        return all(_keeps_columns(part) for part in _parts(step))
    one_to_one = isinstance(step, (OneToOneFeatureMixin, FunctionTransformer, SimpleImputer))
    declared = (type(step) is Imputer and not step.add_indicator) or (type(step) is Binner and step.encode == "ordinal")
    return step is None or isinstance(step, str) or one_to_one or declared


def _parts(step: Any) -> Iterator[Any]:
    """List the steps that are put together."""
    for name in ("steps", "transformer_list", "transformers"):
        yield from (part[1] for part in getattr(step, name, ()))
    yield getattr(step, "remainder", None)


def _has_private(step: Any) -> bool:
    """Tell whether a step is private, or has one that is: in a search, a vote or whatever else takes estimators."""
    if isinstance(step, COMPOSED):
        return any(_has_private(part) for part in _parts(step))
    inside = step.get_params().values() if isinstance(step, BaseEstimator) else ()
    return _is_private(step) or any(map(_is_private, inside))


def _is_private(step: Any) -> bool:
    """Tell whether a step is one of ours that pays; others may call something else a session."""
    return issubclass(type(step), Paying) and hasattr(step, "session")


def _is_private_or_plain_rows(step: Any) -> bool:
    if isinstance(step, COMPOSED):
        return _picks_columns_by_names(step) and all(_is_private_or_plain_rows(part) for part in _parts(step))
    return _is_private(step) or _learns_nothing(step)


def _picks_columns_by_names(step: Any, *, has_session: bool = False) -> bool:
    """Tell whether columns are picked by their names and places, and not by a function that looks at the table.

    A selector by kinds looks at the kinds of columns only; pandas decides those by the values, so with a session it is
    not taken either.
    """
    picks = [part[2] for part in getattr(step, "transformers", ())]
    return all(not callable(pick) or _is_public_selector(pick, has_session) for pick in picks)


def _is_public_selector(pick: Any, has_session: bool) -> bool:
    by_kind = getattr(pick, "dtype_include", None) is not None or getattr(pick, "dtype_exclude", None) is not None
    return type(pick) is make_column_selector and not (has_session and by_kind)


def _learns_nothing(step: Any, *, has_session: bool = False) -> bool:
    """Tell whether a step is known to turn each row into another by public facts alone."""
    if step is None or isinstance(step, str):
        return True
    known = _KNOWN.get(type(step))
    return known is not None and known(step, has_session)


def _has_declared_categories(encoder: Any, has_session: bool) -> bool:
    """Tell whether categories are said, so that none is found; with a session a value that is none must not fail."""
    said = not isinstance(encoder.categories, str)
    counted = encoder.min_frequency is not None or encoder.max_categories is not None
    total = encoder.handle_unknown in ("ignore", "use_encoded_value") and not getattr(encoder, "sparse_output", False)
    return said and not counted and (total or not has_session)


def _is_elementwise(step: Any, _: bool) -> bool:
    """Tell whether a function is none, or one of numpy's that works on each number by itself."""
    if not isinstance(step.func, np.ufunc):
        return step.func is None
    # One that knows objects only was made of a function of Python, which may remember what it has seen.
    return step.func.nin == 1 and not step.kw_args and step.func.types != ["O->O"]


def _fills_a_constant(step: Any, _: bool) -> bool:
    said = step.strategy == "constant" and step.fill_value is not None
    return said and step.keep_empty_features and not step.add_indicator


def _lacks_of_encoder(step: Any, has_session: bool) -> Iterator[str]:
    if isinstance(step.categories, str):
        yield "categories=[[…], …]"
    yield from (f"{name}=None" for name in ("min_frequency", "max_categories") if getattr(step, name) is not None)
    if has_session and step.handle_unknown not in ("ignore", "use_encoded_value"):
        one_hot = isinstance(step, OneHotEncoder)
        yield 'handle_unknown="ignore"' if one_hot else 'handle_unknown="use_encoded_value", unknown_value=-1'
    if has_session and getattr(step, "sparse_output", False):
        yield "sparse_output=False"


def _lacks_of_imputer(step: Any, _: bool) -> Iterator[str]:
    if step.strategy != "constant":
        yield 'strategy="constant"'
    if step.fill_value is None:
        yield "fill_value=…"
    if not step.keep_empty_features:
        yield "keep_empty_features=True"
    if step.add_indicator:
        yield "add_indicator=False"


_OURS = ("StandardScaler", "MinMaxScaler", "PCA", "KMeans")  # Names that ours share with plain ones.
_LACKS: dict[Any, Callable[[Any, bool], Iterator[str]]] = {
    (OneHotEncoder, OrdinalEncoder): _lacks_of_encoder,
    SimpleImputer: _lacks_of_imputer,
    FunctionTransformer: lambda *_: iter(("RowFunction(func) instead, if each row is made from that row alone",)),
}
_KNOWN: dict[type, Callable[[Any, bool], bool]] = {
    Binarizer: lambda *_: True,
    Normalizer: lambda *_: True,
    PolynomialFeatures: lambda *_: True,  # Its fit looks at the number of columns only.
    RowFunction: lambda *_: True,  # It tries at the fit what it was declared as.
    Imputer: lambda *_: True,  # Their fits look at names and the number of columns only.
    Binner: lambda *_: True,
    FunctionTransformer: _is_elementwise,
    SimpleImputer: _fills_a_constant,
    OneHotEncoder: _has_declared_categories,
    OrdinalEncoder: _has_declared_categories,
}
