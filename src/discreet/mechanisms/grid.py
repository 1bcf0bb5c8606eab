"""The public grid: every number becomes a whole number of steps before anything else happens to it.

A declared default takes the place of what is no number (None, NaN, NA, text that does not parse, any other
object). Everything else is clamped to the bounds and rounded to the nearest multiple of the step, half to even, by
its exact value: a float is the dyadic number it stores, a decimal and a text are what they say. The rule is total
and looks at one value at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, down, exact, positive, up
from discreet.formatting import record
from discreet.frames.column import Data, as_column, column_of
from discreet.frames.tables import table_columns
from discreet.mechanisms.parameters import settle

__all__ = [
    "Grid",
    "compact",
    "exact_number",
    "exact_product_sum",
    "exact_square_sum",
    "exact_sum",
    "nearest_float",
    "nearest_floats",
    "number_rows",
    "wide",
]

_LARGEST = 1 << 52  # Steps; every index is exact in 64-bit integers and in floats, and so are differences.
_STEPS = (Fraction(1, 1 << 500), Fraction(1 << 500))  # Floats reach them without overflow or underflow.
_HUGE = 1100  # Decimal exponents; beyond them a number is outside every grid, or rounds to zero.
_EXACT = 1 << 62
_LARGEST_INT64 = (1 << 63) - 1
_SAFE = 1 << 61  # Sums and differences of two such numbers fit 64 bits.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The multiples of `step` from `low` to `high`.

    Args:
        low: The lower bound, a multiple of the step.
        high: The upper bound, a multiple of the step.
        step: The distance of two grid points, from 2^-500 to 2^500.
        default: What a missing value counts as, within the bounds.

    Raises:
        InvalidParameter: If the bounds are in the wrong order or not on the grid.

    Examples:
        >>> grid = dp.mechanisms.Grid.between(0, 120, step=1)
        >>> grid.index(130), grid.index(44.4), grid.width
        (120, 44, 120)
    """

    low: Fraction
    high: Fraction
    step: Fraction
    default: Fraction  # where there is no number

    __repr__ = record

    def __post_init__(self) -> None:
        step = positive(self.step, name="step")
        if not _STEPS[0] <= step <= _STEPS[1]:
            raise InvalidParameter("step must lie between 2^-500 and 2^500")
        low, high = exact(self.low, name="low"), exact(self.high, name="high")
        if not low < high:
            raise InvalidParameter("low must be below high")
        default = exact(self.default, name="default")
        if not low <= default <= high:
            raise InvalidParameter("default must lie between low and high")
        for name, value in (("low", low), ("high", high), ("default", default)):
            _check_multiple(value, step, name)
        settle(self, low=low, high=high, step=step, default=default)

    @classmethod
    def between(cls, low: Number, high: Number, *, step: Number | None = None, default: Number | None = None) -> Grid:
        """Make a grid from bounds alone.

        The step is a power of ten, about a millionth of the width, or a fraction of it on which both bounds lie.
        The default value is the middle, or the grid point just below it.
        """
        first, last = exact(low, name="low"), exact(high, name="high")
        if not first < last:
            raise InvalidParameter("low must be below high")
        size = _default_step(first, last) if step is None else positive(step, name="step")
        middle = ((first + last) / 2 / size).__floor__() * size
        return cls(
            low=first,
            high=last,
            step=size,
            default=middle if default is None else exact(default, name="default"),
        )

    @property
    def first(self) -> int:
        """The lowest index, `low` in steps."""
        return int(self.low / self.step)

    @property
    def last(self) -> int:
        """The highest index, `high` in steps."""
        return int(self.high / self.step)

    @property
    def middle(self) -> int:
        """The index of the middle, or of the grid point just below it."""
        return (self.first + self.last) // 2

    @property
    def width(self) -> int:
        """The distance of the bounds, in steps."""
        return self.last - self.first

    def index(self, value: object) -> int:
        """Place one value on the grid."""
        number = exact_number(value)
        if number is None:
            return int(self.default / self.step)
        # Clamping first keeps a huge number from costing anything; the bounds are grid points, so it is the same.
        return round(min(max(number, self.low), self.high) / self.step)

    def indices(self, data: Data) -> NDArray[np.int64]:
        """Place every value of a column on the grid; the same as `index` one by one."""
        column = column_of(data)
        placed = self._place(column.values)
        if column.missing is not None:
            placed[column.missing] = int(self.default / self.step)
        return placed

    def _place(self, values: Any) -> NDArray[np.int64]:
        kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
        if kind == "f":
            with np.errstate(over="ignore"):
                return self._place_floats(values.astype(np.float64))
        if kind in "bi" or (kind == "u" and values.dtype.itemsize < 8):
            return self._place_integers(values.astype(np.int64))
        if kind == "u" and self.high < _LARGEST_INT64:
            # What does not fit 63 bits lies above the upper bound anyway.
            return self._place_integers(np.minimum(values, _LARGEST_INT64).astype(np.int64))
        if kind in "uOU":
            return self._place_objects(values)
        return np.full(len(values), int(self.default / self.step), dtype=np.int64)  # Dates, bytes, complex.

    def _place_objects(self, values: Any) -> NDArray[np.int64]:
        return np.array([self.index(value) for value in values], dtype=np.int64)

    def _place_floats(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        absent = np.isnan(values)
        # One step of room on each side, so that rounding the bounds to floats cannot matter.
        inside = np.clip(np.where(absent, 0.0, values), down(self.low - self.step), up(self.high + self.step))
        ratios = inside / float(self.step)
        nearest = np.rint(ratios)
        placed = nearest.astype(np.int64)
        if not _is_power_of_two(self.step):
            self._settle_doubts(placed, inside, ratios, nearest)
        placed = np.clip(placed, self.first, self.last)
        placed[absent] = int(self.default / self.step)
        return placed

    def _settle_doubts(
        self,
        placed: NDArray[np.int64],
        values: NDArray[np.float64],
        ratios: NDArray[np.float64],
        nearest: NDArray[np.float64],
    ) -> None:
        """Decide exactly where the float quotient lies too near to the middle between two grid points.

        The step and the quotient are rounded once each, so the quotient is off by less than 2^-51 of itself; the
        difference to the nearest integer is exact. Division by a power of two has no error at all.
        """
        doubt = np.abs(np.abs(ratios - nearest) - 0.5) <= np.abs(ratios) * 2.0**-51 + 2.0**-60
        if not doubt.any():
            return
        distinct, back = np.unique(values[doubt], return_inverse=True)
        placed[doubt] = np.array([self.index(float(value)) for value in distinct], dtype=np.int64)[back]

    def _place_integers(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        over, under = self.step.numerator, self.step.denominator
        # One step of room, as above; the limits of the type are inside it where they are nearer.
        low = _within_int64(int((self.low - self.step).__floor__()))
        high = _within_int64(int((self.high + self.step).__ceil__()))
        inside = np.clip(values, low, high)
        if max(-low, high) * under >= _EXACT or over >= _EXACT:
            distinct, back = np.unique(inside, return_inverse=True)
            return self._place_objects(distinct.tolist())[back]
        whole, rest = np.divmod(inside * under, over)
        up_one = (rest > over - rest) | ((rest == over - rest) & (whole % 2 == 1))
        placed: NDArray[np.int64] = np.clip(whole + up_one, self.first, self.last)
        return placed


def _within_int64(value: int) -> int:
    """Move a bound into the type of the values; a whole grid may lie beyond them all, on either side."""
    return min(max(value, -(1 << 63)), _LARGEST_INT64)


def _check_multiple(value: Fraction, step: Fraction, name: str) -> None:
    steps = value / step
    if steps.denominator != 1:
        raise InvalidParameter(f"{name} must be a multiple of step")
    if abs(steps) > _LARGEST:
        raise InvalidParameter(f"{name} must lie within 2^52 steps of zero: choose a larger step")


def _default_step(low: Fraction, high: Fraction) -> Fraction:
    """Return a power of ten near a millionth of the width, divided until both bounds are multiples."""
    target = (high - low) / 10**6
    power = len(str(target.numerator)) - len(str(target.denominator))
    step = Fraction(10) ** power
    if step > target:
        step /= 10
    return step / math.lcm((low / step).denominator, (high / step).denominator)


def _is_power_of_two(step: Fraction) -> bool:
    return (step.numerator & (step.numerator - 1)) == 0 and (step.denominator & (step.denominator - 1)) == 0


def exact_number(value: object) -> Fraction | None:
    """Read the exact value of a datum, None where it has none."""
    if isinstance(value, np.timedelta64):
        return None  # NumPy calls it an integer, but it is none.
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (bool, np.bool_)):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        return _from_float(float(value))
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, str):
        return _from_text(value)
    return None


def _from_float(value: float) -> Fraction | None:
    if value != value:
        return None
    if value in (float("inf"), float("-inf")):
        return Fraction(2 if value > 0 else -2) * _LARGEST * _STEPS[1]
    return Fraction(value)


def _from_decimal(value: Decimal) -> Fraction | None:
    if value.is_nan():
        return None
    if value.is_infinite() or (value != 0 and value.adjusted() > _HUGE):
        return Fraction(-2 if value.is_signed() else 2) * _LARGEST * _STEPS[1]
    return Fraction(0) if value == 0 or value.adjusted() < -_HUGE else Fraction(value)


def _from_text(value: str) -> Fraction | None:
    try:
        return exact(value)
    except InvalidParameter:
        return None


def nearest_floats(data: Any) -> NDArray[np.float64]:
    """Read a column as floats by a total rule: the nearest ones, and what is no number is NaN. This is private."""
    column = as_column(data)
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # A warning would tell that a value is huge.
            found = values.astype(np.float64)
    else:
        found = np.array([nearest_float(value) for value in column.objects()], dtype=np.float64)
    return found if column.missing is None else np.where(column.missing, np.nan, found)


def nearest_float(value: object) -> float:
    """Return the float that is nearest to a datum, NaN where it is no number."""
    if isinstance(value, (float, np.floating)) or (isinstance(value, Decimal) and not value.is_nan()):
        # Infinite ones stay so, as in a column of floats: a text in one row turns that into one of objects.
        return float(value)
    number = exact_number(value)
    if number is None:
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def number_rows(table: Any) -> NDArray[np.float64]:
    """Read a table, or an array of two dimensions, as rows of floats, column by column: none changes another's type."""
    return np.stack([nearest_floats(column) for column in table_columns(table)], axis=1)


def exact_sum(indices: NDArray[np.int64]) -> int:
    """Add whole numbers of at most 2^53 in size without overflow; the same in any order."""
    block = 512  # 2^53 times 2^9 is 2^62.
    whole = len(indices) // block * block
    sums = indices[:whole].reshape(-1, block).sum(axis=1)
    return int(sum(sums.tolist())) + int(indices[whole:].sum())


def exact_square_sum(indices: NDArray[np.int64]) -> int:
    """Add the squares of whole numbers of at most 2^52 in size, by two digits of 26 bits each."""
    high, low = indices >> 26, indices & ((1 << 26) - 1)
    return (exact_sum(high * high) << 52) + (exact_sum(high * low) << 27) + exact_sum(low * low)


def exact_product_sum(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Add the products of whole numbers of at most 2^52 in size, row by row, by two digits of 26 bits each."""
    (high, low), (above, below) = ((part >> 26, part & ((1 << 26) - 1)) for part in (one, other))
    middle = exact_sum(high * below) + exact_sum(low * above)
    return (exact_sum(high * above) << 52) + (middle << 26) + exact_sum(low * below)


def wide(array: NDArray[Any]) -> NDArray[np.object_]:
    """Return the same numbers as Python integers, which never overflow."""
    return array.astype(object)


def compact(array: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in 64 bits if they are far from the limit, else as they are."""
    if array.dtype == np.int64 or not array.size:
        return array.astype(np.int64)
    fits = max(abs(int(array.max())), abs(int(array.min()))) < _SAFE
    return array.astype(np.int64) if fits else array
