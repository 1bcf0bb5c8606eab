"""Ask in Python: a question is put together step by step, and becomes the same plan as the SQL it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, integer
from discreet.query.session.keys import Keys
from discreet.query.session.spending import Expectation
from discreet.query.session.words import Expr, col, name

if TYPE_CHECKING:
    from discreet.query.session.plan import Plan
    from discreet.query.session.session import Session

__all__ = ["QueryBuilder"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBuilder:
    """A question under construction. Every step returns a new one; `plan` hands it to the session."""

    session: Session
    table: str
    joined: tuple[str, ...] = ()
    conditions: tuple[Expr, ...] = ()
    groups: tuple[tuple[str, Expr], ...] = ()
    measures: tuple[tuple[str, Expr], ...] = ()
    shown_if: tuple[Expr, ...] = ()
    order: tuple[str, ...] = ()
    most: int | None = None

    def where(self, *conditions: Expr) -> QueryBuilder:
        """Keep the rows for which all conditions hold."""
        return replace(self, conditions=self.conditions + _words(conditions))

    def join(self, table: str, *, on: str | Mapping[str, str], how: str = "inner") -> QueryBuilder:
        """Join another table: on a column of both, or on pairs of columns, ours and theirs."""
        if how not in ("inner", "left"):
            raise InvalidParameter("how must be 'inner' or 'left'")
        pairs = {on: on} if isinstance(on, str) else dict(on)
        if not pairs:
            raise InvalidParameter("on must name at least one column")
        matches = " AND ".join(f"{name(self.table)}.{name(a)} = {name(table)}.{name(b)}" for a, b in pairs.items())
        kind = "LEFT JOIN" if how == "left" else "JOIN"
        return replace(self, joined=(*self.joined, f"{kind} {name(table)} ON {matches}"))

    def group_by(self, *columns: str, **computed: Expr) -> QueryBuilder:
        """Ask for each group: by columns, and by computed values under the names they are given."""
        plain = tuple((column, col(column)) for column in columns)
        return replace(self, groups=self.groups + plain + _named(computed))

    def agg(self, **measures: Expr) -> QueryBuilder:
        """Ask for these statistics of each group, or of all rows."""
        return replace(self, measures=self.measures + _named(measures))

    def having(self, *conditions: Expr) -> QueryBuilder:
        """Show the groups whose released values meet all conditions."""
        return replace(self, shown_if=self.shown_if + _words(conditions))

    def order_by(self, column: str, *, descending: bool = False) -> QueryBuilder:
        """Sort by a released column."""
        return replace(self, order=(*self.order, name(column) + (" DESC" if descending else "")))

    def limit(self, rows: int) -> QueryBuilder:
        """Show this many rows at most."""
        return replace(self, most=integer(rows, name="rows"))

    @property
    def sql(self) -> str:
        """The question as SQL."""
        if not self.measures:
            raise InvalidParameter("ask for something: .agg(n=count())")
        shown = ", ".join(f"{word.sql} AS {name(label)}" for label, word in self.groups + self.measures)
        parts = [
            f"SELECT {shown}",
            " ".join([f"FROM {name(self.table)}", *self.joined]),
            _all("WHERE", self.conditions),
            "GROUP BY " + ", ".join(word.sql for _, word in self.groups) if self.groups else "",
            _all("HAVING", self.shown_if),
            "ORDER BY " + ", ".join(self.order) if self.order else "",
            "" if self.most is None else f"LIMIT {self.most}",
        ]
        return "\n".join(part for part in parts if part)

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Number | None = None,
        relative_error: Number | None = None,
        expected: Expectation | None = None,
        delta: Number | None = None,
        keys: Keys | None = None,
        key: str | None = None,
    ) -> Plan:
        """Make the plan, as `Session.sql` would: say what to spend in the same words."""
        return self.session.sql(
            self.sql,
            epsilon=epsilon,
            rho=rho,
            share=share,
            error=error,
            relative_error=relative_error,
            expected=expected,
            delta=delta,
            keys=keys,
            key=key,
        )


def _words(conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if not all(isinstance(condition, Expr) for condition in conditions):
        raise InvalidParameter("conditions are written with col: col('price') > 5")
    return conditions


def _named(words: Mapping[str, Expr]) -> tuple[tuple[str, Expr], ...]:
    if not all(isinstance(word, Expr) for word in words.values()):
        raise InvalidParameter("each must be an expression: n=count(), total=sum('price'), decade=col('age') / 10")
    return tuple(words.items())


def _all(clause: str, conditions: tuple[Expr, ...]) -> str:
    return f"{clause} {' AND '.join(condition.sql for condition in conditions)}" if conditions else ""
