"""A function of one row as a step of a pipeline: declared so, and tried so before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import InvalidParameter, Refused
from discreet.learn.sklearn.validation import floats, split

__all__ = ["RowFunction"]

Floats: TypeAlias = NDArray[np.float64]

# Numbers about nobody, of many sizes and signs, so that means, ranks, extremes and sums of columns all differ.
_MADE_UP = (0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 120.0, 1e-3, 4.5e4, -2.5e6, 1e9, 17.0, 2.0**-20)
_ROWS = 29


class RowFunction(TransformerMixin, BaseEstimator):
    """Apply a function of rows before a private estimator: `RowFunction(lambda X: np.log1p(X))`.

    `func` takes an array of floats with one row for each record and returns one row for each, made from that row
    alone. You declare that by using this class, as nobody can read it off a function; that it holds is tried at every
    fit on made-up rows, which must come out alike to the last bit alone, in company and in another order. A function
    that scales by the mean of a column, ranks or drops rows is refused before any charge.

    What is no number reaches the function as NaN, and rows that it fails on come out as NaN, so that no value ends in
    an error.
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
        if not (same and _alike(shuffled, together[order]) and _alike(few, together[:5])):
            raise Refused(
                "this function does not make each row from that row alone",
                reason="on made-up rows it gave another result in company: one person would move the rows of others",
                way_out="use a function of single rows; means and spreads come from discreet.learn.sklearn scalers",
            )
        self._keeps_columns = together.shape == made_up.shape and all(
            _alike(self._called(_but_for(made_up, place))[:, place], together[:, place]) for place in range(columns)
        )
        return int(together.shape[1])

    def _called(self, rows: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(self.func(rows.copy()), dtype=np.float64)

    def transform(self, X: Any) -> Floats:
        """Apply the function. Rows stay as private as they were."""
        check_is_fitted(self)
        validate_data(self, X, skip_check_array=True, reset=False)
        rows = np.stack([floats(column) for column in split(X)], axis=1)
        try:
            return self._shaped(rows)
        except Exception:  # noqa: BLE001 - whatever one row makes the function raise must not end the fit of all
            return np.concatenate([self._or_missing(row[None, :]) for row in rows])

    def _shaped(self, rows: Floats) -> Floats:
        found = self._called(rows)
        if found.shape != (len(rows), self.n_features_out_):
            raise ValueError("not one row for each")
        return found

    def _or_missing(self, row: Floats) -> Floats:
        try:
            return self._shaped(row)
        except Exception:  # noqa: BLE001 - see above
            return np.full((1, self.n_features_out_), np.nan)

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


def _but_for(rows: Floats, place: int) -> Floats:
    """Move all columns but one by some rows: what is made from that one stays as it is."""
    moved: Floats = np.roll(rows, 3, axis=0)
    moved[:, place] = rows[:, place]
    return moved


def _alike(one: Floats, other: Floats) -> bool:
    """Tell whether two tables are the same to the last bit."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()
