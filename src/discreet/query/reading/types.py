"""Names of types, and the kinds that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import Refused
from discreet.query.facts import Kind
from discreet.query.reading.forms import check_slots
from discreet.query.reading.scopes import Context

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["kind_of_type"]

_TYPES = {
    **dict.fromkeys(("BIGINT", "INT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT128"), Kind.INTEGER),
    **dict.fromkeys(("UBIGINT", "UINT", "USMALLINT", "UTINYINT"), Kind.INTEGER),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), Kind.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR"), Kind.TEXT),
    **dict.fromkeys(("TIMESTAMPNTZ", "TIMESTAMP", "DATETIME"), Kind.TIMESTAMP),
    "DATE": Kind.DATE,
    "BOOLEAN": Kind.BOOLEAN,
    "FLOAT64": Kind.REAL,
    "INT64": Kind.INTEGER,
}


def kind_of_type(context: Context, node: exp.Expr) -> tuple[Kind, int | None]:
    """Return the kind that a type stands for, and how many decimals it keeps, if it says so."""
    check_slots(context.script, node, frozenset({"this", "nested", "expressions", "kind"}))
    name = str(node.args.get("kind") or getattr(node.this, "name", node.this)).upper()
    kind = _TYPES.get(name)
    if kind is None or node.args.get("nested"):
        raise Refused(
            "values are cast to BOOLEAN, INTEGER, DOUBLE, VARCHAR, DATE or TIMESTAMP",
            reason="these mean the same on every engine",
            way_out="choose one of them; times have no zone here",
        )
    parameters = [str(parameter.this.this) for parameter in node.args.get("expressions") or ()]
    decimals = int(parameters[1]) if name == "DECIMAL" and len(parameters) == 2 and parameters[1].isdecimal() else None
    return kind, decimals
