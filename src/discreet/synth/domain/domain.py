"""The domain of a table: its columns, their values and bounds, and impossible combinations (structural zeros)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.formatting import plain, shortened
from discreet.mechanisms.parameters import settle
from discreet.schema.columns import Declared, ExpressionFacts, Kind, check_of_rows
from discreet.synth.domain.category import Category, Value
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.value_forms import day_number, day_of

__all__ = [
    "AnyColumn",
    "Domain",
    "DomainColumn",
    "Impossible",
    "Rule",
    "cells_of",
    "cells_where",
    "cut_column",
    "domain_column",
    "read_condition",
]

DomainColumn: TypeAlias = Category | Numeric
AnyColumn: TypeAlias = DomainColumn | Declared  # as a domain takes it
Rule: TypeAlias = Mapping[str, Any]  # column -> a value, a list of values, None, or (low, high) of a numeric column
_MOST = 1000  # Columns.
_WRITTEN = 80  # Letters of a declaration in a notebook.
_SHOWN = 12  # Values of a column in a message.


@final
@dataclass(frozen=True, slots=True)
class Impossible:
    """A structural zero: a row is impossible if each of these columns is in one of its cells."""

    columns: tuple[int, ...]  # places in the domain, rising
    cells: tuple[tuple[int, ...], ...]  # codes, for each of these columns


@final
@dataclass(frozen=True, slots=True)
class Domain:
    """The public declaration of a table. Nothing in it may come from the data without being paid for.

    `impossible` lists combinations that public knowledge rules out, each as a mapping such as
    `{"age": (0, 15), "married": "yes"}`; a sample never shows them. Numeric columns are cut where such a range ends.

    Args:
        columns: The declaration of each column by name: `Numeric`, `Category`, or as for SQL, `between` and so on.
        impossible: Impossible combinations (structural zeros), each as a mapping of columns to values or ranges.

    Raises:
        InvalidParameter: If there are no columns, or a combination names what is not declared.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> domain.names, domain.sizes
        (('age', 'sex'), (4, 2))
    """

    columns: Mapping[str, DomainColumn]
    impossible: tuple[Impossible, ...] = ()

    def __init__(self, columns: Mapping[str, AnyColumn], *, impossible: Iterable[Rule] = ()) -> None:
        rules = _read_rules(impossible)
        said = dict(columns) if isinstance(columns, Mapping) else {}
        _check_columns(said)
        named = {name: domain_column(column, name) for name, column in said.items()}
        for rule in rules:
            named |= {name: cut_column(named[name], value) for name, value in _checked(rule, named).items()}
        settle(self, columns=named, impossible=tuple(_impossible(rule, named) for rule in rules))

    @classmethod
    def propose(
        cls, *, schema: Any = None, public_sample: Any = None, bounds: Mapping[str, tuple[Any, Any]] | None = None
    ) -> Domain:
        """Propose a domain to read and correct, from the types of a schema or from rows that are public.

        **Never from private rows**: the values and bounds that it takes are published without noise. Numbers and dates
        become `Numeric`, with bounds that are said or moved outwards to round numbers; truth values and texts of few
        values become `Category`, other texts `Category.unlisted()`. Of a public sample, columns of texts of which
        nearly every row has another, as names, are left out.

        Args:
            schema: A schema of pyarrow, or the types by name, such as `{"age": "int64", "sex": "string"}`.
            public_sample: A table, or the path of one, that anybody may see: not a part of the private one.
            bounds: The lowest and the highest value of numbers and dates, by column; of a schema, for all of them.

        Returns:
            The domain.

        Raises:
            InvalidParameter: If neither or both are said, or a bound is missing.
            Refused: If the rows are those of a session.

        Examples:
            >>> types = {"age": "int64", "sex": "string", "member": "bool"}
            >>> dp.synth.Domain.propose(schema=types, bounds={"age": (0, 120)})
            Domain(age: 33, sex: to be found, member: 3)
        """
        from discreet.synth.domain.proposal import proposed_from_rows, proposed_from_schema

        if (schema is None) == (public_sample is None):
            raise InvalidParameter("say schema=… or public_sample=…, rows that anybody may see: one of them")
        said = {} if bounds is None else bounds
        return proposed_from_rows(public_sample, said) if schema is None else proposed_from_schema(schema, said)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple(self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each column, those of missing and of other values among them."""
        return tuple(column.size for column in self.columns.values())

    @property
    def is_settled(self) -> bool:
        """Whether all cells are known; if not, some are to be found privately first."""
        return all(column.is_settled for column in self.columns.values())

    @property
    def numeric(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return tuple(name for name, column in self.columns.items() if isinstance(column, Numeric))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric columns that are no dates: texts in a file are to be read as numbers there."""
        return tuple(name for name, one in self.columns.items() if isinstance(one, Numeric) and not one.is_date)

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns of categories."""
        return tuple(name for name, column in self.columns.items() if isinstance(column, Category))

    def place(self, name: str) -> int:
        """Return the position of a column."""
        if name not in self.columns:
            raise InvalidParameter(f"the domain has no column {name!r}. It has: {', '.join(self.columns)}")
        return self.names.index(name)

    def with_columns(self, columns: Mapping[str, AnyColumn], *, impossible: Iterable[Rule] = ()) -> Domain:
        """Return the same domain with some columns declared otherwise."""
        return Domain({**self.columns, **columns}, impossible=impossible)

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.impossible))

    def __repr__(self) -> str:
        sizes = (f"{name}: {one.size if one.is_settled else 'to be found'}" for name, one in self.columns.items())
        return f"Domain({', '.join(sizes)})"

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid

        rows = (
            (name, one.size if one.is_settled else "to be found", shortened(repr(one), _WRITTEN))
            for name, one in self.columns.items()
        )
        return grid(rows, ("column", "cells", "declared as"), right=(False, True, False))


def _check_columns(columns: Mapping[str, Any]) -> None:
    if not 1 <= len(columns) <= _MOST:
        raise InvalidParameter("a domain must be a mapping from names to columns, with at least one and at most 1000")
    for name, column in columns.items():
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise InvalidParameter("the name of a column must be a text that is not empty")
        if not isinstance(column, (Category, Numeric, Declared)):
            raise InvalidParameter(f"column {name!r} must be declared as Category([…]) or Numeric(low, high)")


def domain_column(column: AnyColumn, name: str) -> DomainColumn:
    """Return the cells of a column that is declared as for SQL, with one for missing values."""
    if not isinstance(column, Declared):
        return column
    check_of_rows(column, f"column {name!r}")
    found = cells_of(column.stored_as(None), null=True)
    if found is None or column.missing is not None or column.format is not None:
        raise InvalidParameter(
            f"column {name!r}: a domain takes between(low, high) of numbers or dates, categories([…]) and boolean(), "
            "without missing and format; for other texts say Category.unlisted()"
        )
    return found


def cells_of(facts: ExpressionFacts, *, null: bool) -> DomainColumn | None:
    """Return the cells of a column of which these facts are public; None if they tell too little."""
    if facts.kind is Kind.BOOLEAN:
        return Category([False, True], null=null)
    if facts.members is not None:
        return Category(facts.members, null=True)  # type: ignore[arg-type]
    if facts.low is None or facts.high is None:
        return None
    if facts.kind is Kind.DATE:
        return Numeric.dates(day_of(int(facts.low)), day_of(int(facts.high)), null=null)
    return Numeric(facts.low, facts.high, whole=facts.kind is Kind.INTEGER, null=null) if facts.kind.is_number else None


def _read_rules(impossible: Iterable[Rule]) -> tuple[dict[str, Any], ...]:
    if isinstance(impossible, Mapping):
        raise InvalidParameter('impossible must be a list of rules such as [{"age": (0, 15), "married": "yes"}]')
    return tuple(dict(rule) for rule in impossible)


def _checked(rule: Mapping[str, Any], columns: Mapping[str, DomainColumn]) -> Mapping[str, Any]:
    unknown = next((name for name in rule if name not in columns), None)
    if unknown is not None or not rule:
        raise InvalidParameter(f"a rule of impossible names no column of the domain: {unknown!r}")
    return rule


def cut_column(column: DomainColumn, value: Any) -> DomainColumn:
    """Cut the bins where a range of a rule begins and ends, so that the rule holds for whole cells."""
    if isinstance(column, Category) or value is None or not column.is_settled:
        return column
    low, high = _range(value)
    grid = column.grid
    return column.cut_at((-int(-low // grid.step), int(high // grid.step) + 1))


def _range(value: Any) -> tuple[Any, Any]:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        low, high = (_end(end) for end in value)
    elif isinstance(value, (str, Sequence)):
        raise InvalidParameter("in a rule, a numeric column needs one number, (low, high), or None")
    else:
        low = high = _end(value)
    if low > high:
        raise InvalidParameter("in a rule, low must not be above high")
    return low, high


def _end(value: Any) -> Fraction:
    return Fraction(day_number(value)) if isinstance(value, date) else exact(value, name="a number in a rule")


def _impossible(rule: Mapping[str, Any], columns: Mapping[str, DomainColumn]) -> Impossible:
    names = list(columns)
    places = sorted(names.index(name) for name in rule)
    cells = tuple(_cells(columns[names[place]], rule[names[place]], names[place]) for place in places)
    if all(len(cells) == columns[names[place]].size for cells, place in zip(cells, places, strict=True)):
        raise InvalidParameter("a rule of impossible combinations (structural zeros) excludes every row")
    return Impossible(tuple(places), cells)


def _cells(column: DomainColumn, value: Any, name: str) -> tuple[int, ...]:
    found = _cells_named(column, value)
    if not found:
        raise InvalidParameter(f"a rule of impossible names a value of {name!r} that the domain does not have")
    return found


def _cells_named(column: DomainColumn, value: Any) -> tuple[int, ...]:
    return _category_cells(column, value) if isinstance(column, Category) else _numeric_cells(column, value)


def read_condition(where: object, domain: Domain) -> Rule:
    """Read which rows are asked for, such as `{"sex": "f", "age": (18, 30)}`, as in a rule of what is impossible."""
    if not isinstance(where, Mapping) or not where:
        raise InvalidParameter('where must name columns and values, such as {"sex": "f", "age": (18, 30)}')
    for name in where:
        domain.place(name)
    return where


def cells_where(column: DomainColumn, value: Any, name: str) -> tuple[int, ...]:
    """Return the cells of the values that a condition names; a column is cut at the ends of its range first."""
    found = _cells_named(column, value)
    if not found:
        raise InvalidParameter(
            f"where asks for a value of {name!r} that the domain does not have. It has: {_told(column)}"
        )
    return found


def _told(column: DomainColumn) -> str:
    """Return what a column can hold, all of it public, shortened to a few values."""
    if not isinstance(column, Category):
        ends = (day_of(int(end)) if column.is_date else plain(end) for end in (column.low, column.high))
        return " … ".join(map(str, ends)) + ("" if column.null_code is None else ", None")
    shown = [repr(label) for label in column.labels[:_SHOWN]]
    return ", ".join(shown) + (", …" if len(column.labels) > _SHOWN else "")


def _category_cells(column: Category, value: Any) -> tuple[int, ...]:
    if not column.is_settled:
        raise InvalidParameter("a rule of impossible needs values that are listed")
    listed: Sequence[Value | None] = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    labels = column.labels
    return tuple(sorted({labels.index(one) for one in listed})) if all(one in labels for one in listed) else ()


def _numeric_cells(column: Numeric, value: Any) -> tuple[int, ...]:
    if not column.is_settled:
        raise InvalidParameter("a rule of impossible needs bins that are declared, not quantiles")
    if value is None:
        return () if column.null_code is None else (column.null_code,)
    low, high = _range(value)
    starts = column.starts.tolist()
    ends = [*(start - 1 for start in starts[1:]), column.grid.last]
    step = column.grid.step
    spans = enumerate(zip(starts, ends, strict=True))
    return tuple(place for place, (first, last) in spans if low <= first * step and last * step <= high)
