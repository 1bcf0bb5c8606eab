"""A TOML file that is checked by a model: whatever is wrong in it is named with its line and what to write instead."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, final

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = ["Document", "Place", "line_of", "parse"]

Place: TypeAlias = Sequence[str | int]  # keys and positions, from the root
Model = TypeVar("Model", bound="BaseModel")
_LARGEST = 1_000_000  # Characters; such a file is written by people.


@final
@dataclass(frozen=True, slots=True)
class Document(Generic[Model]):
    """One file while it is read: it knows where everything is said."""

    file: Path
    written: str
    model: type[Model]
    manual: str  # the page that shows such a file

    @classmethod
    def open(cls, path: str | Path, model: type[Model], *, manual: str) -> Document[Model]:
        """Read the text of a file."""
        file = Path(path)
        try:
            written = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError):
            raise InvalidParameter(f"{file.name} cannot be read as a text file: check the path") from None
        return cls(file, written, model, manual)

    def checked(self) -> Model:
        """Return what the file says, or raise an error that names every place where it does not fit the model."""
        from pydantic import ValidationError

        document = self._parsed()
        try:
            return self.model.model_validate(document)
        except ValidationError as error:
            raise self._refusal(error) from None

    def says(self, place: Place, advice: str) -> str:
        """Say something of a place of the file."""
        where = ".".join(map(str, place)) or "the file"
        return f"{self.file.name}, line {line_of(self.written, place)}, {where}: {advice}"

    def wrong(self, place: Place, advice: str) -> InvalidParameter:
        """Return the error that says something of a place."""
        return InvalidParameter(self.says(place, advice))

    def at(self, place: Place, make: Any, *values: Any, **named: Any) -> Any:
        """Make a part of what the file says, and tell the place if it cannot be."""
        try:
            return make(*values, **named)
        except InvalidParameter as error:
            raise self.wrong(place, str(error)) from None

    def beside(self, path: str) -> Path:
        """Return a path that is said relative to the file."""
        return self.file.parent / path

    def _parsed(self) -> dict[str, Any]:
        if len(self.written) > _LARGEST:
            raise InvalidParameter(f"{self.file.name} is too long to be read: it may have a million characters")
        try:
            return parse(self.written)
        except tomllib.TOMLDecodeError as error:
            raise InvalidParameter(f"{self.file.name} is not TOML: {error}. See {self.manual} for an example") from None
        except (RecursionError, ValueError, ArithmeticError):
            raise InvalidParameter(f"{self.file.name} is not TOML that can be read. See {self.manual}") from None

    def _refusal(self, error: ValidationError) -> InvalidParameter:
        return InvalidParameter("\n".join(self.says(found["loc"], self._advice(found)) for found in error.errors()))

    def _advice(self, found: ErrorDetails) -> str:
        """Say what is wrong at a place, and what to write instead."""
        place, kind = found["loc"], found["type"]
        if kind == "extra_forbidden":
            return _unknown(str(place[-1]), sorted(_fields_at(self.model, place[:-1])))
        if kind == "missing":
            return f"this is missing: {_described(self.model, place)}"
        if kind in ("model_type", "dict_type"):
            return f"this should be a table. What can stand in it: {', '.join(sorted(_fields_at(self.model, place)))}"
        if kind == "value_error":
            return str(found["ctx"]["error"])
        said = found["msg"].removeprefix("Input ").removeprefix("should ").removeprefix("be ")
        return f"this should be {said}. {_described(self.model, place)}".strip()


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"unknown here. {f'Did you mean {near[0]}? ' if near else ''}What can stand here: {', '.join(known)}"


def _fields_at(model: type[BaseModel], place: Place) -> Mapping[str, FieldInfo]:
    """Return the fields that can stand at a place, as they are written in the file."""
    for step in place:
        fields = _written_names(model)
        if isinstance(step, str) and step in fields:
            model = _model_in(fields[step].annotation) or model
    return _written_names(model)


def _written_names(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds: itself, or the items of its list or table."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in getattr(annotation, "__args__", ()) if (model := _model_in(part))), None)


def _described(model: type[BaseModel], place: Place) -> str:
    """Return what the model says of the field at a place."""
    name = next((step for step in reversed(place) if isinstance(step, str)), "")
    field = _fields_at(model, place[:-1]).get(name)
    described = "" if field is None else field.description or getattr(_model_in(field.annotation), "__doc__", "") or ""
    return described.strip()


# --- lines: Find the line of a TOML file on which something is said, so that an error can name it. ---


def parse(text: str) -> dict[str, Any]:
    """Read TOML; decimals stay exact."""
    return tomllib.loads(text, parse_float=Decimal)


def line_of(text: str, place: Place) -> int:
    """Return the line, counted from one, where a place of a valid document is first said; its parent's if it is not.

    Every beginning of a document that ends with a statement is a document too, and what it says only grows: so the
    first one that says it ends with the statement that we look for.
    """
    lines = text.splitlines(keepends=True)
    firsts, ends = _statements(lines)
    deepest = _deepest(parse(text), place)
    index = bisect_left(ends, True, key=lambda end: _has(parse("".join(lines[:end])), deepest))
    return firsts[min(index, len(firsts) - 1)] + 1 if deepest else 1


def _statements(lines: Sequence[str]) -> tuple[list[int], list[int]]:
    """Split a valid document into statements: where each begins, and where the next would."""
    firsts, ends, first = [0], [0], 0
    for end in range(1, len(lines) + 1):
        # An array over many lines is not tried after each of its items: long ones would take long.
        if lines[end - 1].rstrip().endswith(",") and "#" not in lines[end - 1]:
            continue
        if _is_complete("".join(lines[first:end])):
            firsts.append(first)
            ends.append(end)
            first = end
    return firsts, ends


def _is_complete(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _deepest(document: Any, place: Place) -> Place:
    """Return the part of a place that the document says."""
    return next(place[:n] for n in range(len(place), -1, -1) if _has(document, place[:n]))


def _has(document: Any, place: Place) -> bool:
    for step in place:
        if isinstance(document, dict) and step in document:
            document = document[str(step)]
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return False
    return True
