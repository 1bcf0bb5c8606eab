"""A column of numbers with declared bounds, cut into bins that are public or found privately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer
from discreet.formatting import plain, record
from discreet.frames.column import Column
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_flag, settle
from discreet.schema.columns import Declared, between
from discreet.synth.domain.value_forms import as_days, as_numbers, below, day_number, day_of

__all__ = ["STEPS", "Bins", "Numeric"]

Bins: TypeAlias = int | tuple[Fraction, ...] | Literal["quantiles"]
STEPS = (1 << 16) - 1  # The last step of the fine scale on which embeddings see a number.
_MOST = 1 << 12  # Bins of one column.
_WIDEST = 1 << 52


@final
@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers from `low` to `high`; what lies outside is clamped.

    What is no number (NULL, NaN, text that does not parse) goes to the cell of missing values if `null` declares one,
    else to the middle. `bins` says how methods that count see it: that many bins of equal width, the inner edges
    between bins, or "quantiles" for edges that are found privately and paid for.

    Args:
        low: The lower bound, public.
        high: The upper bound, public.
        whole: Whether values are whole numbers.
        bins: How many bins of equal width, the inner edges, or "quantiles" for edges that are found privately.
        null: Whether there is a cell for missing values.

    Raises:
        InvalidParameter: If the bounds or the edges are in the wrong order.

    Examples:
        >>> dp.synth.Numeric(0, 100, whole=True, bins=4).size
        4
    """

    low: Fraction
    high: Fraction
    whole: bool = False
    bins: Bins = 32
    null: bool = False
    is_date: bool = False  # the numbers are days since 1970, and shown as dates

    __repr__ = record

    def __init__(
        self,
        low: Number,
        high: Number,
        *,
        whole: bool = False,
        bins: int | Sequence[Number] | Literal["quantiles"] = 32,
        null: bool = False,
    ) -> None:
        first, last = exact(low, name="low"), exact(high, name="high")
        if not first < last:
            raise InvalidParameter("low must be below high")
        if read_flag(whole, name="whole") and (first.denominator != 1 or last.denominator != 1):
            raise InvalidParameter("low and high must be whole numbers where the column holds whole numbers")
        if max(abs(first), abs(last)) > _WIDEST:
            raise InvalidParameter("low and high must lie within 2^52 of zero")
        settle(self, low=first, high=last, whole=whole, null=read_flag(null, name="null"), is_date=False)
        settle(self, bins=_read_bins(bins, first, last))
        _ = self.grid  # Refuses bounds that no grid takes.

    @classmethod
    def dates(
        cls,
        first: date,
        last: date,
        *,
        bins: int | Sequence[date] | Literal["quantiles"] = 32,
        null: bool = False,
    ) -> Numeric:
        """Declare a column of dates; of moments, the day counts. Edges between bins are dates too."""
        if not isinstance(first, date) or not isinstance(last, date):
            raise InvalidParameter("the first and the last day must be dates, such as datetime.date(2025, 1, 31)")
        edges: Any = bins
        if isinstance(bins, Sequence) and not isinstance(bins, str):
            edges = [day_number(edge) if isinstance(edge, date) else edge for edge in bins]
        made = cls(day_number(first), day_number(last), whole=True, bins=edges, null=null)
        settle(made, is_date=True)
        return made

    @property
    def declared(self) -> Declared:
        """The same column for SQL, statistics and learning: its bounds without bins."""
        if self.is_date:
            return between(day_of(int(self.low)), day_of(int(self.high)))
        return between(self.low, self.high, whole=self.whole)

    @property
    def is_settled(self) -> bool:
        """Whether the bins are known."""
        return self.bins != "quantiles"

    @property
    def grid(self) -> Grid:
        """The public grid on which every value is placed: whole numbers, or about a million steps."""
        return _grid(self.low, self.high, self.whole)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first grid index of each bin; the first bin begins at `low` and the last one holds `high`."""
        return np.array(_starts(self.low, self.high, self.whole, self.bins), dtype=np.int64)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(_starts(self.low, self.high, self.whole, self.bins)) + self.null

    @property
    def null_code(self) -> int | None:
        """The cell of missing values, if there is one."""
        return self.size - 1 if self.null else None

    def cut_at(self, cuts: Iterable[int]) -> Numeric:
        """Return the same column with more edges, at these grid indices."""
        found = sorted({*self.starts.tolist(), *(cut for cut in cuts if self.grid.first < cut <= self.grid.last)})
        return self.with_edges(cut * self.grid.step for cut in found[1:])

    def with_edges(self, edges: Iterable[Fraction]) -> Numeric:
        """Return the same column with these inner edges."""
        made = Numeric(self.low, self.high, whole=self.whole, null=self.null, bins=tuple(edges))
        settle(made, is_date=self.is_date)
        return made

    def label(self, index: int) -> str:
        """Return a grid point as people read it."""
        return day_of(index).isoformat() if self.is_date else plain(index * self.grid.step)

    def placed(self, column: Column) -> NDArray[np.int64]:
        """Return the grid point of every value. This is private."""
        return self.grid.indices(self._numbers(column))

    def codes(self, column: Column) -> NDArray[np.int32]:
        """Return the bin of every value. This is private."""
        codes = np.searchsorted(self.starts, self.placed(column), side="right").astype(np.int32) - np.int32(1)
        if self.null_code is not None:
            codes[self.absent(column)] = self.null_code
        return codes

    def steps(self, column: Column) -> NDArray[np.int64]:
        """Return every value in steps from 0 at `low` to 65535 at `high`. This is private."""
        grid = self.grid
        moved = self.placed(column) - grid.first
        # Exact: a width of at most 2^53 steps is first brought below 2^46.
        shift = max(0, grid.width.bit_length() - 46)
        steps: NDArray[np.int64] = ((moved >> shift) * STEPS + (grid.width >> shift) // 2) // (grid.width >> shift)
        return np.minimum(steps, STEPS)

    def absent(self, column: Column) -> NDArray[np.bool_]:
        """Tell which values are no numbers. This is private."""
        # The grid puts them where it is told: what moves with the default is no number.
        numbers = self._numbers(column)
        ends = [_with_default(self.grid, at).indices(numbers) for at in (self.low, self.high)]
        return np.asarray(ends[0] != ends[1])

    def decode(self, codes: NDArray[np.int32], scores: NDArray[np.float64] | None = None) -> Column:
        """Draw a value of each bin, every grid point alike; with scores, a bin's values are in their order."""
        starts, gone = self.starts, self._gone(codes)
        ends = np.append(starts[1:], self.grid.last + 1)
        bins = np.minimum(codes, len(starts) - 1)
        drawn = starts[bins] + below(ends[bins] - starts[bins])
        if scores is not None:
            drawn[np.lexsort((scores, codes))] = drawn[np.lexsort((drawn, codes))]
        return Column(self._values(drawn), gone)

    def from_steps(self, steps: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Column:
        """Return the values of steps from 0 to 65535; where there is a cell of missing values, they may be masked."""
        inside = np.clip(np.asarray(steps, dtype=np.float64), 0, STEPS) / STEPS
        indices = self.grid.first + np.rint(inside * self.grid.width).astype(np.int64)
        gone = None if not self.null else np.zeros(len(indices), dtype=bool) if missing is None else missing
        return Column(self._values(np.clip(indices, self.grid.first, self.grid.last)), gone)

    def _numbers(self, column: Column) -> Column:
        return as_days(column) if self.is_date else as_numbers(column)

    def _gone(self, codes: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        return None if self.null_code is None else np.asarray(codes == self.null_code)

    def _values(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        if self.is_date:
            return indices.astype("datetime64[D]")
        if self.whole:
            return indices
        step = self.grid.step
        # Divided rather than multiplied by a rounded step: a third decimal stays a third decimal.
        values = indices * float(step.numerator) / float(step.denominator)
        return np.asarray(np.clip(values, float(self.low), float(self.high)))


def _with_default(grid: Grid, default: Fraction) -> Grid:
    """Return the same grid with another place for what is no number."""
    return replace(grid, default=default)


def _read_bins(bins: object, low: Fraction, high: Fraction) -> Bins:
    if bins == "quantiles" and isinstance(bins, str):
        return "quantiles"
    if isinstance(bins, Sequence) and not isinstance(bins, str):
        return _read_edges(bins, low, high)
    number = integer(bins, name="bins")  # type: ignore[arg-type]
    if not 1 <= number <= _MOST:
        raise InvalidParameter(f"bins must lie between 1 and {_MOST}")
    return number


def _read_edges(edges: Sequence[Number], low: Fraction, high: Fraction) -> tuple[Fraction, ...]:
    inner = tuple(exact(edge, name="an edge") for edge in edges)
    if len(inner) >= _MOST or any(after <= before for before, after in pairwise(inner)):
        raise InvalidParameter(f"edges must rise, and be fewer than {_MOST}")
    if inner and not (low < inner[0] and inner[-1] <= high):
        raise InvalidParameter("edges must lie between low and high: low itself is no edge between two bins")
    return inner


@lru_cache(maxsize=1024)
def _grid(low: Fraction, high: Fraction, whole: bool) -> Grid:
    return Grid.between(low, high, step=1 if whole else None)


@lru_cache(maxsize=1024)
def _starts(low: Fraction, high: Fraction, whole: bool, bins: Bins) -> tuple[int, ...]:
    """Return the first index of each bin; bins without a grid point are left out."""
    grid = _grid(low, high, whole)
    if bins == "quantiles":
        raise InvalidParameter("the bins of this column are not found yet: dp.synthesize finds them, and pays")
    if isinstance(bins, int):
        points = grid.width + 1
        inner = [grid.first + -(-points * place // bins) for place in range(1, bins)]
    else:
        inner = [-int(-edge // grid.step) for edge in bins]
    return tuple(sorted({grid.first, *(start for start in inner if grid.first < start <= grid.last)}))
