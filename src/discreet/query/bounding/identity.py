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

__all__ = ["Listed", "Numbers", "Spelled", "Texts", "Units", "Unread", "joined", "listed", "numbered", "spelled"]

Integers: TypeAlias = NDArray[np.int64]
_WORDS = 8  # of eight bytes; longer texts are listed, not spelled
Places: TypeAlias = NDArray[Any]  # numbers of rows, or a truth value for each


@final
@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Units that are integers, or anything of at most 64 bits: the value is its own code."""

    codes: Integers

    def where(self, rows: Places) -> Numbers:
        return Numbers(self.codes[rows])

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        return secret.names_of_integers(codes)

    def hashes(self, secret: Secret) -> Words:
        return secret.hashes(Letters([self.codes.view(np.uint64)], np.zeros(self.codes.size, np.int64)))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Spelled:
    """Units that are short texts: a code is what varies of a text."""

    codes: Integers
    spelling: Spelling

    def where(self, rows: Places) -> Spelled:
        return Spelled(self.codes[rows], self.spelling)

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
class Listed:
    """Units of any kind: a code is a place among distinct values, which are bytes or codes of another kind."""

    codes: Integers
    values: pa.Array | Numbers | Spelled

    def where(self, rows: Places) -> Listed:
        return Listed(self.codes[rows], self.values)

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        if isinstance(self.values, Numbers | Spelled):
            return self.values.names(self.values.codes[codes], secret)
        return secret.names_of_letters(Letters.of(self.values.take(codes)))

    def hashes(self, secret: Secret) -> Words:
        if isinstance(self.values, Numbers | Spelled):
            return self.values.hashes(secret)[self.codes]
        return secret.hashes(Letters.of(self.values))[self.codes]

    def texts(self) -> pa.Array:
        assert not isinstance(self.values, Numbers | Spelled)
        return self.values.take(self.codes)

    @property
    def size(self) -> int:
        """How many units there are."""
        return len(self.values.codes if isinstance(self.values, Numbers | Spelled) else self.values)

    def part(self, first: int, last: int, rows: NDArray[np.bool_]) -> Listed:
        """Keep the units with codes from `first` to below `last`, in these rows, and count their codes from 0 on."""
        values = self.values
        kept = values.where(np.arange(first, last)) if isinstance(values, Numbers | Spelled) else values[first:last]
        return Listed(self.codes[rows] - first, kept)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Long texts of one chunk, which get their codes once all chunks are there."""

    array: pa.Array

    def where(self, rows: Places) -> Texts:
        import pyarrow as pa

        chosen = pa.array(rows)
        return Texts(self.array.filter(chosen) if rows.dtype == np.bool_ else self.array.take(chosen))

    def hashes(self, secret: Secret) -> Words:
        return secret.hashes(Letters.of(self.array))

    def texts(self) -> pa.Array:
        return self.array


Units: TypeAlias = Numbers | Spelled | Listed
Unread: TypeAlias = Units | Texts


def spelled(array: pa.Array) -> Spelled | Texts:
    """Spell texts, given as large binary values without NULLs, if that is possible."""
    letters = Letters.of(array)
    if not len(array) or len(letters.words) > _WORDS:
        return Texts(array)
    spelling = Spelling.of(letters)
    return Spelled(spelling.encode(letters), spelling) if spelling.fits else Texts(array)


def joined(parts: list[Unread]) -> Units:
    """Put the units of all chunks one after the other, under codes that mean the same in all of them."""
    numbers = [part.codes for part in parts if isinstance(part, Numbers)]
    if numbers:
        if len(numbers) != len(parts):
            raise Refused("the units of one scan must all be of one type")
        return Numbers(np.concatenate(numbers))
    return _respelled(parts) or _relisted(parts) or _listed(parts)


def _respelled(parts: list[Unread]) -> Spelled | None:
    given = [part for part in parts if isinstance(part, Spelled)]
    if len(given) != len(parts):
        return None
    spelling = given[0].spelling
    for part in given[1:]:
        spelling |= part.spelling
    if not spelling.fits:
        return None
    return Spelled(np.concatenate([part.respelled(spelling) for part in given]), spelling)


def _relisted(parts: list[Unread]) -> Listed | None:
    """Join chunks that came with one and the same list."""
    given = [part for part in parts if isinstance(part, Listed) and part.values is parts[0].values]  # type: ignore[union-attr]
    if len(given) != len(parts):
        return None
    return Listed(np.concatenate([part.codes for part in given]), given[0].values)


def _listed(parts: list[Unread]) -> Listed:
    import pyarrow as pa

    arrays = [part.texts() for part in parts if not isinstance(part, Numbers)]
    return listed(pa.concat_arrays(arrays))


def listed(array: pa.Array) -> Listed:
    """Number distinct values in the order in which they appear."""
    encoded = array.dictionary_encode()
    return Listed(np.asarray(encoded.indices).astype(np.int64), encoded.dictionary)


def numbered(units: Units) -> Listed:
    """Number distinct units from 0 on."""
    import pyarrow as pa

    if isinstance(units, Listed):
        return units
    encoded = pa.array(units.codes).dictionary_encode()
    values = np.asarray(encoded.dictionary)
    inner = Numbers(values) if isinstance(units, Numbers) else Spelled(values, units.spelling)
    return Listed(np.asarray(encoded.indices).astype(np.int64), inner)
