"""What TOML files of the package have in common, as models: exact numbers, names, and the declaration of a column.

Numbers stay as they were written, so that 0.1 means one tenth, and whether a bound has a decimal point is still known.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from discreet.errors import InvalidParameter
from discreet.exact import exact, positive
from discreet.names import check_lines, check_name
from discreet.schema.columns import Declared, between, boolean, categories, text

__all__ = ["Bound", "ColumnModel", "Count", "Member", "Name", "Number", "Positive", "Sql", "Strict", "declared_in"]


def _number(value: Any) -> Any:
    """Refuse what is no exact number, and keep how it was written."""
    exact(value, name="this")
    return value


def _positive(value: Any) -> Any:
    positive(value, name="this")
    return value


def _bound(value: Any) -> Any:
    return value if isinstance(value, (date, datetime)) else _number(value)


def _sql(value: str) -> str:
    return check_lines(value, name="this")


def _name(value: str) -> str:
    return check_name(value, name="this")


_WRITTEN = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[-+0-9.eE/ ]+$"}]}
_TIME = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
Number = Annotated[Any, AfterValidator(_number), WithJsonSchema(_WRITTEN)]
Positive = Annotated[Any, AfterValidator(_positive), WithJsonSchema(_WRITTEN)]
Bound = Annotated[Any, AfterValidator(_bound), WithJsonSchema({"anyOf": [*_WRITTEN["anyOf"], _TIME]})]
Name = Annotated[str, AfterValidator(_name)]
Sql = Annotated[str, AfterValidator(_sql)]
Count = Annotated[int, Field(ge=1)]
Member = Annotated[Any, WithJsonSchema({"type": ["string", "integer"]})]


class Strict(BaseModel):
    """A table of a file: nothing in it is unknown, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class ColumnModel(Strict):
    """What is publicly known of a column: bounds, categories, or only its kind."""

    low: Bound | None = None
    """The lowest value, publicly known; what is lower is clamped."""
    high: Bound | None = None
    """The highest value, publicly known; what is higher is clamped."""
    step: Positive | None = None
    """The step of the grid on which a real column is added up; left out, finer than 2^-40 of the width."""
    whole: bool | None = None
    """Whether its numbers are whole, and rounded where they are not; left out, as the column is stored."""
    missing: Number | None = None
    """What takes the place of NULL and of what does not parse."""
    format: str | None = None
    """How texts write a date or timestamp, as strptime knows it, such as "%d/%m/%Y"; left out, by ISO 8601. Of numbers,
    how 1234.56 is written, such as "1.234,56"."""
    categories: list[Member] | None = None
    """All values that count, publicly known."""
    labels: dict[str, str] | None = None
    """What categories mean, by value, such as { 1 = "male", 2 = "female" }; reports show them beside the values."""
    kind: Literal["boolean", "text"] | None = None
    """A column of truth values, or of text of which nothing more is known."""
    of_unit: bool | None = None
    """Whether a unit has one value of it: the least of all its rows in that table. A key of such columns costs one
    group."""


def declared_in(column: ColumnModel) -> Declared:
    """Turn a column of the file into the declaration that the constructor would get."""
    said = column.model_dump(exclude_none=True)
    of_unit = bool(said.pop("of_unit", False))
    match sorted(said):
        case ["kind"]:
            return boolean(of_unit=of_unit) if column.kind == "boolean" else text(of_unit=of_unit)
        case ["categories"] | ["categories", "labels"]:
            return categories(column.categories or (), labels=_labels(column), of_unit=of_unit)
        case _ if {"low", "high"} <= said.keys() and said.keys().isdisjoint(("kind", "categories", "labels")):
            return between(
                said["low"],
                said["high"],
                step=column.step,
                missing=column.missing,
                whole=column.whole,
                format=column.format,
                of_unit=of_unit,
            )
    raise InvalidParameter(
        "say one of: low and high (with step, missing, whole and format, if you like), categories (with labels, if you "
        'like), or kind = "boolean" or "text"'
    )


def _labels(column: ColumnModel) -> dict[Any, str] | None:
    """Name values by what they are: keys of TOML are texts, also those of whole numbers."""
    if column.labels is None:
        return None
    known = {str(member): member for member in column.categories or ()}
    return {known.get(value, value): label for value, label in column.labels.items()}
