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
    fit on made-up rows, which must come out alike to the last bit alone, in company and in another order, with numbers
    that are missing or infinite and rows that come twice. A function that scales by the mean of a column or fills it
    in, ranks or drops rows is refused before any charge.

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
        return self._applied(np.stack([floats(column) for column in split(X)], axis=1), self.n_features_out_)

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
