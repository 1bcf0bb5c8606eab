"""FROM, JOIN, WHERE, IN and EXISTS: which rows are asked about, which joins are private, and whose the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, final

from discreet.query.ast import (
    Apply,
    Expression,
    Field,
    Filter,
    Join,
    JoinKind,
    Operator,
    PerUnit,
    Source,
    Table,
    fields_of,
    is_private,
    walk,
)
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply
from discreet.query.parse.allow_list import check_slots, class_of, refuse_form
from discreet.query.parse.expression_reader import chain, read_condition, read_expression
from discreet.query.parse.scopes import Context, FromItem, Scope, ScopeColumn, SubqueryRows
from discreet.query.parse.subqueries import read_query, read_table, renamed_columns

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Pair", "as_membership", "check_join", "equates_units", "is_membership", "keep_members", "read_from"]

# --- joins: FROM, JOIN and WHERE: which rows are asked about, and whose they are. ---
#
# A joined row belongs to one unit: a private table is joined with public ones, or with a private one on the unit
# itself.
# Inner joins are put in an order in which each is connected to what came before, whatever order they were written in.


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
        reason="a row without a partner has no unit whose contribution could be bounded, or depends on others",
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
        reason="a join of every row with every other has no bound on the contribution of one unit",
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


# --- join_rules: Which joins are private: every joined row belongs to one unit, and to no other. ---


Pair: TypeAlias = tuple[Expression, Expression]  # of the left, of the right


def equates_units(left: frozenset[str], right: frozenset[str], pairs: Sequence[Pair]) -> bool:
    """Whether one of the pairs is the unit of both sides, unchanged."""
    return any(
        isinstance(one, Field) and one.name in left and isinstance(other, Field) and other.name in right
        for one, other in pairs
    )


def check_join(
    context: Context,
    node: exp.Expr,
    left: Source,
    left_units: frozenset[str],
    right: Source,
    right_units: frozenset[str],
    pairs: Sequence[Pair],
) -> None:
    """Refuse a join whose rows would belong to nobody, or to two units."""
    if is_private(right) and not is_private(left):
        raise context.script.refuse(
            node,
            "a public table cannot keep its rows in a join with a private one",
            reason="a public row without a partner belongs to nobody",
            way_out="put the private table on the left, or use JOIN; groups that are empty are shown anyway",
        )
    if context.catalogue.unit.is_row:
        _check_rows(context, node, left, right, pairs)
    elif is_private(left) and is_private(right) and not equates_units(left_units, right_units, pairs):
        raise context.script.refuse(
            node,
            f"private tables must be joined on the unit column, {context.catalogue.unit.called}, itself",
            reason="otherwise a joined row belongs to two people, and the contribution of neither is bounded",
            way_out=f"add a.{context.catalogue.unit.called} = b.{context.catalogue.unit.called} to ON, unchanged",
        )


def _check_rows(context: Context, node: exp.Expr, left: Source, right: Source, pairs: Sequence[Pair]) -> None:
    if is_private(left) and is_private(right):
        raise context.script.refuse(
            node,
            "private tables cannot be joined where the privacy unit is a row",
            reason="one row may match many, and would count as often",
            way_out='ask the custodian to protect a unit: Unit("column", …) instead of "row"',
        )
    if is_private(left) and not _is_unique(context, right, pairs):
        raise context.script.refuse(
            node,
            "the public side of this join must have each key once",
            reason="rows are protected one by one, and a row that matches twice counts twice",
            way_out="join on the key of the public table, or give one without duplicates",
        )


def _is_unique(context: Context, right: Source, pairs: Sequence[Pair]) -> bool:
    source = right.source if isinstance(right, Filter) else right
    if not isinstance(source, Table):
        return False
    columns = {column.field.name: column.column for column in source.columns}
    joined = {columns[field.name] for _, field in pairs if isinstance(field, Field) and field.name in columns}
    table = next(table for table in context.catalogue.tables.values() if table.name == source.table)
    return any(key <= joined for key in table.unique)


# --- memberships: `x IN (SELECT …)` and EXISTS in WHERE: whoever is in a list that a sub-query makes. ---
#
# The list is of units, each of which decides about itself, or public. It becomes a join with one row for each entry.


_MOST = 10_000  # entries of a public list that are written out


def is_membership(node: exp.Expr) -> bool:
    """Whether a condition asks for membership in a sub-query."""
    return _inside(node) is not None


def _inside(node: exp.Expr) -> exp.Expr | None:
    while class_of(node) in ("Not", "Paren"):
        node = node.this
    in_query = class_of(node) == "In" and node.args.get("query") is not None
    return node if in_query or class_of(node) == "Exists" else None


def keep_members(context: Context, scope: Scope, node: exp.Expr) -> Source:
    """Return the rows of a scope that are, or with NOT are not, in the sub-query."""
    question = _inside(node)
    assert question is not None
    check_slots(context.script, question, frozenset({"this", "query"}))
    if class_of(question) == "Exists":
        subject, query = as_membership(context, scope, question)
    else:
        subject, query = question.this, question.args["query"]
    value, members = read_expression(context, scope, subject), read_query(context, query)
    wanted = not _is_negated(node)
    if len(members.columns) != 1:
        raise context.script.refuse(
            question, "IN takes a sub-query with one column", reason="one value is compared", way_out="select one"
        )
    if is_private(members.source):
        return _keep_units(context, scope, question, value, members, wanted)
    return _keep_public(context, scope, question, value, members, wanted)


def _is_negated(node: exp.Expr) -> bool:
    negated = False
    while class_of(node) in ("Not", "Paren"):
        negated ^= class_of(node) == "Not"
        node = node.this
    return negated


def _keep_units(
    context: Context, scope: Scope, node: exp.Expr, value: Expression, members: SubqueryRows, wanted: bool
) -> Source:
    field = members.columns[0].field
    mine = isinstance(value, Field) and value.name in scope.units
    if not mine or field.name not in members.units:
        column = context.catalogue.unit.called
        raise context.script.refuse(
            node,
            "membership in a private sub-query compares the unit with the unit",
            reason="otherwise one person's rows decide about another's",
            way_out="use a column of the same table, or a public list"
            if context.catalogue.unit.is_row
            else f"write {column} IN (SELECT {column} FROM … WHERE …), unchanged",
        )
    own = Field(context.fresh(), field.facts)
    return _joined(scope.source, PerUnit(members.source, own, (), ()), value, own, wanted)


def _joined(source: Source, members: Source, value: Expression, own: Field, wanted: bool) -> Source:
    pair = _sides(apply(Operator.EQUAL, value, own))
    if wanted:
        return Join(source, members, JoinKind.INNER, (pair,))
    absent = apply(Operator.IS_NULL, Field(own.name, replace(own.facts, nullable=True)))
    return Filter(Join(source, members, JoinKind.LEFT, (pair,)), absent)


def _sides(equality: Expression) -> tuple[Expression, Expression]:
    assert isinstance(equality, Apply)
    return equality.arguments[0], equality.arguments[1]


def _keep_public(
    context: Context, scope: Scope, node: exp.Expr, value: Expression, members: SubqueryRows, wanted: bool
) -> Source:
    field = members.columns[0].field
    if isinstance(members.source, Table) and field.facts.members is not None and len(field.facts.members) <= _MOST:
        values = [literal(member) for member in field.facts.members]  # type: ignore[arg-type]
        found = apply(Operator.IN, value, *values)
        return Filter(scope.source, found if wanted else apply(Operator.NOT, found))
    if not _is_key(context, members.source, field):
        raise context.script.refuse(
            node,
            "this list may have entries twice",
            reason="a row that matches twice would count twice",
            way_out="use the key of a public table, or a public table without duplicates",
        )
    kept = _joined(scope.source, members.source, value, field, wanted)
    # NULL is not known to be outside of a list, so that NOT IN leaves it out; NOT EXISTS does not.
    leaves_out = not wanted and class_of(node) == "In" and value.facts.nullable
    return Filter(kept, apply(Operator.NOT, apply(Operator.IS_NULL, value))) if leaves_out else kept


def _is_key(context: Context, source: Source, field: Field) -> bool:
    table = source.source if isinstance(source, Filter) else source
    if not isinstance(table, Table):
        return False
    column = next((column.column for column in table.columns if column.field.name == field.name), None)
    known = next(entry for entry in context.catalogue.tables.values() if entry.name == table.table)
    return frozenset({column}) in known.unique


# --- existence ---
# `EXISTS (SELECT … WHERE inner.key = outer.key AND …)` is membership of the outer key in a list of inner ones.


def as_membership(context: Context, scope: Scope, node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the outer column, and the inner query of the column that it must equal."""
    query = node.this
    if class_of(query) != "Select" or query.args.get("where") is None:
        raise refuse_form(context.script, node, "a condition")
    check_slots(context.script, query, frozenset({"expressions", "from_", "joins", "where"}))
    inner = _existence_names(query)
    outer = {part.name.lower() for part in scope.parts} - inner
    condition = query.args["where"].this
    parts = chain(condition) if class_of(condition) == "And" else [condition]
    links = [part for part in parts if _existence_sides(part, inner, outer) is not None]
    if len(links) != 1:
        raise refuse_form(context.script, node, "a condition")
    sides = _existence_sides(links[0], inner, outer)
    assert sides is not None
    return sides[0], _without(query, parts.index(links[0]), len(parts), sides[1])


def _existence_names(query: exp.Expr) -> set[str]:
    sources = [query.args["from_"].this] if query.args.get("from_") is not None else []
    sources += [join.this for join in query.args.get("joins") or ()]
    return {str(source.alias_or_name).lower() for source in sources}


def _existence_sides(node: exp.Expr, inner: set[str], outer: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the outer and the inner column of an equality between the two queries."""
    if class_of(node) != "EQ" or class_of(node.this) != "Column" or class_of(node.args["expression"]) != "Column":
        return None
    one, other = node.this, node.args["expression"]
    tables = one.text("table").lower(), other.text("table").lower()
    if tables[0] in outer and tables[1] in inner:
        return one, other
    return (other, one) if tables[1] in outer and tables[0] in inner else None


def _without(query: exp.Expr, place: int, count: int, column: exp.Expr) -> exp.Expr:
    """Return the query that selects the inner column, without the condition that ties it to the outer query."""
    from sqlglot import exp

    plain = query.copy()
    condition = plain.args["where"].this
    parts = chain(condition) if class_of(condition) == "And" else [condition]
    if len(parts) != count:
        raise RuntimeError("a copy of the query has other conditions than the query")
    rest = [part for index, part in enumerate(parts) if index != place]
    plain.set("expressions", [column.copy()])
    plain.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    return plain
