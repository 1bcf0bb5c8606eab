"""Steps of a pipeline that are declared and learn nothing: gaps filled by public constants, bins with public edges.

Each number is turned into others by itself, by a rule that is total: no value of a row ends in an error, and none moves
another row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.learn.sklearn.bounds import BoundedArray, FeatureBounds, read_bounds
from discreet.mechanisms.grid import number_rows
from discreet.mechanisms.parameters import read_flag

__all__ = ["Binner", "Imputer"]

Floats: TypeAlias = NDArray[np.float64]

_ENCODINGS: Final = ("onehot", "ordinal")


class _DeclaredStep(TransformerMixin, BaseEstimator):
    """What both share: a fit that looks at names and the number of columns, and rows read by a total rule."""

    keeps_rows_alone = True
    n_features_in_: int

    def _look(self, X: Any) -> list[str] | None:
        """Remember names and the number of columns, and return the names; no value of X is looked at."""
        _require_table(X)
        validate_data(self, X, skip_check_array=True)
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _rows(self, X: Any) -> Floats:
        """Read rows; what is infinite or no number is missing. They stay as private as they were."""
        check_is_fitted(self)
        _require_table(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        rows = number_rows(X)
        return np.where(np.isfinite(rows), rows, np.nan)

    def _columns(self, input_features: Any) -> list[str]:
        given = getattr(self, "feature_names_in_", input_features)
        return [f"x{place}" for place in range(self.n_features_in_)] if given is None else [str(name) for name in given]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class Imputer(_DeclaredStep):
    """Fill gaps by declared constants, before a private estimator: nothing is learnt from the rows.

    What is missing, infinite or no number becomes the value that is declared for its column, or the middle of its
    declared bounds. Imputers that learn a mean or a median let one person move the rows of others; this one does not,
    so it may stand before private estimators in a `Pipeline`, with a session and without one, and costs nothing.

    Args:
        values: A public constant for all columns, one for each in their order, or by name for some or all of them.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; the middle of a pair fills the
            column where no value is said. Values are not clamped here: that is done by the estimator.
        add_indicator: Whether columns that say what was missing, 1 or 0, are added, one for each column.

    Examples:
        >>> import numpy as np
        >>> table = np.array([[30.0, np.nan], [np.nan, 2.0]])
        >>> dp.learn.sklearn.Imputer(bounds=[(0, 120), (0, 10)]).fit_transform(table).tolist()
        [[30.0, 5.0], [60.0, 2.0]]
    """

    def __init__(
        self,
        values: Number | Sequence[Number] | Mapping[str, Number] | None = None,
        *,
        bounds: FeatureBounds | None = None,
        add_indicator: bool = False,
    ) -> None:
        self.values = values
        self.bounds = bounds
        self.add_indicator = add_indicator

    def fit(self, X: Any, y: Any = None) -> Self:
        """Match constants with columns; no value of X is looked at.

        Raises:
            Refused: If a column has neither a value nor bounds, or names do not fit the columns.
            InvalidParameter: If there is not one value for each column, or one is no number.
        """
        names = self._look(X)
        read_flag(self.add_indicator, name="add_indicator")
        self.statistics_ = np.array([float(value) for value in self._constants(names)])
        return self

    def _constants(self, names: list[str] | None) -> list[Fraction]:
        size, said = self.n_features_in_, self.values
        if self.bounds is None and (said is None or (isinstance(said, Mapping) and len(said) < size)):
            raise Refused(
                "this needs values=… or bounds=… for every column",
                reason="a constant that is read from the rows, such as their mean, would move all rows with one person",
                way_out='declare constants, {"age": 40}, or bounds, {"age": (0, 120)}, whose middle then fills gaps',
            )
        if said is not None and not isinstance(said, (Mapping, Sequence, np.ndarray)):
            return [_constant(said)] * size
        if isinstance(said, (Sequence, np.ndarray)):
            if isinstance(said, (str, bytes)) or len(said) != size:
                raise InvalidParameter(f"values must be one number, or {size}, one for each column")
            return [_constant(value) for value in said]
        found = {place: _constant(value) for place, value in _by_place(said or {}, names, "values").items()}
        if len(found) < size:
            frame = read_bounds(self.bounds, size, names=names)
            found = {place: (low + high) / 2 for place, (low, high) in enumerate(frame.bounds)} | found
        return [found[place] for place in range(size)]

    def transform(self, X: Any) -> Floats:
        """Fill the gaps. Rows stay as private as they were."""
        rows = self._rows(X)
        gaps = np.isnan(rows)
        filled: Floats = np.where(gaps, self.statistics_, rows)
        return np.hstack([filled, gaps.astype(np.float64)]) if self.add_indicator else filled

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns as they came in, and indicators by them."""
        check_is_fitted(self)
        names = self._columns(input_features)
        return np.array(names + [f"{name}_missing" for name in names] * bool(self.add_indicator), dtype=object)


class Binner(_DeclaredStep):
    """Cut columns into bins with declared edges, before a private estimator: nothing is learnt from the rows.

    Edges are public: those of a questionnaire or of the law, not quantiles of the rows, which one person moves. A value
    at an edge is in the upper bin; values beyond the first and the last edge are in the first and the last bin. What
    is missing, infinite or no number is in no bin: all its columns are zero, or, as an ordinal, it stays missing.
    Results declare their bounds to the next step, which then needs none.

    Args:
        edges: Increasing public edges, at least three: one list for all columns, one for each in their order, or by
            name.
        encode: "onehot", a column of 0 and 1 for each bin, or "ordinal", the number of the bin from 0 on.
        drop_first: Whether the first bin of each column has no column of its own, which an intercept stands for.

    Examples:
        >>> import numpy as np
        >>> binner = dp.learn.sklearn.Binner(edges=[0, 18, 65, 120])
        >>> binner.fit_transform(np.array([[17], [18], [140]])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> binner.get_feature_names_out(["age"]).tolist()
        ['age[0, 18)', 'age[18, 65)', 'age[65, 120]']
    """

    def __init__(
        self,
        edges: Sequence[Number] | Sequence[Sequence[Number]] | Mapping[str, Sequence[Number]] | None = None,
        *,
        encode: str = "onehot",
        drop_first: bool = False,
    ) -> None:
        self.edges = edges
        self.encode = encode
        self.drop_first = drop_first

    def fit(self, X: Any, y: Any = None) -> Self:
        """Match edges with columns; no value of X is looked at.

        Raises:
            Refused: If there are no edges, or names do not fit the columns.
            InvalidParameter: If edges do not increase, or there is not one list for each column.
        """
        names = self._look(X)
        if self.encode not in _ENCODINGS:
            raise InvalidParameter(f"encode must be one of {', '.join(_ENCODINGS)}")
        if read_flag(self.drop_first, name="drop_first") and self.encode == "ordinal":
            raise InvalidParameter('drop_first is for encode="onehot"')
        self.bin_edges_ = tuple(np.array([float(edge) for edge in edges]) for edges in self._lists(names))
        return self

    def _lists(self, names: list[str] | None) -> list[list[Fraction]]:
        size, said = self.n_features_in_, self.edges
        if said is None:
            raise Refused(
                "this needs edges=[…] for every column",
                reason="quantiles of the rows, or their least and largest values, would move with one person",
                way_out='declare them: {"age": [0, 18, 65, 120]}',
            )
        if isinstance(said, Mapping):
            found = _by_place(said, names, "edges")
            if len(found) < size:
                raise Refused("edges does not name every column", way_out="name them all, or pick columns first")
            return [_edges(found[place]) for place in range(size)]
        if isinstance(said, (str, bytes)) or not isinstance(said, (Sequence, np.ndarray)) or not len(said):
            raise InvalidParameter("edges must be increasing numbers, or such a list for each column")
        if not isinstance(said[0], (Sequence, np.ndarray)):
            return [_edges(said)] * size
        if len(said) != size:
            raise InvalidParameter(f"edges has {len(said)} lists, and there are {size} columns")
        return [_edges(edges) for edges in said]

    def transform(self, X: Any) -> BoundedArray:
        """Return the bins of each row. Rows stay as private as they were."""
        rows = self._rows(X)
        bins = [
            np.where(np.isnan(column), np.nan, np.searchsorted(edges[1:-1], column, side="right"))
            for edges, column in zip(self.bin_edges_, rows.T, strict=True)
        ]
        if self.encode == "ordinal":
            most = max(len(edges) for edges in self.bin_edges_) - 2
            return BoundedArray.clamped(np.stack(bins, axis=1), 0.0, float(most))
        numbered = zip(self.bin_edges_, bins, strict=True)
        columns = [column == place for edges, column in numbered for place in self._places(edges)]
        return BoundedArray.clamped(np.stack(columns, axis=1).astype(np.float64), 0.0, 1.0)

    def _places(self, edges: Floats) -> range:
        return range(int(self.drop_first), len(edges) - 1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that come out: as they came in, or each with the ends of its bin."""
        check_is_fitted(self)
        names = self._columns(input_features)
        if self.encode == "ordinal":
            return np.array(names, dtype=object)
        return np.array(
            [
                f"{name}[{edges[place]:.15g}, {edges[place + 1]:.15g}{')' if place < len(edges) - 2 else ']'}"
                for name, edges in zip(names, self.bin_edges_, strict=True)
                for place in self._places(edges)
            ],
            dtype=object,
        )


def _require_table(X: Any) -> None:
    """Refuse by kind and shape what is no table."""
    if hasattr(X, "tocsr"):
        raise InvalidParameter("sparse tables are not read: hand over a dense array, or a table of pandas or polars")
    if len(getattr(X, "shape", ())) != 2 or not X.shape[1]:
        raise InvalidParameter(
            "X must be a two-dimensional array or a table of pandas or polars, with columns. Reshape your data: "
            "X.reshape(-1, 1) is one column, X.reshape(1, -1) one row"
        )


def _constant(value: Any) -> Fraction:
    return exact(value, name="a value")


def _edges(said: Any) -> list[Fraction]:
    if isinstance(said, (str, bytes)) or not isinstance(said, (Sequence, np.ndarray)):
        raise InvalidParameter("edges must be increasing numbers")
    found = [exact(edge, name="an edge") for edge in said]
    floats = [float(edge) for edge in found]
    if len(found) < 3 or any(low >= high for low, high in pairwise(floats)):
        raise InvalidParameter("edges must be at least three numbers that increase: those of two bins or more")
    return found


def _by_place(said: Mapping[str, Any], names: list[str] | None, parameter: str) -> dict[int, Any]:
    """Return what is said by name at the places of the columns."""
    if not said:
        return {}
    if names is None or len(set(names)) < len(names):
        raise Refused(
            f"{parameter} names columns, and the columns that arrive here have no names, or the same",
            reason="what is for which column would be a guess",
            way_out="hand over a table of pandas or polars; or say it in the order of the columns",
        )
    unknown = [str(name) for name in said if name not in names]
    if unknown:
        raise Refused(
            f"{parameter} does not fit the columns: there is no column {', '.join(unknown)}",
            way_out=f"those that arrive here are {', '.join(names)}",
        )
    return {names.index(name): value for name, value in said.items()}
