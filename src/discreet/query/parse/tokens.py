"""From text to tokens: the limits that keep a parser safe, and what no parser knows, lifted out.

BigQuery's privacy clause and its `contribution_bounds_per_…` arguments are taken out of the stream of tokens and kept
beside it; what is left is plain SQL, each token still at its own place in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.query.parse.dialect_hints import unreadable_hint
from discreet.query.parse.privacy_options import PrivacyOptions, read_options
from discreet.query.parse.refusals import Script
from discreet.query.policy import Unit

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

__all__ = ["Bounds", "Lifted", "Per", "lift", "parse", "tokenize"]

_LONGEST = 100_000  # characters
_DEEPEST = 64  # parentheses, CASEs and prefix operators
_LONGEST_LIST = 10_000  # commas between two parentheses
_STARTS = frozenset({"SELECT", "WITH", "FROM", "L_PAREN"})
_OPENING = frozenset({"L_PAREN", "L_BRACKET", "L_BRACE", "CASE"})
_CLOSING = frozenset({"R_PAREN", "R_BRACKET", "R_BRACE", "END"})
_PREFIXES = frozenset({"NOT", "DASH", "PLUS", "TILDE", "AMP", "CARET"})


@final
class Per(Enum):
    """What bounds are for: every row, or all that a unit adds to a group."""

    ROW = "contribution_bounds_per_row"
    GROUP = "contribution_bounds_per_group"


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that an analyst gives with an aggregate."""

    per: Per
    low: Fraction
    high: Fraction


@final
@dataclass(frozen=True, slots=True)
class Lifted:
    """Plain SQL, and what stood beside it."""

    tokens: list[Token]
    options: PrivacyOptions | None = None
    bounds: Mapping[int, Bounds] = field(default_factory=dict)  # by where the name of the aggregate starts


def tokenize(script: Script) -> list[Token]:
    """Split a text into tokens, within limits that no honest query meets."""
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import TokenError

    if len(script.text) > _LONGEST:
        raise script.refuse(
            _LONGEST,
            f"a query has at most {_LONGEST:,} characters",
            reason="longer ones cost time before anything is paid",
            way_out="put long lists into a public table and join it",
        )
    try:
        tokens = [token for token in DuckDB().tokenize(script.text) if token.token_type.name != "HINT"]
    except TokenError:
        raise script.refuse(
            None,
            "this query cannot be tokenised",
            reason="only what is understood in full is answered",
            way_out="look for a quotation mark or a comment that is never closed",
        ) from None
    while tokens and tokens[-1].token_type.name == "SEMICOLON":
        tokens.pop()
    _check(script, tokens)
    return tokens


def _check(script: Script, tokens: Sequence[Token]) -> None:
    _check_statement(script, tokens)
    _check_depth(script, tokens)
    _check_numbers(script, tokens)


def _check_statement(script: Script, tokens: Sequence[Token]) -> None:
    if not tokens or tokens[0].token_type.name not in _STARTS:
        raise script.refuse(
            tokens[0] if tokens else None,
            "a query must be one SELECT statement",
            reason="everything else changes or shows something without a price",
            way_out="write SELECT … FROM … GROUP BY …",
        )
    second = next((token for token in tokens if token.token_type.name == "SEMICOLON"), None)
    if second is not None:
        raise script.refuse(
            second,
            "one statement at a time",
            reason="every question has a price of its own",
            way_out="ask the second question on its own",
        )


def _check_depth(script: Script, tokens: Sequence[Token]) -> None:
    open_lists = [0]
    prefixes = 0
    for token in tokens:
        name = token.token_type.name
        prefixes = prefixes + 1 if name in _PREFIXES else 0
        if name in _OPENING:
            open_lists.append(0)
        elif name in _CLOSING and len(open_lists) > 1:
            open_lists.pop()
        elif name == "COMMA":
            open_lists[-1] += 1
        if len(open_lists) + prefixes > _DEEPEST or open_lists[-1] >= _LONGEST_LIST:
            raise script.refuse(
                token,
                f"queries nest at most {_DEEPEST} deep, and lists have at most {_LONGEST_LIST:,} entries",
                reason="larger ones cost time before anything is paid",
                way_out="put long lists into a public table and join it",
            )


def _check_numbers(script: Script, tokens: Sequence[Token]) -> None:
    """Refuse 0x1F and 12abc: a parser may read the letters as a name for the number."""
    for token, following in pairwise(tokens):
        if token.token_type.name == "NUMBER" and following.start == token.end + 1 and following.text[:1].isalpha():
            raise script.refuse(
                token,
                "this is no number",
                reason="only what is understood in full is answered",
                way_out="write decimal numbers, and a blank before a name",
            )


def lift(script: Script, tokens: Sequence[Token], unit: Unit) -> Lifted:
    """Take BigQuery's clause and bounds out of the tokens."""
    plain, options = _lift_clause(script, list(tokens), unit)
    kept: list[Token] = []
    bounds: dict[int, Bounds] = {}
    callers: list[int] = []
    index = 0
    while index < len(plain):
        token = plain[index]
        if _is_bounds(plain, index):
            stop, found = _read_bounds(script, plain, index)
            _place_bounds(script, token, callers, bounds, found)
            if kept and kept[-1].token_type.name == "COMMA":
                kept.pop()
            index = stop
            continue
        if token.token_type.name == "L_PAREN":
            callers.append(kept[-1].start if kept else -1)
        elif token.token_type.name == "R_PAREN" and callers:
            callers.pop()
        kept.append(token)
        index += 1
    return Lifted(kept, options, bounds)


def _place_bounds(
    script: Script, token: Token, callers: Sequence[int], bounds: dict[int, Bounds], found: Bounds
) -> None:
    if not callers or callers[-1] in bounds:
        raise script.refuse(
            token,
            "bounds stand once, inside an aggregate",
            reason="they say how much one unit can change it",
            way_out="for example SUM(x, contribution_bounds_per_group => (0, 100))",
        )
    bounds[callers[-1]] = found


def _is_bounds(tokens: Sequence[Token], index: int) -> bool:
    names = {per.value for per in Per}
    following = tokens[index + 1].token_type.name if index + 1 < len(tokens) else ""
    return tokens[index].text.lower() in names and following == "FARROW"


def _read_bounds(script: Script, tokens: Sequence[Token], index: int) -> tuple[int, Bounds]:
    """Read `name => ( low , high )`; each a number, perhaps with a minus."""
    stop = index + 2
    while stop < len(tokens) and tokens[stop].token_type.name != "R_PAREN":
        stop += 1
    inside = [token.text for token in tokens[index + 2 : stop]]
    try:
        low, high = "".join(inside[1:]).split(",") if inside[:1] == ["("] else ("", "")
        first, last = exact(low, name="low"), exact(high, name="high")
    except (InvalidParameter, ValueError):
        first, last = Fraction(1), Fraction(0)
    if not first < last:
        raise script.refuse(
            tokens[index],
            "bounds are two numbers, the lower one first",
            reason="they say how much one unit can change the sum, so that they cannot come from data",
            way_out="for example contribution_bounds_per_group => (0, 100)",
        )
    return stop + 1, Bounds(Per(tokens[index].text.lower()), first, last)


def _lift_clause(script: Script, tokens: list[Token], unit: Unit) -> tuple[list[Token], PrivacyOptions | None]:
    starts = [
        index
        for index, token in enumerate(tokens)
        if token.text.upper() in ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
        and index >= 2
        and tokens[index - 1].token_type.name == "WITH"
        and tokens[index - 2].token_type.name == "SELECT"
    ]
    if not starts:
        return tokens, None
    if len(starts) > 1:
        raise script.refuse(
            tokens[starts[1]],
            "only one privacy clause is allowed",
            reason="a query is paid once",
            way_out="keep the first",
        )
    first = starts[0]
    stop, inside = _options_at(tokens, first + 1)
    return tokens[: first - 1] + tokens[stop:], read_options(script, inside, unit)


def _options_at(tokens: Sequence[Token], index: int) -> tuple[int, Sequence[Token]]:
    """Return where OPTIONS(…) ends and what is inside; nothing if it is not there."""
    names = [token.text.upper() for token in tokens[index : index + 2]]
    if names != ["OPTIONS", "("]:
        return index, ()
    stop = index + 2
    while stop < len(tokens) and tokens[stop].token_type.name != "R_PAREN":
        stop += 1
    return stop + 1, tokens[index + 2 : stop]


# --- parse: From tokens to sqlglot's tree, which is then read by an allow-list and forgotten. ---


def parse(script: Script, lifted: Lifted) -> exp.Expr:
    """Parse one statement."""
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import ParseError

    try:
        statements = DuckDB().parser().parse(lifted.tokens, script.text)
    except ParseError as error:
        raise _unparsed(script, lifted, error) from None
    except RecursionError:
        raise script.refuse(
            None,
            "this query nests too deep",
            reason="it costs time before anything is paid",
            way_out="split it, or put long lists into a public table",
        ) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # The parser trips over some texts that are no SQL; its own message would say nothing to whoever wrote them.
        raise _unparsed(script, lifted, None) from None
    if len(statements) != 1 or statements[0] is None:
        raise _unparsed(script, lifted, None)
    return statements[0]


def _unparsed(script: Script, lifted: Lifted, error: object) -> Exception:
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
        way_out=unreadable_hint(script.text, lifted.tokens)
        or "check the words around the caret; the dialect is that of DuckDB",
    )
