"""Rows as floats, and how well a fitted estimator does on them: one bounded whole number a row, exact and private."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from discreet.errors import InvalidParameter, Refused
from discreet.frames.arrow import is_text
from discreet.frames.column import Column, as_column
from discreet.learn.sklearn.bounds import Pair

__all__ = [
    "BEST",
    "FOUND_IN_Y",
    "added_up",
    "class_codes",
    "combined",
    "keeps_rows_alone",
    "named",
    "nearness",
    "read_classes",
    "rightness",
    "rows_to_predict",
    "showing_no_text",
]

# --- numbers: What is no number is an error without a session, and scikit-learn would show the text that it met. ---

_TEXTS = (
    "there is a text where this needs numbers. Leave such columns out, or code them by declared categories: "
    "OneHotEncoder(categories=[[…]]) may stand before this in a Pipeline."
)


# What is in errors of scikit-learn that show values, and what is said instead.
_WITHOUT_VALUES: Final = {
    "could not convert": _TEXTS,
    "Complex data not supported": "Complex data not supported: this needs real numbers, such as a column for each part",
    "Mix of label input types": "labels are texts and numbers: say them as the classes of the fit are, all of one kind",
}


@contextmanager
def showing_no_text() -> Iterator[None]:
    """Raise an error about a text among numbers, or about complex ones, without what stands in the rows."""
    try:
        yield
    except ValueError as error:
        said = next((text for part, text in _WITHOUT_VALUES.items() if part in str(error)), None)
        if said is None:
            raise
        raise ValueError(said) from None


def rows_to_predict(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Check that rows have the columns that were fitted, and return their numbers."""
    with showing_no_text():
        return np.asarray(validate_data(estimator, X, reset=False, dtype=np.float64))


# --- classes: The classes of a classifier are declared: which labels occur is a fact about the people in the table. ---


FOUND_IN_Y: Final = "found in y"


def read_classes(classes: Any, y: Any, *, has_session: bool) -> NDArray[Any]:
    """Return the sorted classes: those declared, or, if the caller says so and no session pays, those found in y.

    Labels that occur are data: a rare one tells that somebody has it. So they are declared, and "found in y" is for
    whoever may publish which labels there are; what is spent says nothing about them.
    """
    if classes is None:
        raise Refused(
            "this needs classes=[…], the labels that there may be",
            reason="a label that only one person has would tell of that person, so labels are not read from the data",
            way_out="declare them, also those that may not occur; or, if it is public which of them occur, say "
            'classes="found in y", which no session accepts',
        )
    if isinstance(classes, str) and classes == FOUND_IN_Y:
        if has_session:
            raise Refused(
                'classes="found in y" would publish which labels occur, and no charge covers that',
                way_out="declare them: classes=[…]",
            )
        check_classification_targets(y)
        return np.unique(y)
    found = _declared(classes)
    if y is not None:
        _require_labels(y, found, has_session=has_session)
    return found


def _declared(classes: Any) -> NDArray[Any]:
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__"):
        raise InvalidParameter('classes must be a list of labels, or "found in y"')
    given = np.asarray(classes)
    if given.dtype == object and given.ndim == 1 and _are_of_one_kind(given.tolist()):
        given = np.asarray(given.tolist())  # Columns of pandas, such as y.unique(), come as objects.
    found = np.unique(given) if given.dtype.kind in "biufU" else given
    if given.ndim != 1 or not 0 < len(found) == len(given) or found.dtype.kind not in "biufU":
        raise InvalidParameter("classes must be different labels, all numbers or all texts")
    return found


def _are_of_one_kind(labels: list[Any]) -> bool:
    return any(all(isinstance(label, kind) for label in labels) for kind in (str, (int, float)))


def _require_labels(y: Any, classes: NDArray[Any], *, has_session: bool) -> None:
    """Refuse classes that are none of the labels: by the kind of y where its type tells it, by y itself if nobody pays.

    With a session a label that is no class is no error, as that would tell of it. Kinds are public, but for pandas,
    which decides them by the values.
    """
    wanted, stored = "texts" if classes.dtype.kind == "U" else "numbers", _stored_kind(y)
    if stored not in (None, wanted):
        raise InvalidParameter(
            f"classes are {wanted} and y holds {stored}, so no row would have any of them: declare the labels as y "
            "has them (in Python True is 1 and False is 0)"
        )
    if not has_session and (class_codes(y, classes) < 0).any():
        raise InvalidParameter(
            "y has labels that are not among classes: declare all of them, as y spells them (upper and lower case and "
            "numbers written as texts differ). With a session, such rows count for nothing instead"
        )


def _stored_kind(y: Any) -> str | None:
    """Tell by its type alone whether a target holds texts or numbers; None where that is not public or not said."""
    if isinstance(y, np.ndarray):
        return "texts" if y.dtype.kind == "U" else "numbers" if y.dtype.kind in "biuf" else None
    library = type(y).__module__.partition(".")[0]
    if library not in ("polars", "pyarrow"):
        return None
    import pyarrow as pa

    stored = y.clear().to_arrow().type if library == "polars" else y.type
    stored = stored.value_type if pa.types.is_dictionary(stored) else stored
    if is_text(stored):
        return "texts"
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return "numbers" if any(is_one(stored) for is_one in numbers) else None


def class_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each label among the classes, -1 for whatever is none of them. This is private.

    The rule is total and looks at one label at a time: a strange label is no error, since that would tell of it.
    """
    places = {label: place for place, label in enumerate(classes.tolist())}
    column = y if isinstance(y, Column) else as_column(y)
    return np.array([_place(places, label) for label in column.objects()], dtype=np.int64)


def _place(places: dict[Any, int], label: Any) -> int:
    try:
        return places.get(label, -1)
    except TypeError:
        return -1


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

BEST = 1 << 10  # The score of a row that is predicted perfectly; none is below zero.


def rightness(estimator: Any, rows: Floats, labels: Any) -> Integers:
    """Return BEST for each row whose label is predicted, 0 for others. This is private."""
    wanted = class_codes(labels, estimator.classes_)
    told = class_codes(_each(estimator, rows, dtype=estimator.classes_.dtype), estimator.classes_)
    found: Integers = np.where((wanted == told) & (wanted >= 0) & _complete(rows), BEST, 0)
    return found


def nearness(estimator: Any, rows: Floats, targets: Floats, within: Pair) -> Integers:
    """Return how near each prediction is, from 0, a whole width of the bounds off, to BEST. This is private."""
    low, high = (float(bound) for bound in within)
    told = _each(estimator, rows, dtype=np.float64)
    apart = np.abs(np.clip(told, low, high) - np.clip(targets, low, high)) / (high - low)
    points = np.rint(BEST * (1 - np.where(np.isfinite(apart), np.minimum(apart, 1.0), 1.0))).astype(np.int64)
    found: Integers = np.where(_complete(rows), points, 0)
    return found


def added_up(points: Integers, units: Integers | None) -> int:
    """Add up the points of rows, or of units, of which each has the mean of its rows, rounded down. This is private.

    So a row, or a unit with all its rows, brings from 0 to BEST points.
    """
    if units is None:
        return int(points.sum())
    sums, many = np.zeros(int(units.max(initial=-1)) + 1, dtype=np.int64), np.maximum(np.bincount(units), 1)
    np.add.at(sums, units, points)
    return int((sums // many).sum()) if len(units) else 0


def _complete(rows: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(rows).all(axis=1), dtype=np.bool_)


def _each(estimator: Any, rows: Floats, *, dtype: Any) -> NDArray[Any]:
    """Predict each row by itself; what has a gap is predicted as if it were zero, and counts for nothing.

    Rows are handed over one at a time, which is slow, unless the estimator says that it keeps them apart anyway.
    """
    filled, names = np.where(_complete(rows)[:, None], rows, 0.0), getattr(estimator, "feature_names_in_", None)
    if keeps_rows_alone(estimator) and len(rows):
        return np.asarray(estimator.predict(named(filled, names)), dtype=dtype)
    found = np.empty(len(rows), dtype=dtype)
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for place, row in enumerate(filled):
            found[place] = estimator.predict(named(row[None, :], names))[0]
    return found


def named(rows: Floats, names: Any) -> Any:
    """Return rows as a table whose columns have these names, where there are any and pandas is there."""
    if names is None:
        return rows
    try:
        from pandas import DataFrame
    except ImportError:
        return rows
    return DataFrame(rows, columns=names, copy=False)


# --- rows_alone: Arithmetic in which what becomes of a row depends on that row alone, to the last bit. ---
#
# A product of matrices may round the same row in one way or another by its place in the table. Where rows are counted
# or
# added up afterwards, one person more or less would then move the rows of others, and that is not paid for.


def combined(rows: Floats, weights: Floats) -> Floats:
    """Multiply rows by a matrix with one column a result, one entry of the rows after the other."""
    found = np.zeros((len(rows), weights.shape[1]))
    for column, entries in zip(rows.T, weights, strict=True):
        found += column[:, None] * entries
    return found


def keeps_rows_alone(estimator: Any) -> bool:
    """Tell whether an estimator, or every step of a pipeline, says that it does such arithmetic only."""
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    return all(step in (None, "passthrough") or getattr(step, "keeps_rows_alone", False) for step in steps)
