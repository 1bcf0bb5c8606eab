"""From tokens to sqlglot's tree, which is then read by an allow-list and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.query.reading.refusals import Script
from discreet.query.reading.tokens import Lifted

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["parse"]


def parse(script: Script, lifted: Lifted) -> exp.Expr:
    """Parse one statement."""
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ParseError

    try:
        statements = DuckDB().parser().parse(lifted.tokens, script.text)
    except ParseError as error:
        raise _unparsed(script, error) from None
    except RecursionError:
        raise script.refuse(
            None,
            "this query nests too deep",
            reason="it costs time before anything is paid",
            way_out="split it, or put long lists into a public table",
        ) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # The parser trips over some texts that are no SQL; its own message would say nothing to whoever wrote them.
        raise _unparsed(script, None) from None
    if len(statements) != 1 or statements[0] is None:
        raise _unparsed(script, None)
    return statements[0]


def _unparsed(script: Script, error: object) -> Exception:
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line"), details[0].get("col")
    place = None
    if isinstance(line, int) and isinstance(column, int):
        starts = [0, *(at + 1 for at, letter in enumerate(script.text) if letter == "\n")]
        place = starts[min(line, len(starts)) - 1] + max(column - 1, 0)
    return script.refuse(
        place,
        "this is not SQL that can be read",
        reason="only what is understood in full is answered",
        way_out="check the words around the caret; the dialect is that of DuckDB",
    )
