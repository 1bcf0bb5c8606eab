"""Who is who: columns of units of any type, read as exact codes, and names by which secret choices are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Refused
from discreet.query.bounding.secret import Blocks, Secret, Words
from discreet.query.bounding.string_packing import Letters, Spelling

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ListedUnits",
    "NumberUnits",
    "Reader",
    "SpelledUnits",
    "TextUnits",
    "Units",
    "Unread",
    "joined",
    "listed",
    "numbered",
    "spelled",
]

# --- identity: Who is who: exact codes of units, and names by which secret choices are made for them. ---
#
# Two rows belong to the same unit if and only if they have the same code. A code is the integer itself, what varies of
# a text, or a place in a list of distinct values, never a hash: two units under one code would share one allowance, and
# removing one of them would let the other fill its place, which doubles the change. A name decides only what is kept of
# a unit. It depends on the unit's own value and on a secret key, not on its code, so that it is the same in any order
# and in any company.


Integers: TypeAlias = NDArray[np.int64]
_WORDS = 8  # of eight bytes; longer texts are listed, not spelled
Places: TypeAlias = NDArray[Any]  # numbers of rows, or a truth value for each


@final
@dataclass(frozen=True, slots=True, eq=False)
class NumberUnits:
    """Units that are integers, or anything of at most 64 bits: the value is its own code."""

    codes: Integers

    def where(self, rows: Places) -> NumberUnits:
        return NumberUnits(self.codes[rows])

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        return secret.names_of_integers(codes)

    def hashes(self, secret: Secret) -> Words:
        return secret.hashes(Letters([self.codes.view(np.uint64)], np.zeros(self.codes.size, np.int64)))


@final
@dataclass(frozen=True, slots=True, eq=False)
class SpelledUnits:
    """Units that are short texts: a code is what varies of a text."""

    codes: Integers
    spelling: Spelling

    def where(self, rows: Places) -> SpelledUnits:
        return SpelledUnits(self.codes[rows], self.spelling)

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        return secret.names_of_letters(self.spelling.decode(codes))

    def hashes(self, secret: Secret) -> Words:
        return secret.hashes(self.spelling.decode(self.codes))

    def texts(self) -> pa.Array:
        return self.spelling.decode(self.codes).bytes()

    def respelled(self, spelling: Spelling) -> Integers:
        """Return codes by a spelling that covers this one."""
        return self.codes if spelling == self.spelling else spelling.encode(self.spelling.decode(self.codes))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ListedUnits:
    """Units of any kind: a code is a place among distinct values, which are bytes or codes of another kind."""

    codes: Integers
    values: pa.Array | NumberUnits | SpelledUnits

    def where(self, rows: Places) -> ListedUnits:
        return ListedUnits(self.codes[rows], self.values)

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        if isinstance(self.values, NumberUnits | SpelledUnits):
            return self.values.names(self.values.codes[codes], secret)
        return secret.names_of_letters(Letters.of(self.values.take(codes)))

    def hashes(self, secret: Secret) -> Words:
        if isinstance(self.values, NumberUnits | SpelledUnits):
            return self.values.hashes(secret)[self.codes]
        return secret.hashes(Letters.of(self.values))[self.codes]

    def texts(self) -> pa.Array:
        assert not isinstance(self.values, NumberUnits | SpelledUnits)
        return self.values.take(self.codes)

    @property
    def size(self) -> int:
        """How many units there are."""
        return len(self.values.codes if isinstance(self.values, NumberUnits | SpelledUnits) else self.values)

    def part(self, first: int, last: int, rows: NDArray[np.bool_]) -> ListedUnits:
        """Keep the units with codes from `first` to below `last`, in these rows, and count their codes from 0 on."""
        values = self.values
        kept = (
            values.where(np.arange(first, last))
            if isinstance(values, NumberUnits | SpelledUnits)
            else values[first:last]
        )
        return ListedUnits(self.codes[rows] - first, kept)


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextUnits:
    """Long texts of one chunk, which get their codes once all chunks are there."""

    array: pa.Array

    def where(self, rows: Places) -> TextUnits:
        import pyarrow as pa

        chosen = pa.array(rows)
        return TextUnits(self.array.filter(chosen) if rows.dtype == np.bool_ else self.array.take(chosen))

    def hashes(self, secret: Secret) -> Words:
        return secret.hashes(Letters.of(self.array))

    def texts(self) -> pa.Array:
        return self.array


Units: TypeAlias = NumberUnits | SpelledUnits | ListedUnits
Unread: TypeAlias = Units | TextUnits


def spelled(array: pa.Array) -> SpelledUnits | TextUnits:
    """Spell texts, given as large binary values without NULLs, if that is possible."""
    letters = Letters.of(array)
    if not len(array) or len(letters.words) > _WORDS:
        return TextUnits(array)
    spelling = Spelling.of(letters)
    return SpelledUnits(spelling.encode(letters), spelling) if spelling.fits else TextUnits(array)


def joined(parts: list[Unread]) -> Units:
    """Put the units of all chunks one after the other, under codes that mean the same in all of them."""
    numbers = [part.codes for part in parts if isinstance(part, NumberUnits)]
    if numbers:
        if len(numbers) != len(parts):
            raise Refused("the units of one scan must all be of one type")
        return NumberUnits(np.concatenate(numbers))
    return _respelled(parts) or _relisted(parts) or _listed(parts)


def _respelled(parts: list[Unread]) -> SpelledUnits | None:
    given = [part for part in parts if isinstance(part, SpelledUnits)]
    if len(given) != len(parts):
        return None
    spelling = given[0].spelling
    for part in given[1:]:
        spelling |= part.spelling
    if not spelling.fits:
        return None
    return SpelledUnits(np.concatenate([part.respelled(spelling) for part in given]), spelling)


def _relisted(parts: list[Unread]) -> ListedUnits | None:
    """Join chunks that came with one and the same list."""
    given = [part for part in parts if isinstance(part, ListedUnits) and part.values is parts[0].values]  # type: ignore[union-attr]
    if len(given) != len(parts):
        return None
    return ListedUnits(np.concatenate([part.codes for part in given]), given[0].values)


def _listed(parts: list[Unread]) -> ListedUnits:
    import pyarrow as pa

    arrays = [part.texts() for part in parts if not isinstance(part, NumberUnits)]
    return listed(pa.concat_arrays(arrays))


def listed(array: pa.Array) -> ListedUnits:
    """Number distinct values in the order in which they appear."""
    encoded = array.dictionary_encode()
    return ListedUnits(np.asarray(encoded.indices).astype(np.int64), encoded.dictionary)


def numbered(units: Units) -> ListedUnits:
    """Number distinct units from 0 on."""
    import pyarrow as pa

    if isinstance(units, ListedUnits):
        return units
    encoded = pa.array(units.codes).dictionary_encode()
    values = np.asarray(encoded.dictionary)
    inner = NumberUnits(values) if isinstance(units, NumberUnits) else SpelledUnits(values, units.spelling)
    return ListedUnits(np.asarray(encoded.indices).astype(np.int64), inner)


# --- reading: Reads columns of units, of whatever type they are. ---


Known: TypeAlias = NDArray[np.bool_] | None  # where there is a unit at all; None if everywhere


@final
class Reader:
    """Reads units chunk by chunk, and a dictionary that chunks have in common only once."""

    __slots__ = ("_dictionary", "_units")

    def __init__(self) -> None:
        self._dictionary: pa.Array | None = None
        self._units: tuple[Unread, Known] | None = None

    def read(self, column: pa.Array | pa.ChunkedArray) -> tuple[Unread, Known]:
        """Read units, and where there is one."""
        import pyarrow as pa

        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_dictionary(array.type):
            return self._read_dictionary(array)
        known = None if array.null_count == 0 else np.asarray(array.is_valid())
        if pa.types.is_floating(array.type):
            return _floats(array, known)
        kind = _integer_type(array.type)
        if kind is not None:
            return NumberUnits(_integers(array, kind)), known
        return spelled(_bytes(array)), known

    def _read_dictionary(self, array: pa.DictionaryArray) -> tuple[Unread, Known]:
        """Read values that come as places in a list; the list itself may name a value twice, or NULL."""
        units, listed_ = self._read_list(array.dictionary)
        indices = array.indices
        known = None if indices.null_count == 0 else np.asarray(indices.is_valid())
        if not len(array.dictionary):
            return NumberUnits(np.zeros(len(array), np.int64)), np.zeros(len(array), np.bool_)
        places = _integers(indices, indices.type)
        if listed_ is not None:
            known = listed_[places] if known is None else known & listed_[places]
        return units.where(places), known

    def _read_list(self, dictionary: pa.Array) -> tuple[Unread, Known]:
        same = self._dictionary is not None and _shared(self._dictionary, dictionary)
        if self._units is None or not same:
            units, known = self.read(dictionary)
            self._dictionary = dictionary
            self._units = (listed(units.array) if isinstance(units, TextUnits) else units), known
        return self._units


def _shared(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are the same piece of memory."""
    places = [(a.type, a.offset, len(a), [b and b.address for b in a.buffers()]) for a in (one, other)]
    return places[0] == places[1]


def _floats(array: pa.Array, known: Known) -> tuple[NumberUnits, Known]:
    """Tell floats apart by their bits, after -0.0 became 0.0; one that is no number names nobody."""
    import pyarrow as pa

    values = np.asarray(array.cast(pa.float64()).fill_null(0.0)) + 0.0
    number = ~np.isnan(values)
    if not number.all():
        known = number if known is None else known & number
    return NumberUnits(values.view(np.int64)), known


def _integer_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the integers that a type of at most 64 bits is stored as, None for a wider one."""
    import pyarrow as pa

    types = pa.types
    if types.is_boolean(kind):
        return pa.uint8()
    if types.is_integer(kind):
        return kind
    if types.is_temporal(kind) and not types.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return None


def _integers(array: pa.Array, kind: pa.DataType) -> Integers:
    """Return 64-bit integers; those of 64 bits without a sign keep their bits."""
    import pyarrow as pa

    stored = array.cast(kind) if pa.types.is_boolean(array.type) else array.view(kind)
    values = np.asarray(stored.fill_null(0) if stored.null_count else stored)
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def _bytes(array: pa.Array) -> pa.Array:
    """Return bytes; NULL becomes an empty text, since its rows are dropped."""
    import pyarrow as pa

    types = pa.types
    if types.is_decimal(array.type):
        array = array.cast(pa.string())
    kinds = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary
    if not any(is_kind(array.type) for is_kind in (*kinds, types.is_string_view, types.is_binary_view)):
        raise Refused("a unit must be identified by a number, a text, a time or bytes; name a column of such a type")
    texts = array.cast(pa.large_binary())
    return texts.fill_null(b"") if texts.null_count else texts
