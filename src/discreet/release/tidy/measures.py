"""Which columns add up: counts of rows or values and sums, not counts of distinct things, means or medians."""

from __future__ import annotations

__all__ = ["adds_up"]


def adds_up(measure: str) -> bool:
    """Say whether the value of a group is the sum of the values of its parts."""
    import sqlglot
    from sqlglot import expressions as exp

    try:
        tree = sqlglot.parse_one(measure, dialect="duckdb")
    except sqlglot.errors.ParseError:
        return False
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return type(call) in (exp.Count, exp.Sum) and not isinstance(call.this, exp.Distinct)
