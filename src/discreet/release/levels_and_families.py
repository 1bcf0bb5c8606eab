"""Levels, families and windows of a plan as SQL: coarser groupings, many groupings of the same rows, periods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache
from math import prod
from typing import final

from discreet.errors import InvalidParameter
from discreet.formatting import enumerated
from discreet.query.policy import UnitLimits
from discreet.query.session.catalogue_builder import nearest
from discreet.release.plan import Level, Period, ReleasePlan, Schedule, TablePlan, Wish
from discreet.schema.columns import Declared, Kind

__all__ = [
    "GroupingColumn",
    "GroupingColumns",
    "GroupingFamily",
    "check_piece",
    "constant",
    "constants",
    "days_of",
    "identifier",
    "sql_in",
]

# --- levels: Levels: a coarser grouping of a column becomes a CASE over the values of that column. ---


_FEW = 5  # Values that a message lists.


@final
@dataclass(frozen=True, slots=True)
class GroupingColumn:
    """Something to group by: a column, or a level of it. `parts` says which values of the column make each value."""

    name: str
    column: str
    parts: Mapping[Hashable, tuple[Hashable, ...]]
    declared: Declared | None  # of the column; None if its values are listed with the table
    is_level: bool = False
    in_period: int | None = None  # how many of its values a period has, if they are the days of the schedule

    @property
    def values(self) -> tuple[Hashable, ...]:
        """All its public values."""
        return tuple(self.parts)

    @property
    def groups(self) -> int:
        """How many groups it makes in a release."""
        return len(self.parts) if self.in_period is None else self.in_period

    def selected(self) -> str:
        """Return how it is written after SELECT."""
        if not self.is_level:
            return identifier(self.name)
        column = identifier(self.column)
        cases = (f"WHEN {column} IN {constants(part)} THEN {constant(value)}" for value, part in self.parts.items())
        return f"CASE {' '.join(cases)} END AS {identifier(self.name)}"

    def listed(self) -> str:
        """Return the condition that a row is in one of its groups."""
        column = identifier(self.column)
        facts = None if self.declared is None else self.declared.facts
        if facts is not None and (facts.members is None or set(facts.members) == {False, True}):
            return f"{column} IS NOT NULL"  # What lies outside of bounds is clamped into them.
        return f"{column} IN {constants(value for part in self.parts.values() for value in part)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingColumns:
    """Everything that the rows of one table can be grouped by."""

    table: str
    columns: Mapping[str, Declared]
    levels: Mapping[str, Level]
    keys: Mapping[str, tuple[Hashable, ...]]  # listed with what is published
    schedule: Schedule = field(default_factory=Schedule)

    def axis(self, name: str) -> GroupingColumn:
        """Return a column or level by its name, or say why it cannot be grouped by."""
        return self._level(self.levels[name]) if name in self.levels else self._column(name)

    def _column(self, name: str) -> GroupingColumn:
        found = next((column for column in self.columns if column.casefold() == name.casefold()), None)
        if name in self.keys:
            return GroupingColumn(found or name, found or name, {value: (value,) for value in self.keys[name]}, None)
        if found is None:
            known = [*self.columns, *self.levels]
            raise InvalidParameter(
                f"table {self.table!r} declares no column {name!r}, and no level is called so. {nearest(name, known)}"
            )
        values = _domain(found, self.columns[found])
        return GroupingColumn(
            found, found, {value: (value,) for value in values}, self.columns[found], in_period=self._in_period(found)
        )

    def _in_period(self, column: str) -> int | None:
        """Where the schedule chooses rows by this day, a release has the days of its period only."""
        days = len(days_of(self.schedule.period(0)))
        is_date = self.columns[column].facts.kind is Kind.DATE
        return days if is_date and column.casefold() == (self.schedule.column or "").casefold() else None

    def _level(self, level: Level) -> GroupingColumn:
        below = self.axis(level.of)
        _check_members(level, below)
        parts = {
            value: tuple(one for member in members for one in below.parts[member])
            for value, members in level.members.items()
        }
        return GroupingColumn(level.name, below.column, parts, below.declared, is_level=True)


def _domain(name: str, declared: Declared) -> tuple[Hashable, ...]:
    from discreet.query.ast import Field
    from discreet.query.parse.group_by import domain_of

    values = domain_of(Field(name, declared.facts))
    if values is None:
        raise InvalidParameter(
            f"the values of {name!r} are not public, and tables that add up need all of them: declare "
            f"{name} = {{ categories = […] }} with its table, or list them in keys = {{ {name} = […] }}"
        )
    return values


def _check_members(level: Level, below: GroupingColumn) -> None:
    """Every value below belongs to one value of the level, and to one only."""
    counted = Counter(member for members in level.members.values() for member in members)
    strange = [member for member in counted if member not in below.parts]
    twice = [member for member, times in counted.items() if times > 1]
    left = [value for value in below.values if value not in counted]
    if strange:
        raise InvalidParameter(
            f"level {level.name!r} lists {_few(strange)}, and {level.of!r} has no such value: write the values of "
            f"{level.of!r} as they are declared"
        )
    if twice:
        raise InvalidParameter(
            f"level {level.name!r} lists {_few(twice)} more than once: each value belongs to one group"
        )
    if left:
        raise InvalidParameter(
            f"level {level.name!r} leaves out {_few(left)} of {level.of!r}: every value belongs to one of its groups"
        )


def _few(values: list[Hashable]) -> str:
    shown = ", ".join(repr(value) for value in values[:_FEW])
    return shown if len(values) <= _FEW else f"{shown} and {len(values) - _FEW} more"


# --- families: Families: many groupings of the same rows become one table each, and their numbers add up. ---


_ADDS_UP = re.compile(r"\s*(COUNT|SUM)\s*\(", re.IGNORECASE)
_ROWS = "*"
_MOST_GROUPINGS = 1000
_MOST_GROUPS = 1_000_000
_MOST_TOGETHER = 8_000_000  # Groups of all tables of a family: they are counted in one scan, all in memory.
_LONGEST = 150  # Characters of a name.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingFamily:
    """Groupings of the same rows.

    The rows are those of the source that fulfil `where` and whose value is listed for every key of every grouping:
    otherwise a total would hold rows that no group holds. Which of a unit's rows are counted is chosen once for all.
    """

    name: str
    title: str
    source: str
    where: str | None
    groupings: Sequence[tuple[str, ...]]
    measures: Mapping[str, str]
    axes: GroupingColumns
    wish: Wish
    expected: Mapping[str, Fraction]
    limits: UnitLimits
    quantile_intervals: bool = False
    population: bool = False
    aim: str | None = None
    weights: Sequence[Fraction] = ()

    def tables(self) -> tuple[TablePlan, ...]:
        """Return one table for each grouping."""
        self._check()
        axes = {name: self.axes.axis(name) for by in self.groupings for name in by}
        for name in self.measures:
            if any(name.casefold() == axis.name.casefold() for axis in axes.values()):
                raise InvalidParameter(f"{name!r} is both measured and grouped by: give the measure another name")
        most = max(_groups(axes, by) for by in self.groupings)
        if most > _MOST_GROUPS:
            raise InvalidParameter(f"a grouping would have {most:,} groups: a million is the most; leave out a column")
        together = sum(_groups(axes, by) for by in self.groupings)
        if together > _MOST_TOGETHER:
            raise InvalidParameter(
                f"all groupings together would have {together:,} groups: {_MOST_TOGETHER:,} is the most, as they are "
                "counted in one scan of the same rows; leave out some, or publish them as another family"
            )
        made = (self._table(axes, by, Fraction(most, _groups(axes, by))) for by in self.groupings)
        weights = self.weights or (Fraction(1),) * len(self.groupings)
        return tuple(replace(table, weight=weight) for table, weight in zip(made, weights, strict=True))

    def _check(self) -> None:
        if len(self.groupings) > _MOST_GROUPINGS:
            raise InvalidParameter(f"a family has at most {_MOST_GROUPINGS} groupings: each one takes budget")
        if not self.measures:
            raise InvalidParameter('say what is measured in every group, such as measures = { stays = "COUNT(*)" }')
        if len({frozenset(by) for by in self.groupings}) != len(self.groupings):
            raise InvalidParameter("the same grouping is there twice: each one is paid for, so leave one out")
        for by in self.groupings:
            if len(set(by)) != len(by):
                raise InvalidParameter("a column is there twice in one grouping: leave one out")

    def _table(self, axes: Mapping[str, GroupingColumn], by: tuple[str, ...], larger: Fraction) -> TablePlan:
        return TablePlan(
            name=_file_name("_".join([self.name, "by", *by])) if by else self.name,
            title=f"{self.title} by {enumerated(by)}" if by else self.title,
            sql=self._sql(axes, by),
            wish=self._part_of_wish(),
            expected={name: size * self._factor(name, larger) for name, size in self.expected.items()},
            keys={name: values for name, values in self.axes.keys.items() if name in by},
            family=self.name,
            by=by,
            measures=dict(self.measures),
            limits=self.limits,
            quantile_intervals=self.quantile_intervals,
            population=self.population,
            aim=self.aim,
        )

    def _sql(self, axes: Mapping[str, GroupingColumn], by: tuple[str, ...]) -> str:
        columns = [axes[name].selected() for name in by]
        columns += [f"{measure} AS {identifier(name)}" for name, measure in self.measures.items()]
        listed = dict.fromkeys(axis.listed() for axis in axes.values())
        conditions = [*([] if self.where is None else [f"({self.where})"]), *listed]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        # By position: a name could mean a column that the data have and the plan does not speak of.
        grouped = f" GROUP BY {', '.join(str(place) for place in range(1, len(by) + 1))}" if by else ""
        return f"SELECT {', '.join(columns)} FROM {identifier(self.source)}{where}{grouped}"

    def _factor(self, name: str, larger: Fraction) -> Fraction:
        """What adds up is larger in coarser groups, by as much as there are fewer of them."""
        return larger if name == _ROWS or _ADDS_UP.match(self.measures.get(name, "")) else Fraction(1)

    def _part_of_wish(self) -> Wish:
        """A price is for the whole family, and divided evenly; an error is for each table."""
        each, wish = len(self.groupings), self.wish
        return replace(
            wish,
            share=None if wish.share is None else wish.share / each,
            epsilon=None if wish.epsilon is None else wish.epsilon / each,
            rho=None if wish.rho is None else wish.rho / each,
        )


def _file_name(name: str) -> str:
    if len(name) > _LONGEST:
        raise InvalidParameter(
            f"the name {name!r} is too long for a file: group by fewer columns, or rename the family"
        )
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _groups(axes: Mapping[str, GroupingColumn], by: Sequence[str]) -> int:
    return prod(axes[name].groups for name in by)


# --- sql_text ---
# Names and constants as they are written in SQL, and pieces of SQL that stand in a plan by themselves.


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ONE = "write one expression: parentheses in pairs, no comment, no semicolon"


def identifier(name: str) -> str:
    """Write a name, in quotes if it is no plain word or has a meaning of its own."""
    if _PLAIN.fullmatch(name) and name.upper() not in _words():
        return name
    return '"' + name.replace('"', '""') + '"'


@cache
def _words() -> frozenset[str]:
    """Return all words that have a meaning in SQL, also as the first of several."""
    from sqlglot.dialects.duckdb import DuckDB

    return frozenset(words.split()[0] for words in DuckDB.Tokenizer.KEYWORDS if words)


def constant(value: Hashable) -> str:
    """Write a constant."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
    raise InvalidParameter("values of keys are texts, whole numbers, dates or truth values")


def constants(values: Iterable[Hashable]) -> str:
    """Write a list of constants."""
    return f"({', '.join(map(constant, values))})"


def check_piece(text: str) -> str:
    """Refuse a piece of SQL that would not stay by itself when more is written around it."""
    from sqlglot.errors import TokenError
    from sqlglot.tokens import Tokenizer

    try:
        tokens = Tokenizer().tokenize(text)
    except TokenError:
        raise InvalidParameter("this is no SQL: perhaps a quotation mark is missing") from None
    depth = 0
    for token in tokens:
        kind = token.token_type.name
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
        if depth < 0 or kind == "SEMICOLON" or token.comments:
            raise InvalidParameter(_ONE)
    if depth or not tokens:
        raise InvalidParameter(_ONE)
    return text.strip()


# --- window: The rows of a period: a question about all rows becomes one about those of its window. ---


def sql_in(plan: ReleasePlan, table: TablePlan, period: Period) -> str:
    """Return the question of a table for one period: every private source has only the rows of its window.

    Each source is shadowed by a common table expression of its own name, in front of the text: whatever the question
    says of the source, it says of the rows in the window.
    """
    column = plan.schedule.column
    if column is None or period.first is None or period.end is None:
        return table.sql
    named = identifier(column)
    rows = f"{named} >= {constant(period.first)} AND {named} < {constant(period.end)}"
    private = [identifier(name) for name, source in plan.policy.tables.items() if not source.public]
    return _shadowed(table.sql, {name: f"SELECT * FROM {name} WHERE {rows}" for name in private})


def days_of(period: Period) -> tuple[date, ...]:
    """Return all days of a period."""
    if period.first is None or period.end is None:
        return ()
    return tuple(period.first + timedelta(days=day) for day in range((period.end - period.first).days))


def _shadowed(sql: str, sources: dict[str, str]) -> str:
    from discreet.query.parse.refusals import Script
    from discreet.query.parse.tokens import tokenize

    shadows = ", ".join(f"{name} AS ({rows})" for name, rows in sources.items())
    first = tokenize(Script(sql))[0]
    if first.text.upper() == "WITH":
        return f"WITH {shadows}, {sql[first.end + 1 :].lstrip()}"
    return f"WITH {shadows} {sql[first.start :]}"
