"""What dp.synthesize returns: a model that may be published, sampled from without limit, saved and loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive_integer
from discreet.frames.column import Column
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain, Rule
from discreet.synth.domain.images import Images
from discreet.synth.method import ConditionalTable, FittedImages, FittedTable
from discreet.synth.promise import Promise
from discreet.synth.synthetic_table import SyntheticImages, SyntheticTable
from discreet.synth.tables.table_shape import evenly_possible

__all__ = ["SyntheticImageModel", "SyntheticModel", "are_impossible", "possible_rows"]

_MOST = 1 << 28  # Rows of one sample.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticModel:
    """A model of a table. Everything in it was released; any number of rows may be drawn at no further cost.

    Args:
        domain: The public declaration of the table.
        promise: What was spent, and what that means.
        fitted: The fitted model itself.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> model.sample(10).columns
        ('age', 'sex')
    """

    domain: Domain
    promise: Promise
    fitted: FittedTable = field(repr=False)

    @property
    def rows(self) -> int | None:
        """About how many rows the real table has, as far as that was released."""
        return self.fitted.rows

    def sample(self, rows: int | None = None, *, where: Rule | None = None) -> SyntheticTable:
        """Draw rows; as many as the real table has, about, unless a number is said.

        `where` asks for rows of some values alone, such as `{"sex": "f", "age": (18, 30)}`: a value, a list of values,
        None for missing, or (low, high) of numbers and dates. They are drawn from the exact conditional law of the
        model, however rare they are; what it gives no chance is refused. Where numbers are tied, rows are drawn and
        those kept that are as asked; what is too rare for that is refused, too.
        """
        fitted = self.fitted if where is None else _given(self.fitted, where)
        wanted = _wanted(rows, fitted.rows)
        drawn = possible_rows(self.domain, wanted, fitted.sample, evenly=where is None)
        return SyntheticTable(self.promise, drawn)

    def save(self, path: str | Path) -> None:
        """Write the model, its domain and its promise to one safetensors file, all of it or nothing."""
        from discreet.synth.model_files import save

        save(path, self.domain, self.promise, self.fitted.document())

    def __str__(self) -> str:
        return f"a model of {len(self.domain.names)} columns. {self.promise}"

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticImageModel:
    """A model of pictures. Everything in it was released; any number may be drawn at no further cost.

    Args:
        domain: The public declaration of the pictures.
        promise: What was spent, and what that means.
        fitted: The fitted model itself.
    """

    domain: Images
    promise: Promise
    fitted: FittedImages = field(repr=False)

    @property
    def rows(self) -> int | None:
        """About how many real pictures there are, as far as that was released."""
        return self.fitted.rows

    def sample(self, rows: int | None = None) -> SyntheticImages:
        """Draw pictures with labels; as many as there are real ones, about, unless a number is said."""
        pixels, labels = self.fitted.sample(_wanted(rows, self.fitted.rows))
        return SyntheticImages(self.promise, self.domain, pixels, labels)

    def save(self, path: str | Path) -> None:
        """Write the model, its domain and its promise to one safetensors file, all of it or nothing."""
        from discreet.synth.model_files import save

        save(path, self.domain, self.promise, self.fitted.document())

    def __str__(self) -> str:
        return f"a model of pictures of {self.domain.height} x {self.domain.width}. {self.promise}"

    __repr__ = __str__


def _given(fitted: FittedTable, where: Rule) -> FittedTable:
    """Return the model of the rows that are asked for. Rules hold within it: it has no row that they exclude."""
    if not isinstance(fitted, ConditionalTable):
        raise Refused(
            "this model cannot be asked for rows of some values alone",
            way_out='fit "aim" or "mst", whose models can; or draw many rows and keep those that fit',
        )
    return fitted.given(where)


def _wanted(rows: int | None, released: int | None) -> int:
    if rows is None and released is None:
        raise InvalidParameter("say how many rows to draw: how many the real table has was not released")
    wanted = max(1, released or 0) if rows is None else positive_integer(rows, name="rows")
    if wanted > _MOST:
        raise InvalidParameter(f"rows must be at most {_MOST}: draw several samples")
    return wanted


# --- possible: Rows that public knowledge rules out are drawn again; that is free, since only the model is asked. ---
#
# A model that knows nothing of the rules may draw hardly any row that keeps them, if the table contradicts them. Nobody
# can tell before it is paid, so in the end what is still missing is drawn evenly from what the rules leave.


_TRIES = 200


def possible_rows(
    domain: Domain, rows: int, draw: Callable[[int], Mapping[str, Column]], *, evenly: bool = True
) -> dict[str, Column]:
    """Draw rows of a domain, none of them impossible; what is missing in the end evenly, or refuse."""
    drawn = dict(draw(rows))
    if not domain.impossible:
        return drawn
    for _ in range(_TRIES):
        wrong = np.flatnonzero(are_impossible(domain, drawn))
        if not wrong.size:
            return drawn
        drawn = _replaced(drawn, wrong, draw(len(wrong)))
    wrong = np.flatnonzero(are_impossible(domain, drawn))
    if wrong.size and not evenly:  # What the rules leave is not what was asked for.
        raise Refused(
            "hardly any row that this model has of these values keeps the rules of its domain",
            way_out="ask for fewer columns at once, or for wider ranges",
        )
    return _replaced(drawn, wrong, evenly_possible(domain, len(wrong))) if wrong.size else drawn


def are_impossible(domain: Domain, columns: Mapping[str, Column]) -> NDArray[np.bool_]:
    """Tell which rows public knowledge rules out."""
    codes = Coder(domain).codes(columns)
    wrong = np.zeros(len(codes), dtype=bool)
    for rule in domain.impossible:
        parts = [np.isin(codes[:, place], cells) for place, cells in zip(rule.columns, rule.cells, strict=True)]
        wrong |= np.logical_and.reduce(parts)
    return wrong


def _replaced(drawn: Mapping[str, Column], at: NDArray[np.int64], fresh: Mapping[str, Column]) -> dict[str, Column]:
    return {name: _column(column, at, fresh[name]) for name, column in drawn.items()}


def _column(column: Column, at: NDArray[np.int64], fresh: Column) -> Column:
    values = np.array(column.values)
    values[at] = np.asarray(fresh.values)
    if column.missing is None or fresh.missing is None:
        return Column(values, column.missing)
    missing = column.missing.copy()
    missing[at] = fresh.missing
    return Column(values, missing)
