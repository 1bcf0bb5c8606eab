"""A TOML file that is checked by a model: whatever is wrong in it is named with its line and what to write instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, final

from discreet.errors import InvalidParameter
from discreet.formatting import shortened
from discreet.names import check_path

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = ["Document", "Place", "line_of", "parse"]

Place: TypeAlias = Sequence[str | int]  # keys and positions, from the root
Model = TypeVar("Model", bound="BaseModel")
_LARGEST = 1_000_000  # Characters; such a file is written by people.
_TOLD = 10  # Places that an error names; the rest are counted.
_LONGEST_PLACE = 200


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
        file = check_path(path, name="the file")
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
            raise self._refusal(error, document) from None

    def says(self, place: Place, advice: str, document: dict[str, Any] | None = None) -> str:
        """Say something of a place of the file, which may have been parsed already."""
        where = shortened(".".join(map(str, place)), _LONGEST_PLACE) or "the file"
        return f"{self.file.name}, line {line_of(self.written, place, document)}, {where}: {advice}"

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
            _check_depth(self.written)
            return parse(self.written)
        except tomllib.TOMLDecodeError as error:
            raise InvalidParameter(f"{self.file.name} is not TOML: {error}. See {self.manual} for an example") from None
        except (RecursionError, ValueError, ArithmeticError):
            raise InvalidParameter(f"{self.file.name} is not TOML that can be read. See {self.manual}") from None

    def _refusal(self, error: ValidationError, document: dict[str, Any]) -> InvalidParameter:
        found = error.errors(include_url=False, include_input=False)
        told = [self.says(each["loc"], self._advice(each), document) for each in found[:_TOLD]]
        more = [f"and {len(found) - _TOLD:,} more such places"] if len(found) > _TOLD else []
        return InvalidParameter("\n".join([*told, *more]))

    def _advice(self, found: ErrorDetails) -> str:
        """Say what is wrong at a place, and what to write instead."""
        place, kind = found["loc"], found["type"]
        if kind == "extra_forbidden":
            return _unknown(str(place[-1]), sorted(_fields_at(self.model, place[:-1])))
        if kind == "missing":
            return f"this is missing: {_described(self.model, place)}"
        if kind in ("model_type", "dict_type"):
            return f"this should be a table. What can stand in it: {', '.join(sorted(_fields_at(self.model, place)))}"
        if kind == "too_short":
            return f"this is empty, and needs at least 1. {_described(self.model, place)}".strip()
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


def line_of(text: str, place: Place, document: dict[str, Any] | None = None) -> int:
    """Return the line, counted from one, where a place of a valid document is first said; its parent's if it is not.

    Every statement is read by itself, below the table whose header came last, until one says what we look for.
    """
    deepest = list(_deepest(parse(text) if document is None else document, place))
    if not deepest:
        return 1
    above: list[str | int] = []
    counts: dict[Place, int] = {}
    for first, statement in _statements(text):
        said = parse(statement)
        if statement.lstrip().startswith("["):
            above, said = _table_of(said, counts), {}
        if above[: len(deepest)] == deepest or (deepest[: len(above)] == above and _has(said, deepest[len(above) :])):
            return first
    return 1


def _table_of(header: Any, counts: dict[Place, int]) -> list[str | int]:
    """Return the place that a header names: of a list of tables its next, and below one its last."""
    place: list[str | int] = []
    while header:
        ((key, header),) = header.items()
        place.append(key)
        at = tuple(place)
        if isinstance(header, list):
            counts[at] = counts.get(at, -1) + 1
            header = header[0]
        if at in counts:
            place.append(counts[at])
    return place


# A text, a comment, a bracket, the end of a line, or a dot between parts of a key.
_TOKENS = re.compile(
    r'''"""(?:\\[\s\S]|[^\\])*?"{3,5}|\'{3}[\s\S]*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n|[\w\-]+|\.'''
)
_OPENING, _CLOSING = frozenset("[{"), frozenset("]}")
_DEEPEST = 64  # Parts of a key, and brackets within brackets; files of people have few.


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Split a document into statements, each with its first line; comments and blank lines belong to the next one."""
    start, line, first, depth, blank = 0, 1, 1, 0, True
    for token in _TOKENS.finditer(text):
        found = token[0]
        depth += (found in _OPENING) - (found in _CLOSING)
        line += found.count("\n")
        if found != "\n":
            if blank and not found.startswith("#"):
                start, first, blank = text.rfind("\n", 0, token.start()) + 1, line - found.count("\n"), False
        elif depth == 0 and not blank:
            yield first, text[start : token.end()]
            blank = True
    if not blank:
        yield first, text[start:]


def _check_depth(text: str) -> None:
    """Refuse keys of very many parts and brackets within very many brackets, which take very long to read."""
    depth = dots = end = 0
    for token in _TOKENS.finditer(text):
        found = token[0]
        depth += (found in _OPENING) - (found in _CLOSING)
        if found == "\n" or text[end : token.start()].strip(" \t"):
            dots = 0
        dots, end = dots + (found == "."), token.end()
        if max(depth, dots) > _DEEPEST:
            raise ValueError


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
