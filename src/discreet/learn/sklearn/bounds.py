"""Declared bounds of features, and tables that carry theirs along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.formatting import exponent
from discreet.mechanisms.grid import Grid
from discreet.robust.named_bounds import bounds_in_order
from discreet.robust.regression_design import HALF, Integers, centred
from discreet.schema.columns import Bounds, as_pairs, pair_of

__all__ = [
    "BoundedArray",
    "FeatureBounds",
    "FeatureFrame",
    "Pair",
    "declared_bounds",
    "is_by_place",
    "read_bounds",
    "read_ends",
    "read_pair",
]

Pair: TypeAlias = tuple[Fraction, Fraction]
FeatureBounds: TypeAlias = Bounds | Sequence[Bounds] | Mapping[str, Bounds] | NDArray[Any]


class BoundedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array whose maker clamped every value to one public pair of bounds, so that the next step need not ask.

    Rows and columns that are picked out keep the bounds; whatever is computed from it is a plain array again.
    """

    bounds: tuple[float, float] | None

    @classmethod
    def clamped(cls, values: NDArray[Any], low: float, high: float) -> BoundedArray:
        """Clamp and remember."""
        found: BoundedArray = np.clip(values, low, high).view(cls)
        found.bounds = (low, high)
        return found

    def __array_finalize__(self, other: Any) -> None:
        self.bounds = getattr(other, "bounds", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(part) if isinstance(part, BoundedArray) else part for part in inputs]
        if "out" in options:
            options["out"] = tuple(
                part.view(np.ndarray) if isinstance(part, BoundedArray) else part for part in options["out"]
            )
        return getattr(ufunc, method)(*plain, **options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = super().__array_function__(func, types, args, kwargs)
        return found if func in _PICKING or not isinstance(found, BoundedArray) else found.view(np.ndarray)

    def dot(self, *args: Any, **kwargs: Any) -> Any:
        """Multiply by a matrix: a plain array comes out."""
        return self.view(np.ndarray).dot(*args, **kwargs)


# What moves values and makes no new ones.
_PICKING = (np.take, np.compress, np.copy, np.reshape, np.squeeze, np.transpose)


def declared_bounds(X: Any) -> tuple[float, float] | None:
    """Return the bounds that a table brings along from the step before."""
    return X.bounds if isinstance(X, BoundedArray) else None


@final
@dataclass(frozen=True, slots=True)
class FeatureFrame:
    """Public bounds of each feature, moved to -1 and 1. What a row becomes depends on that row alone.

    Each value is clamped; what is missing or no number counts as the middle.
    """

    bounds: tuple[Pair, ...]

    def __post_init__(self) -> None:
        _ = self.grids  # Refuses bounds that no grid has.

    @property
    def grids(self) -> tuple[Grid, ...]:
        return tuple(Grid.between(low, high) for low, high in self.bounds)

    @property
    def limits(self) -> NDArray[np.float64]:
        """Return the bounds as floats, one row (low, high) a feature."""
        return np.array([[float(low), float(high)] for low, high in self.bounds])

    def steps(self, columns: Sequence[Any]) -> Integers:
        """Place the columns in steps of 1 / HALF, from -HALF to HALF, one row a record. This is private."""
        if len(columns) != len(self.bounds):
            raise InvalidParameter(f"there must be {len(self.bounds)} columns, as many as declared bounds")
        return np.stack([centred(grid, column) for grid, column in zip(self.grids, columns, strict=True)], axis=1)

    def scaled(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Clamp a table of floats that is to be predicted, and move it to [-1, 1]."""
        low, high = self.limits.T
        inside = (2 * np.clip(values, low, high) - (low + high)) / (high - low)
        found: NDArray[np.float64] = np.clip(inside, -1.0, 1.0)  # Rounding may lead out by a last bit.
        return found

    @property
    def step(self) -> float:
        """The size of a step, in the frame."""
        return 1 / HALF


def read_bounds(
    bounds: Any, features: int, *, brought: tuple[float, float] | None = None, names: Sequence[str] | None = None
) -> FeatureFrame:
    """Read one pair for all features, or one for each, in order or by name; refuse where there are none."""
    given = bounds_in_order(brought if bounds is None else bounds, names)
    if given is None:
        raise Refused(
            'this needs bounds=(low, high), or one such pair for each column: {"age": (0, 120), …}',
            reason="values are clamped to bounds that must not be read from the data: they set the noise",
            way_out="declare what is publicly known of the columns (units, a questionnaire, the law); or put "
            "discreet.learn.sklearn.StandardScaler right before this in a Pipeline: it clamps, and tells its bounds "
            "(within a ColumnTransformer or FeatureUnion, whose other columns have none, they are lost: then give one "
            "pair here that holds all columns, such as bounds=(-4, 4), the limit of the scaler); or ask a session for "
            "private_bounds and declare its answer",
        )
    pairs = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(pairs, Sequence) or isinstance(pairs, (str, bytes)) or not len(pairs):
        raise InvalidParameter('bounds must be a pair (low, high), or one for each column, such as {"age": (0, 120)}')
    if not isinstance(pairs[0], (Sequence, np.ndarray)) or isinstance(pairs[0], (str, bytes)):
        return FeatureFrame((read_pair(pairs, "bounds"),) * features)
    if len(pairs) != features:
        raise InvalidParameter(f"bounds has {len(pairs)} pairs, and there are {features} columns")
    return FeatureFrame(tuple(read_pair(pair, "bounds") for pair in pairs))


def is_by_place(bounds: Any) -> bool:
    """Tell whether bounds have a pair for each column, in their order."""
    bounds = as_pairs(bounds)
    if not isinstance(bounds, (Sequence, np.ndarray)) or isinstance(bounds, (str, bytes)) or not len(bounds):
        return False
    return isinstance(bounds[0], (Sequence, np.ndarray)) and not isinstance(bounds[0], (str, bytes))


def read_pair(pair: Any, name: str) -> Pair:
    """Read one pair (low, high) of bounds, moved outwards to where a grid has both."""
    return _on_a_grid(*read_ends(pair, name))


def read_ends(pair: Any, name: str) -> Pair:
    """Read one pair (low, high) as it is."""
    low, high = pair_of(pair, name=name)
    first, last = exact(low, name=f"low of {name}"), exact(high, name=f"high of {name}")
    if not first < last:
        raise InvalidParameter(f"{name} must be a pair (low, high) with low below high")
    return first, last


def _on_a_grid(low: Fraction, high: Fraction) -> Pair:
    """Round bounds outwards to nine digits of their width: those of floats have more, and then no grid has both."""
    step = Fraction(10) ** (exponent(high - low) - 9)
    return (low / step).__floor__() * step, (high / step).__ceil__() * step
