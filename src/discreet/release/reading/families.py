"""Families: many groupings of the same rows become one table each, and their numbers add up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import final

from discreet.errors import InvalidParameter
from discreet.release.plan import TablePlan, Wish
from discreet.release.reading.levels import GroupingColumn, GroupingColumns
from discreet.release.reading.sql_text import identifier

__all__ = ["GroupingFamily"]

_ADDS_UP = re.compile(r"\s*(COUNT|SUM)\s*\(", re.IGNORECASE)
_ROWS = "*"
_MOST_GROUPINGS = 64
_MOST_GROUPS = 1_000_000
_LONGEST = 150  # Characters of a name.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingFamily:
    """Groupings of the same rows.

    The rows are those of the source that fulfil `where` and whose value is listed for every key of every grouping:
    otherwise a total would hold rows that no group holds.
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
        return tuple(self._table(axes, by, Fraction(most, _groups(axes, by))) for by in self.groupings)

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
            title=f"{self.title} by {_listed(by)}" if by else self.title,
            sql=self._sql(axes, by),
            wish=self._part_of_wish(),
            expected={name: size * self._factor(name, larger) for name, size in self.expected.items()},
            keys={name: values for name, values in self.axes.keys.items() if name in by},
            family=self.name,
            by=by,
            measures=dict(self.measures),
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


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
