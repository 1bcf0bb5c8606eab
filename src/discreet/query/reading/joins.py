"""FROM, JOIN and WHERE: which rows are asked about, and whose they are.

A joined row belongs to one unit: a private table is joined with public ones, or with a private one on the unit itself.
Inner joins are put in an order in which each is connected to what came before, whatever order they were written in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from discreet.query.expressions import Apply, Expression, Field, walk
from discreet.query.operators import Operator
from discreet.query.reading.expressions import chain, read_condition
from discreet.query.reading.forms import check_slots, class_of, refuse_form
from discreet.query.reading.join_rules import Pair, check_join, equates_units
from discreet.query.reading.memberships import is_membership, keep_members
from discreet.query.reading.rules import apply
from discreet.query.reading.scopes import Context, FromItem, Scope, ScopeColumn, SubqueryRows
from discreet.query.reading.statements import read_query, read_table, renamed_columns
from discreet.query.sources import Filter, Join, JoinKind, Source, fields_of, is_private

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["read_from"]

_MOST_PARTNERS = 32


@final
@dataclass(frozen=True, slots=True)
class _Partner:
    """An entry of FROM before it is joined."""

    part: FromItem
    rows: SubqueryRows
    node: exp.Expr
    side: str = ""
    on: tuple[Expression, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class _Joined:
    """What has been joined so far."""

    source: Source
    units: frozenset[str]


def read_from(context: Context, node: exp.Expr) -> Scope:
    """Read FROM, its joins, and WHERE."""
    clause = node.args.get("from_")
    if clause is None:
        raise context.script.refuse(
            node, "FROM is missing", reason="there is nothing to ask about", way_out="name a table: SELECT … FROM table"
        )
    check_slots(context.script, clause, frozenset({"this"}))
    partners, shared = _partners(context, node)
    parts = tuple(partner.part for partner in partners)
    naming = Scope(partners[0].rows.source, parts, shared)
    nodes = _where(context, node)
    conditions = [read_condition(context, naming, part) for part in nodes if not is_membership(part)]
    joined, rest = _join_all(context, partners, conditions)
    scope = Scope(_filtered(joined.source, rest), parts, shared, joined.units)
    for part in nodes:
        if is_membership(part):
            scope = replace(scope, source=keep_members(context, scope, part))
    return scope


def _where(context: Context, node: exp.Expr) -> list[exp.Expr]:
    clause = node.args.get("where")
    if clause is None:
        return []
    check_slots(context.script, clause, frozenset({"this"}))
    return chain(clause.this) if class_of(clause.this) == "And" else [clause.this]


def _conjuncts(context: Context, scope: Scope, node: exp.Expr) -> list[Expression]:
    parts = chain(node) if class_of(node) == "And" else [node]
    return [read_condition(context, scope, part) for part in parts]


def _filtered(source: Source, conditions: Sequence[Expression]) -> Source:
    if not conditions:
        return source
    return Filter(source, conditions[0] if len(conditions) == 1 else apply(Operator.AND, *conditions))


def _partners(context: Context, node: exp.Expr) -> tuple[list[_Partner], frozenset[str]]:
    """Read the entries of FROM in the order in which they are written, each ON with the names known there."""
    partners = [_partner(context, node.args["from_"].this)]
    shared: frozenset[str] = frozenset()
    joins = node.args.get("joins") or ()
    if len(joins) >= _MOST_PARTNERS:
        raise context.script.refuse(
            joins[_MOST_PARTNERS - 1],
            f"FROM has at most {_MOST_PARTNERS} entries",
            reason="more cost time before anything is paid",
            way_out="join fewer tables, or put public ones together beforehand",
        )
    for join in joins:
        side = _side(context, join)
        check_slots(context.script, join, frozenset({"this", "on", "using", "side", "kind"}))
        partner = _partner(context, join.this)
        _refuse_twice(context, join, partner, partners)
        if side == "LEFT":
            partner = replace(partner, part=_nullable(partner.part))
        elif side == "RIGHT":
            _refuse_among_others(context, node, join)
            partners = [replace(former, part=_nullable(former.part)) for former in partners]
        on, names = _conditions(context, join, partner, partners, shared)
        shared |= names
        partners.append(replace(partner, side=side, on=tuple(on)))
    return partners, shared


def _refuse_among_others(context: Context, node: exp.Expr, join: exp.Expr) -> None:
    """A RIGHT JOIN is read as a LEFT JOIN the other way round, which is the same for two tables only."""
    if len(node.args["joins"]) > 1:
        raise context.script.refuse(
            join,
            "RIGHT JOIN is answered between two tables only",
            reason="among more of them it would keep rows that conditions elsewhere drop",
            way_out="start with the table whose rows are kept, and write LEFT JOIN",
        )


def _refuse_twice(context: Context, node: exp.Expr, partner: _Partner, former: Sequence[_Partner]) -> None:
    if any(other.part.name.lower() == partner.part.name.lower() for other in former):
        raise context.script.refuse(
            node,
            "two entries of FROM have one name",
            reason="it would not be clear whose column is meant",
            way_out="name each: FROM t AS a JOIN t AS b",
        )


def _partner(context: Context, node: exp.Expr) -> _Partner:
    if class_of(node) == "Table":
        rows = read_table(context, node)
        alias = node.args.get("alias")
        name = str(alias.name) if alias is not None and alias.name else str(node.name)
        rows = renamed_columns(context, alias, rows)
    elif class_of(node) == "Subquery":
        check_slots(context.script, node, frozenset({"this", "alias"}))
        rows = renamed_columns(context, node.args.get("alias"), read_query(context, node.this))
        name = str(node.alias)
    else:
        raise refuse_form(context.script, node, "a source of rows")
    return _Partner(FromItem(name, rows.columns), rows, node)


def _side(context: Context, join: exp.Expr) -> str:
    method, side, kind = (str(join.args.get(slot) or "").upper() for slot in ("method", "side", "kind"))
    if not method and side in ("", "LEFT", "RIGHT") and kind in ("", "INNER", "OUTER", "CROSS"):
        return side
    raise context.script.refuse(
        join,
        f"{' '.join(word for word in (method, side, kind) if word)} JOIN is not answered",
        reason="a row without a partner belongs to nobody whose share could be bounded, or depends on others",
        way_out="use JOIN or LEFT JOIN, with the private table on the left",
    )


def _nullable(part: FromItem) -> FromItem:
    """Columns of the side that may be missing are NULL there."""
    columns = tuple(
        ScopeColumn(c.name, Field(c.field.name, replace(c.field.facts, nullable=True)), c.origin) for c in part.columns
    )
    return FromItem(part.name, columns)


def _conditions(
    context: Context, join: exp.Expr, partner: _Partner, former: Sequence[_Partner], shared: frozenset[str]
) -> tuple[list[Expression], frozenset[str]]:
    known = Scope(partner.rows.source, tuple(other.part for other in former), shared)
    names = [str(name.this) for name in join.args.get("using") or ()]
    if names:
        own = Scope(partner.rows.source, (partner.part,))
        pairs = [
            apply(
                Operator.EQUAL,
                known.look_up(context.script, name, None, join).field,
                own.look_up(context.script, name, None, join).field,
            )
            for name in names
        ]
        return pairs, frozenset(name.lower() for name in names)
    if join.args.get("on") is None:
        return [], frozenset()
    both = Scope(partner.rows.source, (*known.parts, partner.part), shared)
    return _conjuncts(context, both, join.args["on"]), frozenset()


def _join_all(
    context: Context, partners: Sequence[_Partner], conditions: Sequence[Expression]
) -> tuple[_Joined, list[Expression]]:
    """Join inner partners as they connect, outer ones where they stand; return what is left to filter by."""
    joined: _Joined | None = None
    waiting: list[_Partner] = []
    usable = [*conditions, *(condition for partner in partners if not partner.side for condition in partner.on)]
    for partner in partners:
        if not partner.side:
            waiting.append(partner)
            continue
        joined, usable = _join_inner(context, joined, waiting, usable)
        waiting = []
        joined = _join_outer(context, joined, partner)
    return _join_inner(context, joined, waiting, usable)


def _join_inner(
    context: Context, joined: _Joined | None, waiting: Sequence[_Partner], conditions: list[Expression]
) -> tuple[_Joined, list[Expression]]:
    pending = list(waiting)
    if joined is None:
        first = next((partner for partner in pending if is_private(partner.rows.source)), pending[0])
        pending.remove(first)
        joined = _Joined(first.rows.source, first.rows.units)
    while pending:
        ready = [partner for partner in pending if _pairs(joined, partner, conditions)]
        if not ready:
            raise _unconnected(context, pending[0])
        partner = next((p for p in ready if _meets_unit(joined, p, conditions)), ready[0])
        pairs = _pairs(joined, partner, conditions)
        pending.remove(partner)
        joined = _inner(context, joined, partner, [pair for _, pair in pairs])
        used = [condition for condition, _ in pairs]
        conditions = [condition for condition in conditions if condition not in used]
    return joined, conditions


def _unconnected(context: Context, partner: _Partner) -> Exception:
    return context.script.refuse(
        partner.node,
        "nothing connects this with the rest of FROM",
        reason="every row with every other is a number of rows that nobody's share bounds",
        way_out="join on equal columns: JOIN t ON a.key = t.key",
    )


def _names(source: Source) -> frozenset[str]:
    return frozenset(field.name for field in fields_of(source))


def _used(expression: Expression) -> frozenset[str]:
    return frozenset(part.name for part in walk(expression) if isinstance(part, Field))


def _pairs(joined: _Joined, partner: _Partner, conditions: Sequence[Expression]) -> list[tuple[Expression, Pair]]:
    """Return the equalities that connect a partner, with the joined side first."""
    here, there = _names(joined.source), _names(partner.rows.source)
    found: list[tuple[Expression, Pair]] = []
    for condition in conditions:
        if not isinstance(condition, Apply) or condition.operator is not Operator.EQUAL:
            continue
        one, other = condition.arguments
        uses = _used(one), _used(other)
        if not uses[0] or not uses[1]:
            continue
        if uses[0] <= here and uses[1] <= there:
            found.append((condition, (one, other)))
        elif uses[1] <= here and uses[0] <= there:
            found.append((condition, (other, one)))
    return found


def _meets_unit(joined: _Joined, partner: _Partner, conditions: Sequence[Expression]) -> bool:
    pairs = [pair for _, pair in _pairs(joined, partner, conditions)]
    return not is_private(partner.rows.source) or equates_units(joined.units, partner.rows.units, pairs)


def _inner(context: Context, joined: _Joined, partner: _Partner, pairs: list[Pair]) -> _Joined:
    check_join(context, partner.node, joined.source, joined.units, partner.rows.source, partner.rows.units, pairs)
    source = Join(joined.source, partner.rows.source, JoinKind.INNER, tuple(pairs))
    return _Joined(source, joined.units | partner.rows.units)


def _join_outer(context: Context, joined: _Joined, partner: _Partner) -> _Joined:
    pairs = _pairs(joined, partner, partner.on)
    paired = [condition for condition, _ in pairs]
    rest = [condition for condition in partner.on if condition not in paired]
    flipped = partner.side == "RIGHT"
    keeps, adds = (partner.rows.source, joined.source) if flipped else (joined.source, partner.rows.source)
    units = (partner.rows.units, joined.units) if flipped else (joined.units, partner.rows.units)
    if not pairs or any(not _used(condition) <= _names(adds) for condition in rest):
        raise context.script.refuse(
            partner.node,
            "an outer join is on equal columns, and on conditions of the side that may be missing",
            reason="any other condition cannot be checked before the rows are joined",
            way_out="move the other conditions to WHERE, or use JOIN",
        )
    sides: list[Pair] = [(other, one) if flipped else (one, other) for _, (one, other) in pairs]
    right = _filtered(adds, rest)
    check_join(context, partner.node, keeps, units[0], right, units[1], sides)
    return _Joined(Join(keeps, right, JoinKind.LEFT, tuple(sides)), units[0])
