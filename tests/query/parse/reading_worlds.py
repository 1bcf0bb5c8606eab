"""The catalogues that queries are read against, and a question written out as text."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet.query.ast import (
    Apply,
    Case,
    Choose,
    Combine,
    End,
    Expression,
    Field,
    Filter,
    Join,
    KeyValue,
    Literal,
    Measure,
    PerUnit,
    Post,
    Project,
    Query,
    ReleasedMeasure,
    Source,
    Table,
    UnionAll,
)
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.policy import Unit
from discreet.schema.columns import Declared, ExpressionFacts, Kind, between, boolean, categories, text

UNKNOWN_INTEGER = Declared(facts=ExpressionFacts(kind=Kind.INTEGER))
UNKNOWN_REAL = Declared(facts=ExpressionFacts(kind=Kind.REAL))
PEOPLE = {
    "uid": UNKNOWN_INTEGER,
    "age": between(0, 100),
    "income": between(0.0, 100_000.0, step="0.01"),
    "city": categories(["Bern", "Basel", "Chur"]),
    "member": boolean(),
    "born": between(date(1990, 1, 1), date(2019, 12, 31)),
    "name": text(),
    "weight": UNKNOWN_REAL,
    "country": text(),
}
ORDERS = {
    "uid": UNKNOWN_INTEGER,
    "amount": between(0, 500),
    "placed": between(datetime(2020, 1, 1), datetime(2021, 12, 31)),
    "country": text(),
    "discount": between(0.0, 0.1),
}
COUNTRIES = {"code": categories(["CH", "DE", "FR"]), "continent": categories(["Europe"]), "size": between(0, 10)}
REGIONS = {"code": text(), "region": categories(["north", "south"])}


def table(name: str, columns: dict[str, Declared], **more: Any) -> CatalogueTable:
    listed = {key: CatalogueColumn(name=key, facts=d.facts, missing=d.missing) for key, d in columns.items()}
    return CatalogueTable(name=name, columns=listed, **more)


def catalogue(unit: Unit) -> Catalogue:
    """Two private tables, a public one with a key, and a public one without."""
    owner = None if unit.is_row else unit.column
    tables = (
        table("people", PEOPLE, private=True, unit=owner),
        table("orders", ORDERS, private=True, unit=owner),
        table("countries", COUNTRIES, private=False, unique=frozenset({frozenset({"code"})})),
        table("regions", REGIONS, private=False),
    )
    return Catalogue(tables={entry.name: entry for entry in tables}, unit=unit)


BY_UNIT = catalogue(Unit("uid", 3, 2))
BY_ROW = catalogue(Unit("row"))


def written(question: Query) -> str:
    """Write a question out, one part a line; fields by their own names, tables with what they read."""
    lines = [f"from {source_text(question.source)}"]
    for key in question.keys:
        domain = "unknown" if key.domain is None else f"in {_values(key.domain)}"
        lines.append(f"key {key.name} = {expression_text(key.expression)} {domain}")
    lines += [f"measure {measure_text(measure)}" for measure in question.measures]
    lines += [f"output {output.name} = {post_text(output.value)}" for output in question.outputs]
    if question.having is not None:
        lines.append(f"having {post_text(question.having)}")
    lines += [f"order {post_text(order.value)}{' down' * order.descending}" for order in question.order]
    if question.limit is not None:
        lines.append(f"limit {question.limit.count} from {question.limit.offset}")
    return "\n".join(lines)


def _values(domain: tuple[Any, ...]) -> str:
    shown = [str(value) for value in domain]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "…", shown[-1]]) + f" ({len(shown)})"


def source_text(source: Source) -> str:
    match source:
        case Table():
            star = source.unit
            columns = (f"{c.field.name}{'*' * (c.field.name == star)} {c.column}" for c in source.columns)
            return f"{source.table}({', '.join(columns)})"
        case Filter():
            return f"filter({source_text(source.source)}, {expression_text(source.condition)})"
        case Project():
            named = (
                f"{n.field.name}{'*' * (n.field.name == source.unit)} = {expression_text(n.expression)}"
                for n in source.columns
            )
            return f"project({source_text(source.source)}, {', '.join(named)})"
        case Join():
            pairs = " and ".join(f"{expression_text(a)} = {expression_text(b)}" for a, b in source.pairs)
            return f"{source.kind.value}({source_text(source.left)}, {source_text(source.right)}, {pairs})"
        case PerUnit():
            parts = [f"{source.unit.name}*"]
            parts += [f"{key.field.name} = {expression_text(key.expression)}" for key in source.keys]
            parts += [
                f"{total.field.name} = {total.statistic.value}"
                + ("" if total.argument is None else f"({expression_text(total.argument)})")
                for total in source.totals
            ]
            return f"units({source_text(source.source)}, {', '.join(parts)})"
        case UnionAll():
            columns = (f"{field.name}{'*' * (field.name == source.unit)}" for field in source.columns)
            return f"union({', '.join(map(source_text, source.sources))}: {', '.join(columns)})"


def expression_text(expression: Expression) -> str:
    match expression:
        case Field():
            return expression.name
        case Literal():
            return _literal(expression)
        case Apply():
            return f"{expression.operator.name}({', '.join(map(expression_text, expression.arguments))})"
        case Case():
            branches = (f"{expression_text(a)} -> {expression_text(b)}" for a, b in expression.branches)
            return f"CASE({', '.join(branches)}, else {expression_text(expression.otherwise)})"


def _literal(literal: Literal) -> str:
    if isinstance(literal.value, Fraction):
        return str(float(literal.value))
    return repr(literal.value) if isinstance(literal.value, str) else str(literal.value)


def measure_text(measure: Measure) -> str:
    argument = f"({', '.join(map(expression_text, measure.arguments))})" if measure.arguments else ""
    more = "" if measure.quantile is None else f" at {measure.quantile}"
    more += "" if measure.among is None else f" of {', '.join(map(str, measure.among))}"
    return measure.statistic.value + argument + more + ("" if measure.sample else " of all")


def post_text(post: Post) -> str:
    match post:
        case ReleasedMeasure():
            return f"answer {post.measure}"
        case End():
            return f"{post.side.value} {post.measure}"
        case KeyValue():
            return f"key {post.key}"
        case Combine():
            return f"{post.operator.name}({', '.join(map(post_text, post.arguments))})"
        case Choose():
            branches = (f"{post_text(a)} -> {post_text(b)}" for a, b in post.branches)
            return f"CASE({', '.join(branches)}, else {post_text(post.otherwise)})"
        case Literal():
            return _literal(post)
