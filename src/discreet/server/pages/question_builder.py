"""Questions without SQL: a table, groups, one measure and a filter, chosen from declared names and written by us.

Whatever is sent is looked up among what is declared: it picks a column, a step or a category, and is never copied into
the question. Names and texts that are declared are always quoted, so that whatever they contain stays a name or a text.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, final

from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.release.levels_and_families import constant
from discreet.release.round_numbers import friendly_step
from discreet.schema.columns import Kind
from discreet.server.problems import Problem

__all__ = ["MOST_KEYS", "BuiltQuestion", "KeyChoice", "MeasureChoice", "read_choice", "sql_name", "table_choices"]

MOST_KEYS = 3  # columns that an answer is grouped by
_MOST_BINS = 200
_FEWEST_BINS = (5, 10, 20)  # the steps that are offered make at most so many
_MOST_MEMBERS = 300  # categories that are listed of one column
_TIMES = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}  # at least so many days
_MEASURES = {"sum": ("SUM", "sum"), "mean": ("AVG", "mean"), "median": ("MEDIAN", "median")}
_DAY = {Kind.DATE: 1, Kind.TIMESTAMP: 86_400 * 10**6}  # in what bounds are told


def sql_name(name: str) -> str:
    """Write a name as SQL has it: in double quotes, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


def _decimal(step: Fraction) -> str:
    """Write a step of 1, 2 or 5 times a power of ten in full."""
    return f"{Decimal(step.numerator) / Decimal(step.denominator):f}"


# --- what can be chosen ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChoice:
    """A column to group by: each of its values, or steps of numbers or of time.

    Args:
        said: What a form sends for it.
        words: What it is called on the page.
        column: The declared column.
        step: The width of a bin, such as 10, or a word, such as "month"; None for each value.
        groups: How many groups it makes.
    """

    said: str
    words: str
    column: str
    step: Fraction | str | None
    groups: int

    def expression(self) -> str:
        """Write it as SQL has it."""
        name = sql_name(self.column)
        match self.step:
            case None:
                return name
            case str():
                return f"DATE_TRUNC('{self.step}', {name})"
            case _:
                width = _decimal(self.step)
                return f"FLOOR({name} / {width}) * {width}" if self.is_whole else f"FLOOR({name} / {width})"

    @property
    def is_whole(self) -> bool:
        """Whether its values are whole numbers or words: groups of others are not public, so that bins are numbered."""
        return not isinstance(self.step, Fraction) or self.step.denominator == 1

    @property
    def called(self) -> str:
        """The name of the column of the answer."""
        step = self.step
        return f"{self.column} / {_decimal(step)}" if isinstance(step, Fraction) and not self.is_whole else self.column


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChoice:
    """What is measured in every group.

    Args:
        said: What a form sends for it.
        words: What it is called on the page.
        function: The function of SQL.
        column: The declared column that it is about; None for a count of rows.
        called: The name of the column of the answer.
    """

    said: str
    words: str
    function: str
    column: str | None
    called: str

    @property
    def is_median(self) -> bool:
        """Whether its ± is paid for in addition."""
        return self.function == "MEDIAN"

    @property
    def is_mean(self) -> bool:
        """Whether its ± depends on how many rows a group has."""
        return self.function == "AVG"

    def expression(self) -> str:
        """Write it as SQL has it."""
        return "COUNT(*)" if self.column is None else f"{self.function}({sql_name(self.column)})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoice:
    """One category that is counted alone."""

    said: str
    words: str
    column: str
    value: Hashable

    def expression(self) -> str:
        """Write it as SQL has it."""
        return f"{sql_name(self.column)} = {constant(self.value)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableChoices:
    """All that can be chosen of one table; it follows from declarations alone."""

    table: str
    keys: Mapping[str, KeyChoice]  # by what is sent
    measures: Mapping[str, MeasureChoice]
    filters: Mapping[str, FilterChoice]


def table_choices(table: CatalogueTable) -> TableChoices:
    """List what can be chosen of a table: columns whose values or bounds are declared."""
    columns = [one for one in table.columns.values() if one.unit_key is None and one.name != table.unit]
    return TableChoices(
        table=table.name,
        keys={one.said: one for column in columns for one in _keys(column)},
        measures={one.said: one for one in _measures(columns)},
        filters={one.said: one for column in columns for one in _filters(column)},
    )


def _keys(column: CatalogueColumn) -> Iterator[KeyChoice]:
    name, facts = column.name, column.facts
    if facts.members is not None or facts.kind is Kind.BOOLEAN:
        groups = 2 if facts.members is None else len(facts.members)
        if groups <= _MOST_BINS:
            yield KeyChoice(said=f"each:{name}", words=name, column=name, step=None, groups=groups)
    elif facts.low is None or facts.high is None:
        return
    elif facts.kind.is_time:
        yield from _time_keys(name, facts.kind, facts.low, facts.high)
    elif facts.kind.is_number:
        yield from _number_keys(name, facts.kind, facts.low, facts.high)


def _number_keys(name: str, kind: Kind, low: Fraction, high: Fraction) -> Iterator[KeyChoice]:
    whole = kind is Kind.INTEGER
    steps = {friendly_step(high - low, most, whole=whole) for most in _FEWEST_BINS}
    if whole and high - low < _MOST_BINS:
        steps.add(Fraction(1))
    for step in sorted(steps):
        groups = int(high // step - low // step) + 1
        said = _decimal(step)
        words = name if whole and step == 1 else f"{name} in steps of {said}"
        words += "" if step.denominator == 1 else " (numbered)"
        yield KeyChoice(said=f"{said}:{name}", words=words, column=name, step=step, groups=groups)


def _time_keys(name: str, kind: Kind, low: Fraction, high: Fraction) -> Iterator[KeyChoice]:
    days = (high - low) / _DAY[kind]
    for step, length in _TIMES.items():
        groups = int(days // length) + 2
        if groups <= _MOST_BINS:
            yield KeyChoice(said=f"{step}:{name}", words=f"{name} by {step}", column=name, step=step, groups=groups)


def _measures(columns: Sequence[CatalogueColumn]) -> Iterator[MeasureChoice]:
    yield MeasureChoice(said="count", words="how many there are", function="COUNT", column=None, called="count")
    for column in columns:
        facts = column.facts
        if not (facts.kind.is_number and facts.members is None and facts.is_bounded):
            continue
        for word, (function, called) in _MEASURES.items():
            said, words = f"{word}:{column.name}", f"{word} of {column.name}"
            yield MeasureChoice(said=said, words=words, function=function, column=column.name, called=called)


def _filters(column: CatalogueColumn) -> Iterator[FilterChoice]:
    members: Sequence[Hashable] = column.facts.members or ()
    if column.facts.kind is Kind.BOOLEAN and not members:
        members = (True, False)
    for number, value in enumerate(members[:_MOST_MEMBERS]):
        words = f"{column.name} is {_shown(value)}"
        yield FilterChoice(said=f"{number}:{column.name}", words=words, column=column.name, value=value)


def _shown(value: Hashable) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


# --- what was chosen ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltQuestion:
    """What somebody chose; `sql` writes it.

    Args:
        table: The declared table.
        keys: What it is grouped by, at most three.
        measure: What is measured.
        only: The category that is counted alone, if any.
    """

    table: str
    keys: tuple[KeyChoice, ...]
    measure: MeasureChoice
    only: FilterChoice | None

    @property
    def groups(self) -> int:
        """How many groups an answer has."""
        found = 1
        for key in self.keys:
            found *= key.groups
        return found

    def names(self) -> tuple[str, ...]:
        """Return what the columns of the answer are called: no two alike, whatever the data call theirs."""
        taken: list[str] = []
        for wanted in (*(key.called for key in self.keys), self.measure.called):
            name, number = wanted, 1
            while name.casefold() in {one.casefold() for one in taken}:
                number += 1
                name = f"{wanted}_{number}"
            taken.append(name)
        return tuple(taken)

    def sql(self) -> str:
        """Write the question in SQL, from declared names only."""
        *keys, measured = self.names()
        listed = [f"{key.expression()} AS {sql_name(name)}" for key, name in zip(self.keys, keys, strict=True)]
        listed.append(f"{self.measure.expression()} AS {sql_name(measured)}")
        lines = [f"SELECT {', '.join(listed)}", f"FROM {sql_name(self.table)}"]
        if self.only is not None:
            lines.append(f"WHERE {self.only.expression()}")
        if self.keys:
            lines.append(f"GROUP BY {', '.join(key.expression() for key in self.keys)}")
        return "\n".join(lines)

    def words(self) -> str:
        """Say in one sentence what is asked."""
        what = self.measure.words
        by = " and ".join(key.words for key in self.keys)
        where = "" if self.only is None else f", where {self.only.words}"
        return f"{what[0].upper()}{what[1:]} in {self.table}{where}{f', by {by}' if by else ''}"

    def said(self) -> dict[str, str]:
        """Return what a form sends for it."""
        keys = {f"by{number}": key.said for number, key in enumerate(self.keys, 1)}
        only = {} if self.only is None else {"only": self.only.said}
        return {"table": self.table, **keys, "measure": self.measure.said, **only}


def read_choice(catalogue: Catalogue, form: Mapping[str, Any]) -> BuiltQuestion:
    """Read what a form sent, and refuse whatever is not one of the choices."""
    table = private_table(catalogue, form.get("table"))
    choices = table_choices(table)
    said = [form.get(f"by{number}", "") for number in range(1, MOST_KEYS + 1)]
    keys = [_one_of(choices.keys, one, "a column to group by") for one in said if one]
    if len({key.column for key in keys}) != len(keys):
        raise Problem("invalid", "group by each column once")
    only = form.get("only", "")
    return BuiltQuestion(
        table=table.name,
        keys=tuple(keys),
        measure=_one_of(choices.measures, form.get("measure") or "count", "a measure"),
        only=_one_of(choices.filters, only, "a category") if only else None,
    )


def private_table(catalogue: Catalogue, name: str | None) -> CatalogueTable:
    """Return the private table of a name, or the first."""
    listed = {table.name: table for table in catalogue.tables.values() if table.private}
    return _one_of(listed, name, "a table") if name else next(iter(listed.values()))


def _one_of(listed: Mapping[str, Any], said: str, what: str) -> Any:
    if said not in listed:
        raise Problem("invalid", f"choose {what} that is listed: what was sent is none of them")
    return listed[said]
