"""Levels: a coarser grouping of a column becomes a CASE over the values of that column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import final

from discreet.errors import InvalidParameter
from discreet.query.facts import Kind
from discreet.query.policy import Declared
from discreet.query.session.catalogue_building import nearest
from discreet.release.period import Schedule
from discreet.release.plan import Level
from discreet.release.reading.sql_text import constant, constants, identifier
from discreet.release.reading.window import days_of

__all__ = ["GroupingColumn", "GroupingColumns"]

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
    from discreet.query.expressions import Field
    from discreet.query.reading.domains import domain_of

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
