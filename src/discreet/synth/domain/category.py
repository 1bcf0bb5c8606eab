"""A column of declared values: whatever else stands in the data goes to a declared cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, final
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.formatting import record
from discreet.frames.cells import is_missing, plain_value
from discreet.frames.column import Column
from discreet.mechanisms.grid import exact_number
from discreet.mechanisms.parameters import read_flag, settle
from discreet.schema.columns import Declared, boolean, categories, text
from discreet.synth.domain.value_forms import TRUTHS, moment, numeral

__all__ = ["LONGEST", "OTHER", "Category", "Value", "text_of"]

Value: TypeAlias = str | int | bool
OTHER = "other"  # The label of the cell of all values that nobody declared.
_MOST = 1 << 20  # Values of one column.
LONGEST = 1000  # Characters of one value.
# Of whole numbers: a float holds them exactly, and none above them becomes one of them, where a table keeps floats.
_LARGEST = (1 << 53) - 1


@final
@dataclass(frozen=True, slots=True)
class Category:
    """A column whose values are declared: texts, whole numbers, or True and False; one of these kinds.

    A value that is none of them goes to the cell `other` if there is one, else to the cell of missing values if there
    is one, else to the first declared value. The rule is total, looks at one value at a time and never makes a cell:
    a sample shows declared values, the label `other` and None, and nothing else.

    Args:
        values: The possible values, public: texts, whole numbers, or True and False.
        other: Whether there is a cell for values that nobody declared.
        null: Whether there is a cell for missing values.

    Raises:
        InvalidParameter: If values are of several kinds, or one is there twice.

    Examples:
        >>> dp.synth.Category(["f", "m"], null=True).size
        3
    """

    values: tuple[Value, ...]
    other: bool = False
    null: bool = False
    most: int | None = None  # how many values may be found; None where they are listed

    __repr__ = record

    def __init__(self, values: Iterable[Value], *, other: bool = False, null: bool = False) -> None:
        listed = tuple(_plain(value) for value in _listed(values))
        if not 1 - bool(other) <= len(listed) <= _MOST:
            raise InvalidParameter("a category needs at least one value and at most a million")
        if len({type(value) for value in listed}) > 1:
            raise InvalidParameter("the values of a category must be all texts, all whole numbers or all truth values")
        if len(set(listed)) < len(listed):
            raise InvalidParameter("the values of a category must differ: one of them is declared twice")
        settle(self, values=listed, other=read_flag(other, name="other"), null=read_flag(null, name="null"), most=None)
        if self.other and OTHER in listed:
            raise InvalidParameter(f"a value is called {OTHER!r} already: leave it out, or say other=False")
        if self.other and self.kind is not str:
            raise InvalidParameter(
                "the cell of other values has a text as its label, so it needs a category of texts: "
                "write the values as texts, or say other=False"
            )

    @classmethod
    def unlisted(cls, *, most: int = 64, null: bool = False) -> Category:
        """Declare a column of texts whose values nobody lists: those that enough rows share are found, and paid for.

        At most `most` of them are kept, the most frequent; all others go to the cell `other`.
        """
        found = cls([], other=True, null=null)
        if positive_integer(most, name="most") > _MOST:
            raise InvalidParameter("most must be at most a million")
        settle(found, most=most)
        return found

    @property
    def declared(self) -> Declared:
        """The same column for SQL, statistics and learning: its values without the cells of all others."""
        if not self.is_settled:
            return text()
        return boolean() if self.kind is bool else categories(self.values)

    @property
    def is_settled(self) -> bool:
        """Whether the values are known."""
        return self.most is None

    @property
    def kind(self) -> type:
        """Which kind of values it has: texts, whole numbers or truth values."""
        return type(self.values[0]) if self.values else str

    @property
    def labels(self) -> tuple[Value | None, ...]:
        """What each cell is called in a sample, in the order of the codes."""
        return (*self.values, *((OTHER,) if self.other else ()), *((None,) if self.null else ()))

    @property
    def size(self) -> int:
        """The number of cells."""
        if not self.is_settled:
            raise InvalidParameter("the values of this column are not found yet: dp.synthesize finds them, and pays")
        return len(self.values) + self.other + self.null

    @property
    def null_code(self) -> int | None:
        """The cell of missing values, if there is one."""
        return self.size - 1 if self.null else None

    @property
    def fallback(self) -> int:
        """The cell of a value that nobody declared."""
        return len(self.values) if self.other or self.null else 0

    @property
    def missing_code(self) -> int:
        """The cell of a missing value: its own, or that of values that nobody declared."""
        return self.fallback if self.null_code is None else self.null_code

    def codes(self, column: Column) -> NDArray[np.int32]:
        """Return the cell of every value. This is private."""
        values = column.values
        kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
        if kind in "bi" and self.kind is not str:
            codes = self._of_integers(np.asarray(values, dtype=np.int64))
        else:
            codes = self._of_objects(column.objects())
        if column.missing is not None:
            codes[column.missing] = self.missing_code
        return codes

    def code(self, value: object) -> int:
        """Return the cell of one value."""
        if is_missing(value):
            return self.missing_code
        rule, places = _rule(self.values, self.kind)
        return places.get(rule(plain_value(value)), self.fallback)

    def decode(self, codes: NDArray[np.int32]) -> Column:
        """Return declared values for cells."""
        missing = None if self.null_code is None else np.asarray(codes == self.null_code)
        if self.kind is str:
            labels: NDArray[Any] = np.array(self.labels, dtype=object)
            return Column(labels[codes], missing)
        labels = np.array(self.values if missing is None else (*self.values, self.values[0]))
        return Column(labels[codes], missing)

    def _of_integers(self, values: NDArray[np.int64]) -> NDArray[np.int32]:
        declared = np.array([int(value) for value in self.values], dtype=np.int64)
        order = np.argsort(declared)
        place = np.minimum(np.searchsorted(declared[order], values), len(order) - 1)
        found = declared[order][place] == values
        return np.where(found, order[place], self.fallback).astype(np.int32)

    def _of_objects(self, values: Iterable[object]) -> NDArray[np.int32]:
        # A table has few distinct values: each is placed once. Equal values of unlike types have one key anyway.
        known: dict[tuple[type, object], int] = {}
        return np.array([self._placed(value, known) for value in values], dtype=np.int32)

    def _placed(self, value: object, known: dict[tuple[type, object], int]) -> int:
        if not isinstance(value, (str, int, float)):
            return self.code(value)
        found = known.get((type(value), value))
        if found is None:
            found = known[type(value), value] = self.code(value)
        return found


def _listed(values: Iterable[Value]) -> tuple[Value, ...]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidParameter('the values of a category must be a list, such as ["yes", "no"]')
    return tuple(values)


def _plain(value: object) -> Value:
    """Take a declared value in its plain form: a text composed, a number as a Python whole number."""
    value = plain_value(value)
    if isinstance(value, str) and len(value) <= LONGEST:
        return normalize("NFC", value)
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _LARGEST):
        return value
    raise InvalidParameter(
        "a value of a category must be a text of at most 1000 characters, a whole number below 2^53, True or False"
    )


@lru_cache(maxsize=256)
def _rule(values: tuple[Value, ...], kind: type) -> tuple[Callable[[object], object], dict[object, int]]:
    """Return how values are compared with declared ones, and where each of these is.

    A reader may take a column of texts for numbers, or not, because of one row: "01", "1.0" and 1 must be one value.
    Only where somebody declares two of these apart, texts are compared letter by letter. The kind is asked for because
    (0, 1) and (False, True) are equal, and would share a place in the cache.
    """
    rule = {str: _as_read, bool: _truth}.get(kind, _whole)
    places = {rule(value): place for place, value in enumerate(values)}
    if len(places) == len(values):
        return rule, places
    return _text, {value: place for place, value in enumerate(values)}


def _whole(value: object) -> int | None:
    number = exact_number(value)
    # Python refuses to write down whole numbers of many thousand digits, and nobody can declare them.
    return int(number) if number is not None and number.denominator == 1 and abs(number) <= _LARGEST else None


def _truth(value: object) -> bool | None:
    if isinstance(value, str) and value.strip().lower() in TRUTHS:
        return TRUTHS[value.strip().lower()]
    return {0: False, 1: True}.get(_whole(value))  # type: ignore[arg-type]


def _as_read(value: object) -> object:
    """Return the value that a text stands for, where readers of files would see one."""
    if isinstance(value, str) and value.strip().lower() in TRUTHS:
        return TRUTHS[value.strip().lower()]
    # Apart from truth values, which Python calls numbers.
    return value if isinstance(value, bool) else numeral(value) or moment(value) or _text(value)


def text_of(value: object) -> str | None:
    """Return the text under which a category that is found would list a value; None if it has none."""
    seen = _as_read(plain_value(value))
    return None if seen is None else str(seen)


def _text(value: object) -> str | None:
    """Return the text of a value; numbers, dates and truth values as they are written."""
    if isinstance(value, str):
        return normalize("NFC", value)
    return str(value) if isinstance(value, bool) else numeral(value) or moment(value)
