"""Who is who: exact codes of units, and names by which secret choices are made for them.

Two rows belong to the same unit if and only if they have the same code. A code is the integer itself, what varies of
a text, or a place in a list of distinct values, never a hash: two units under one code would share one allowance, and
removing one of them would let the other fill its place, which doubles the change. A name decides only what is kept of
a unit. It depends on the unit's own value and on a secret key, not on its code, so that it is the same in any order
and in any company.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Refused
from discreet.query.bounding.secret import Blocks, Secret, Words
from discreet.query.bounding.spelling import Letters, Spelling

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ListedUnits",
    "NumberUnits",
    "SpelledUnits",
    "TextUnits",
    "Units",
    "Unread",
    "joined",
    "listed",
    "numbered",
    "spelled",
]

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
