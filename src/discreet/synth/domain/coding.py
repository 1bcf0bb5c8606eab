"""Rows as whole numbers of a public shape, by a rule for each row alone; and back to declared values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.bounded_memberships import kept_rows
from discreet.adaptive.truncated_histogram import TruncatedHistogram
from discreet.errors import InvalidParameter
from discreet.frames.cells import is_missing
from discreet.frames.column import Column, taken
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.quantile import Quantile
from discreet.privacy.events import GDP, ApproxDP, BoundedRange, Composed, Event, Repeated
from discreet.privacy.relation import Relation
from discreet.synth.domain.category import LONGEST, OTHER, Category, text_of
from discreet.synth.domain.domain import Domain, DomainColumn
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.source_tables import UnreadTable, table_of
from discreet.synth.gaussian_prices import choice_epsilon

__all__ = ["CellSearch", "Coder", "QuantileBins", "TableRows"]


@final
@dataclass(frozen=True, slots=True)
class Coder:
    """The rule by which values become cells and steps, and the way back. It is public."""

    domain: Domain

    def codes(self, table: Any) -> NDArray[np.int32]:
        """Return the cell of every value, a row for each row. This is private."""
        return self._codes(self._read(table))

    def steps(self, table: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the numbers in steps from 0 to 65535, and where they are missing and may be. This is private."""
        return self._steps(self._read(table))

    def decode(self, codes: NDArray[Any], scores: Mapping[int, NDArray[np.float64]] | None = None) -> dict[str, Column]:
        """Return columns of declared values for cells; within a bin every number is as likely as any other.

        With scores of a numeric column, the numbers that a bin holds are dealt to its rows in the order of these.
        """
        inside, found = self._clipped(codes), {}
        for place, (name, column) in enumerate(self._columns):
            own = scores.get(place) if scores else None
            found[name] = column.decode(inside[:, place]) if own is None else column.decode(inside[:, place], own)
        return found

    def decode_steps(
        self, codes: NDArray[Any], steps: NDArray[Any], missing: NDArray[np.bool_] | None = None
    ) -> dict[str, Column]:
        """Return columns for cells of the categories and steps of the numbers, each in the order of the domain.

        `codes` has a column for each category, `steps` and `missing` one for each numeric column.
        """
        found: dict[str, Column] = {}
        for name, column in self._columns:
            if isinstance(column, Numeric):
                place = self.domain.numeric.index(name)
                found[name] = column.from_steps(steps[:, place], None if missing is None else missing[:, place])
            else:
                place = self.domain.categorical.index(name)
                found[name] = column.decode(np.clip(codes[:, place], 0, column.size - 1).astype(np.int32))
        return found

    @property
    def _columns(self) -> list[tuple[str, Any]]:
        return list(self.domain.columns.items())

    def _read(self, table: Any) -> dict[str, Column]:
        return table_of(table).columns(self.domain.names, numbers=self.domain.numbers)

    def _clipped(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        if codes.ndim != 2 or codes.shape[1] != len(self.domain.names):
            raise InvalidParameter("codes must have one column for each column of the domain")
        return np.asarray(np.clip(codes, 0, np.array(self.domain.sizes) - 1), dtype=np.int32)

    def _codes(self, columns: Mapping[str, Column]) -> NDArray[np.int32]:
        return np.column_stack([column.codes(columns[name]) for name, column in self._columns])

    def _steps(self, columns: Mapping[str, Column]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        rows = len(columns[self.domain.names[0]])
        numbers = [(column, columns[name]) for name, column in self._columns if isinstance(column, Numeric)]
        if not numbers:
            return np.empty((rows, 0), dtype=np.int64), np.empty((rows, 0), dtype=np.bool_)
        missing = [column.absent(own) if column.null else np.zeros(rows, dtype=bool) for column, own in numbers]
        return np.column_stack([column.steps(own) for column, own in numbers]), np.column_stack(missing)


@final
@dataclass(frozen=True, eq=False)
class TableRows:
    """The rows of a table that count, once they are paid for: what a method reads. It never prints what it holds.

    With a `unit` column, at most `rows_per_unit` rows of each unit are there, chosen by one secret draw that all
    readings share.
    """

    coder: Coder
    _table: UnreadTable = field(repr=False)
    unit: str | None = None
    rows_per_unit: int = 1

    def codes(self) -> NDArray[np.int32]:
        """Return the cell of every value, (rows, columns). This is private."""
        kept: NDArray[np.int32] = self.coder._codes(self._columns)[self._kept]
        return kept

    def steps(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the numeric columns in steps from 0 to 65535, and where they are missing. This is private."""
        steps, missing = self.coder._steps(self._columns)
        return steps[self._kept], missing[self._kept]

    def columns(self) -> dict[str, Column]:
        """Return the values as they are, column by column: only for finding cells that nobody declared. Private."""
        return {name: taken(self._columns[name], self._kept) for name in self.coder.domain.names}

    def categories(self) -> NDArray[np.int32]:
        """Return the cells of the categorical columns alone. This is private."""
        domain = self.coder.domain
        return self.codes()[:, [domain.place(name) for name in domain.categorical]]

    @cached_property
    def _columns(self) -> dict[str, Column]:
        domain = self.coder.domain
        names = domain.names if self.unit is None else (*domain.names, self.unit)
        return self._table.columns(names, numbers=domain.numbers)

    @cached_property
    def _kept(self) -> Any:
        return slice(None) if self.unit is None else kept_rows(self._columns[self.unit], self.rows_per_unit)


# --- found_cells ---
# Cells that nobody declared, found privately: values that enough rows share, and bins at about equal counts.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellSearch:
    """Find the values of unlisted categories and the bins of numbers, from one row of each unit.

    Guarantee   Gaussian privacy of `mu_squared`, and delta; or, where that is not said, (epsilon, delta). Both are
                shared evenly between the columns that are found; one row of a unit is looked at.
    Theorem     A truncated histogram for each category: values that the neighbour has too are counted with noise, the
                others, which one unit alone has, are shown with chance delta at most [KKMN09, Vad17, WKZK24]. Medians
                of medians for each numeric column [KSS22], by choices that take part with the mu of their trade-off
                function [DR19, DRS22]. What columns spend adds up: mu^2, or epsilon, and delta.
    Utility     with k columns a value is found if about 1 + sqrt(k / mu^2) z rows have it, where noise exceeds z
                deviations with chance delta / k; with epsilon alone about (k / epsilon) ln(k / delta).
    """

    domain: Domain
    delta: Fraction  # of values that one unit alone has; of no use where no category is to be found
    relation: Relation
    epsilon: Fraction = Fraction(0)
    mu_squared: Fraction | None = None

    @property
    def event(self) -> Event:
        """What is spent."""
        if self.mu_squared is None:
            return ApproxDP(self.epsilon, self.delta)
        noise = GDP(mu_squared=self.mu_squared)
        return Composed([noise, ApproxDP(0, self.delta)]) if self.delta else noise

    @property
    def largest(self) -> Domain:
        """A public domain with as many cells as could be found, to plan with."""
        return self._with({name: _largest(self.domain.columns[name]) for name in self._open})

    def settled(self, rows: TableRows) -> Domain:
        """Find what is open. This reads; the charge is the caller's."""
        columns = rows.columns()
        return self._with({name: self._found(self.domain.columns[name], columns[name]) for name in self._open})

    @property
    def texts(self) -> list[str]:
        """The categories whose values are to be found."""
        return [name for name in self._open if isinstance(self.domain.columns[name], Category)]

    @property
    def _open(self) -> list[str]:
        return [name for name, column in self.domain.columns.items() if not column.is_settled]

    def _with(self, columns: dict[str, DomainColumn]) -> Domain:
        domain = Domain({**self.domain.columns, **columns})
        settle(domain, impossible=self.domain.impossible)  # No rule is about a column that was open.
        return domain

    def _found(self, column: DomainColumn, values: Column) -> DomainColumn:
        if isinstance(column, Numeric):
            finder = QuantileBins(column=column, epsilon=self._of_medians, relation=self.relation)
            return column.with_edges(finder.edges(values))
        return _kept(column, self.histogram.measure(_texts(values)))

    @property
    def histogram(self) -> TruncatedHistogram:
        """What finds the values of one category."""
        delta = self.delta / len(self.texts)
        if self.mu_squared is None:
            return TruncatedHistogram.laplace(self.epsilon / len(self._open), delta, relation=self.relation)
        noise = GaussianNoise(squared_multiplier=len(self._open) / self.mu_squared)
        return TruncatedHistogram(noise=noise, delta=delta, relation=self.relation)

    @property
    def _of_medians(self) -> Fraction:
        """The epsilon of all levels of one column's bins."""
        if self.mu_squared is None:
            return self.epsilon / len(self._open)
        return QuantileBins.levels * choice_epsilon(self.mu_squared / len(self._open) / QuantileBins.levels)


def _kept(column: Category, found: tuple[tuple[str, int], ...]) -> Category:
    """Keep the most frequent values, in the order of their names."""
    named = (one for one in found if one[0] != OTHER and len(one[0]) <= LONGEST)
    ranked = sorted(named, key=lambda one: (-one[1], one[0]))
    return Category(sorted(text for text, _ in ranked[: column.most]), other=True, null=column.null)


def _texts(column: Column) -> list[str | None]:
    """Return what a category of texts would see of each row, None where there is no such value."""
    return [None if is_missing(value) else text_of(value) for value in column.objects()]


def _largest(column: DomainColumn) -> DomainColumn:
    if isinstance(column, Numeric):
        edges = np.linspace(float(column.low), float(column.high), QuantileBins.bins + 1)[1:-1]
        inner = sorted({Fraction(edge) for edge in edges if column.low < Fraction(edge) <= column.high})
        return column.with_edges(inner)
    return Category([f"value {place}" for place in range(column.most or 1)], other=True, null=column.null)


# --- quantile_bins: Bins of about equal counts: the median first, then the medians of both halves, and so on. ---


_HALF = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileBins:
    """Find the edges between sixteen bins of about equal counts.

    Guarantee   epsilon: `levels` choices of bounded range, one after the other.
    Theorem     A row is in one part of each level, so one median of a level depends on it; under replace-one two may,
                or one by twice as much, and each choice has half the epsilon. [KSS22, Smi11]
    Utility     ranks are off by about (levels / epsilon) ln(points of the grid) at each level.
    """

    levels: ClassVar[int] = 4
    bins: ClassVar[int] = 1 << levels

    column: Numeric
    epsilon: Fraction
    relation: Relation

    @property
    def choice(self) -> Fraction:
        """The epsilon of one median, for a row more or less."""
        return self.epsilon / self.levels / (1 if self.relation is Relation.ADD_REMOVE else 2)

    @property
    def event(self) -> Repeated:
        """What is spent."""
        return Repeated(BoundedRange(self.epsilon / self.levels), self.levels)

    def edges(self, values: Column) -> tuple[Fraction, ...]:
        """Find the edges. This reads; the charge is the caller's."""
        placed = self.column.placed(values)
        if self.column.null:
            placed = placed[~self.column.absent(values)]
        grid = self.column.grid
        found = set(self._cut(placed, grid.first, grid.last, self.levels))
        return tuple(sorted(edge * grid.step for edge in found if edge > grid.first))

    def _cut(self, placed: NDArray[np.int64], first: int, last: int, levels: int) -> Iterator[int]:
        """Cut the grid points from first to last, with the values among them, into parts."""
        if not levels or first == last:
            return
        places = Grid(low=Fraction(first), high=Fraction(last), step=Fraction(1), default=Fraction(first))
        median = Quantile(quantile=_HALF, epsilon=self.choice, grid=places, relation=Relation.ADD_REMOVE)
        middle = max(first + 1, int(median.release(placed).value))
        yield middle
        yield from self._cut(placed[placed < middle], first, middle - 1, levels - 1)
        yield from self._cut(placed[placed >= middle], middle, last, levels - 1)
