"""Rows as whole numbers of the declared domain; what lies outside it is told apart, and never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import comb
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.frames.cells import is_missing
from discreet.frames.column import Column
from discreet.synth.domain.category import Category, text_of
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import STEPS, Numeric
from discreet.synth.domain.source_tables import table_of
from discreet.synth.fitted_models import SyntheticModel
from discreet.synth.promise import Promise
from discreet.synth.synthetic_table import SyntheticTable
from discreet.synth.tables.table_shape import Clique, marginal_cliques

__all__ = [
    "CELLS",
    "CURVE",
    "FITTED",
    "GUESSED",
    "PAIRS",
    "PEOPLE",
    "SETS",
    "TWINS",
    "ColumnLayout",
    "EvaluatedRows",
    "EvaluatedTable",
    "ExactCells",
    "chosen_cliques",
    "exact_cells",
    "layout_of",
    "left_out",
    "read_rows",
    "subject_of",
    "synthetic_rows",
]

Codes: TypeAlias = NDArray[np.int32]
Places: TypeAlias = NDArray[np.float32]
Keys: TypeAlias = NDArray[np.int64]
_BINS = 32  # Of a column whose bins nobody has found yet.


@final
@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """What is public about the columns: their names, their cells and which of them are numbers."""

    domain: Domain
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]  # of the cells of each column
    numbers: tuple[int, ...]  # the places of numeric columns

    def place(self, name: str, *, what: str) -> int:
        """Return where a column stands."""
        if name not in self.names:
            raise InvalidParameter(f"{what} must be one of the declared columns: {', '.join(self.names)}")
        return self.names.index(name)

    @property
    def others(self) -> tuple[int, ...]:
        """The places of columns that are no numbers."""
        return tuple(place for place in range(len(self.names)) if place not in self.numbers)


@final
@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedRows:
    """Rows: the cell of every value, where in its bounds every number lies, and what has no cell of its own."""

    codes: Codes  # rows by columns
    places: Places  # rows by numeric columns, from 0 to 1; NaN if missing
    undeclared: Keys  # rows by the other columns: 0 for a declared value, else a number for each undeclared one

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, chosen: Any) -> EvaluatedRows:
        """Take some rows."""
        return EvaluatedRows(self.codes[chosen], self.places[chosen], self.undeclared[chosen])

    def some(self, most: int) -> EvaluatedRows:
        """Take at most so many rows, drawn at random."""
        return self if len(self) <= most else self.take(noise.permutation(len(self))[:most])

    def split(self, first: int) -> tuple[EvaluatedRows, EvaluatedRows]:
        """Take so many rows at random, and the rest."""
        order = noise.permutation(len(self))
        return self.take(order[:first]), self.take(order[first:])


def layout_of(domain: Domain) -> ColumnLayout:
    """Read the public facts of a domain; bins that are still to be found become equal ones."""
    columns = {name: _settled(column) for name, column in domain.columns.items()}
    return ColumnLayout(
        domain=Domain(columns),
        names=tuple(columns),
        sizes=tuple(column.size for column in columns.values()),
        labels=tuple(_labels(column) for column in columns.values()),
        numbers=tuple(place for place, column in enumerate(columns.values()) if isinstance(column, Numeric)),
    )


def read_rows(layout: ColumnLayout, table: Any) -> EvaluatedRows:
    """Place all rows of a table, a frame or a file in the domain. This is private if they are."""
    found = table_of(table)
    found.check_has(layout.names)
    read = TableRows(Coder(layout.domain), found)
    steps, missing = read.steps()
    places = (steps / STEPS).astype(np.float32)
    places[missing] = np.nan
    rows = EvaluatedRows(read.codes(), places, _undeclared(layout, read.columns()))
    if len(rows) < 2:
        raise InvalidParameter("a table that is compared must have at least two rows")
    return rows


def _undeclared(layout: ColumnLayout, columns: Mapping[str, Column]) -> Keys:
    """Number the values that have no cell of their own."""
    keys = np.zeros((len(next(iter(columns.values()))), len(layout.others)), np.int64)
    for at, place in enumerate(layout.others):
        declared, known = layout.domain.columns[layout.names[place]], dict[object, int]()
        for row, value in enumerate(columns[layout.names[place]].objects()):
            if not isinstance(value, (str, int, float)):
                keys[row, at] = _key(declared, value)
            elif (found := known.get((type(value), value))) is not None:
                keys[row, at] = found
            else:
                keys[row, at] = known[type(value), value] = _key(declared, value)
    return keys


def _key(declared: Category | Numeric, value: object) -> int:
    assert isinstance(declared, Category)
    if is_missing(value):
        return 0 if declared.null else 1
    # With a cell for missing values only, that is where a value goes that nobody declared.
    if declared.values and Category(declared.values, null=True).code(value) < len(declared.values):
        return 0
    text = text_of(value)
    told = b"" if text is None else text.encode("utf-8", "surrogatepass")
    return 2 + int.from_bytes(blake2b(told, digest_size=7).digest(), "big")


def _settled(column: Category | Numeric) -> Category | Numeric:
    if isinstance(column, Category) or column.is_settled:
        return column
    return Numeric(column.low, column.high, whole=column.whole, bins=_BINS, null=column.null)


def _labels(column: Category | Numeric) -> tuple[str, ...]:
    if isinstance(column, Category):
        return tuple("missing" if label is None else str(label) for label in column.labels)
    return (*(column.label(int(start)) for start in column.starts), *(("missing",) if column.null else ()))


# --- reading: What is evaluated: a model, which knows its domain and its promise, or a table with both beside it. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedTable:
    """A synthetic table in its domain, with its promise."""

    layout: ColumnLayout
    rows: EvaluatedRows
    promise: Promise | None


def subject_of(synthetic: Any, domain: Domain | None, promise: Promise | None) -> EvaluatedTable:
    """Take a model and sample it, or take a table; what is told beside it comes first."""
    known = getattr(synthetic, "domain", None) if domain is None else domain
    if not isinstance(known, Domain):
        raise InvalidParameter("say what the columns are: domain=Domain({…}), as it was declared for the synthesis")
    told = getattr(synthetic, "promise", None) if promise is None else promise
    if told is not None and not isinstance(told, Promise):
        raise InvalidParameter("a promise must be a Promise: Promise.of(event, …) writes one down")
    layout = layout_of(known)
    return EvaluatedTable(layout, synthetic_rows(layout, synthetic), told)


def synthetic_rows(layout: ColumnLayout, synthetic: Any) -> EvaluatedRows:
    """Read a synthetic table of any kind; a model is sampled."""
    table = synthetic.sample() if isinstance(synthetic, SyntheticModel) else synthetic
    if isinstance(table, SyntheticTable):
        table = {name: table[name] for name in table.columns}
    return read_rows(layout, table)


# --- exact_cells ---
# Cells in which two tables are compared: finer than those of the model, so that what the model never saw counts.
#
# A model draws the label `other` for every value that nobody declared, and even numbers within a bin. Compared in its
# own
# cells it would look perfect in both. Here a value that is not declared is a value of its own, which only an equal one
# meets, and bins are cut once more where the compared rows have their quantiles.


_BANDS = 16  # Of about equal counts, into which the compared rows' numbers are cut besides the declared bins.
_FINE = 256  # Bins of a column that are fine enough.
_SHARED = 1000  # Undeclared values that both tables have and that are told apart; more of them count as one.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactCells:
    """Both tables in common cells."""

    synthetic: Codes
    real: Codes
    sizes: tuple[int, ...]
    lost: tuple[float, ...]  # by column: the share of real rows whose value no synthetic row has, nor any declared cell


def exact_cells(layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows) -> ExactCells:
    """Place both tables in cells that tell what the declared ones do not."""
    columns = [_column(layout, synthetic, real, place) for place in range(len(layout.names))]
    return ExactCells(
        np.column_stack([ours for ours, _, _ in columns]),
        np.column_stack([theirs for _, theirs, _ in columns]),
        tuple(int(max(ours.max(), theirs.max())) + 1 for ours, theirs, _ in columns),
        tuple(lost for _, _, lost in columns),
    )


def _column(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, place: int
) -> tuple[Codes, Codes, float]:
    ours, theirs = (rows.codes[:, place].astype(np.int64) for rows in (synthetic, real))
    if place in layout.numbers:
        number = layout.numbers.index(place)
        bands = _bands(synthetic.places[:, number], real.places[:, number])
        if layout.sizes[place] <= _FINE:
            ours, theirs = ours * _BANDS + bands[0], theirs * _BANDS + bands[1]
        return *_numbered(ours, theirs), 0.0
    keys = [rows.undeclared[:, layout.others.index(place)] for rows in (synthetic, real)]
    shared = np.intersect1d(keys[0], keys[1])
    told_apart, size = shared[shared != 0], layout.sizes[place]
    ours = _with_undeclared(ours, keys[0], told_apart, size, size)
    # What only the one table has, and what only the other has, are two cells.
    theirs = _with_undeclared(theirs, keys[1], told_apart, size, size + 1)
    lost = float(np.mean((keys[1] != 0) & ~np.isin(keys[1], told_apart)))
    return *_numbered(ours, theirs), lost


def _bands(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the quantiles of the compared rows in which numbers lie; missing ones are in the first."""
    known = theirs[~np.isnan(theirs)]
    cuts = np.unique(np.quantile(known, np.arange(1, _BANDS) / _BANDS)) if known.size else np.empty(0)
    both = [np.searchsorted(cuts, np.nan_to_num(own), side="right") for own in (ours, theirs)]
    return both[0], both[1]


def _with_undeclared(
    codes: NDArray[np.int64], keys: NDArray[np.int64], shared: NDArray[np.int64], size: int, alone: int
) -> NDArray[np.int64]:
    place = np.searchsorted(shared, keys) if shared.size <= _SHARED else np.zeros(len(keys), np.int64)
    both = np.isin(keys, shared) & (keys != 0)
    return np.where(keys == 0, codes, np.where(both, size + 2 + place, alone))


def _numbered(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> tuple[Codes, Codes]:
    """Number the cells that occur, without gaps."""
    cells = np.unique(np.concatenate([ours, theirs]))
    return np.searchsorted(cells, ours).astype(np.int32), np.searchsorted(cells, theirs).astype(np.int32)


# --- caps: How much is looked at: public numbers, told on every page, that keep an evaluation within two minutes. ---


PAIRS = 1_500  # Tables of two columns that are compared; drawn at random if there are more.
SETS = 400  # Tables of three columns, and of any size where each must be paid for.
CELLS = 100_000  # Cells of a table that is compared; larger ones are left out.
PEOPLE = 1_500  # People on each side whom attackers look for.
GUESSED = 300  # People on each side whose secret is guessed.
TWINS = 50_000  # Rows of a table among which the closest one is looked for.
FITTED = 20_000  # Rows that a model is trained on, and as many on which it is tested.
CURVE = 200  # Points of a drawn curve.


# --- cliques ---
# Which sets of columns are compared: all, or so many drawn at random. The choice looks at public sizes only.


def chosen_cliques(sizes: Sequence[int], ways: int, *, most: int | None = None) -> tuple[Clique, ...]:
    """Choose sets of so many columns: all whose tables are not too large, or as many as the cap allows."""
    fitting = marginal_cliques(sizes, ways, most_cells=CELLS)
    cap = most or (SETS if ways > 2 else PAIRS)
    if len(fitting) <= cap:
        return tuple(fitting)
    return tuple(fitting[place] for place in np.sort(noise.permutation(len(fitting))[:cap]))


def left_out(sizes: Sequence[int], ways: int, compared: int) -> int:
    """Return how many sets of so many columns are not compared."""
    return comb(len(sizes), ways) - compared
