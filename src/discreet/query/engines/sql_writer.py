"""What SQL is written with: our own names, bound texts and numbers that we print ourselves.

No text of an analyst or of the data is ever part of a statement. Names of tables and columns come from the schema of
the data and are quoted in one place, here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.query.ast import Apply, Expression
from discreet.schema.columns import Kind

__all__ = [
    "FIRST_DAY",
    "LAST_DAY",
    "SQL_TYPES",
    "Rule",
    "WriteAs",
    "Writer",
    "binary",
    "day",
    "moment",
    "path_text",
    "quote",
    "real",
]

SQL_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
FIRST_DAY, LAST_DAY = date.min, date.max  # Times outside of these years do not exist here.
_SHORT = 100  # Characters; a longer argument is written once and named.


def quote(name: str) -> str:
    """Quote the name of a table or a column of the data."""
    if "\0" in name:
        raise InvalidParameter("a table or column has a name with a NUL character")
    return '"' + name.replace('"', '""') + '"'


def binary(text: str) -> str:
    """Write a text as its bytes are, whatever collation a database declares for its column.

    Under another collation two texts may be equal that are two to the planner. It is inherited by all that is computed
    from a column, through casts and functions; an explicit one of the reader's own ends it, at no cost.
    """
    return f'({text} COLLATE "C")'


def path_text(path: str) -> str:
    """Print the path of a file that the custodian named."""
    return "'" + path.replace("'", "''") + "'"


def real(value: Fraction | float) -> str:
    """Print a number as the nearest double; one that is beyond them all is NULL."""
    try:
        number = float(value)
    except OverflowError:
        return "CAST(NULL AS DOUBLE)"
    text = repr(number)
    if "n" in text:  # inf, nan
        return "CAST(NULL AS DOUBLE)"
    return f"({text})" if "e" in text else f"({text}e0)"


def day(value: date) -> str:
    """Print a date."""
    return f"DATE '{value.year:04d}-{value.month:02d}-{value.day:02d}'"


def moment(value: datetime) -> str:
    """Print a timestamp."""
    return f"TIMESTAMP '{value.year:04d}-{value.month:02d}-{value.day:02d} {value.time().isoformat('microseconds')}'"


@final
@dataclass(slots=True)
class Writer:
    """A statement in the making: the texts it binds, and the names it has given."""

    parameters: dict[str, str] = field(default_factory=dict)
    _fields: dict[str, str] = field(default_factory=dict)
    _names: int = 0

    def bind(self, text: str) -> str:
        """Bind a text and return its place."""
        name = f"p{len(self.parameters) + 1}"
        self.parameters[name] = text
        return f"${name}"

    def column(self, field_name: str) -> str:
        """Return our own name of a field."""
        return self._fields.setdefault(field_name, f"f{len(self._fields) + 1}")

    def fresh(self, prefix: str) -> str:
        """Make up a name."""
        self._names += 1
        return f"{prefix}{self._names}"

    def let(self, argument: str, body: Callable[[str], str]) -> str:
        """Write `body` of an argument that it needs more than once.

        A long argument is computed once, under a name: written out several times at each of many levels it would grow
        without bound.
        """
        if len(argument) <= _SHORT:
            return body(argument)
        name = self.fresh("v")
        return f"list_transform([{argument}], lambda {name}: {body(name)})[1]"


WriteAs: TypeAlias = Callable[[Expression, Kind, Writer], str]  # writes an argument as a value of a kind
Rule: TypeAlias = Callable[[Apply, Writer, WriteAs], str]  # writes an operator with its arguments
