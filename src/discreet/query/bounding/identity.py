"""Who is who: exact codes of units, and names by which secret choices are made for them.

Two rows belong to the same unit if and only if they have the same code. A code is the integer itself or a place in
a list of distinct values, never a hash: two units under one code would share one allowance, and removing one of them
would let the other fill its place, which doubles the change. A name decides only what is kept of a unit. It depends
on the unit's own value and on a secret key, not on its code, so that it is the same in any order and in any company.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Refused
from discreet.query.bounding.secret import Blocks, Secret

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Listed", "Numbers", "Units", "encode", "joined", "read_units"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Units that are 64-bit integers, or anything of at most 64 bits: the value is its own code."""

    codes: Integers

    def where(self, rows: NDArray[Any]) -> Numbers:
        return Numbers(self.codes[rows])

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        return secret.names_of_integers(codes)

    def row_names(self, secret: Secret) -> Blocks:
        return self.names(self.codes, secret)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Units of any kind: a code is a place among the distinct values, which are bytes or integers."""

    codes: Integers
    values: pa.Array | Integers

    def where(self, rows: NDArray[Any]) -> Listed:
        return Listed(self.codes[rows], self.values)

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        if isinstance(self.values, np.ndarray):
            return secret.names_of_integers(self.values[codes])
        return secret.names_of_bytes(self.values.take(codes))

    def row_names(self, secret: Secret) -> Blocks:
        return self.names(np.arange(len(self.values)), secret)[self.codes]

    def part(self, first: int, last: int, rows: NDArray[np.bool_]) -> Listed:
        """Keep the units with codes from `first` to below `last`, in these rows, and count their codes from 0 on."""
        return Listed(self.codes[rows] - first, self.values[first:last])


Units: TypeAlias = Numbers | Listed


def read_units(array: pa.Array | pa.ChunkedArray) -> tuple[Units, NDArray[np.bool_] | None]:
    """Read a column of units, and where there is one at all: None if everywhere."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _read_dictionary(array)
    known = None if array.null_count == 0 else np.asarray(array.is_valid())
    if pa.types.is_floating(array.type):
        return _read_floats(pc.cast(array, pa.float64()), known)
    kind = _integer_type(array.type)
    if kind is not None:
        return Numbers(_plain_integers(array, kind)), known
    return _encoded(_as_bytes(array)), known


def joined(parts: list[Units]) -> Units:
    """Put units of several chunks one after the other."""
    import pyarrow as pa

    numbers = [part for part in parts if isinstance(part, Numbers)]
    if len(numbers) == len(parts):
        return Numbers(np.concatenate([part.codes for part in numbers]))
    listed = [part for part in parts if isinstance(part, Listed)]
    if len(listed) != len(parts):
        raise Refused("the units of one scan must all be of one type")
    values = pa.chunked_array([part.values for part in listed])
    unified = _encoded(values.combine_chunks())
    starts = np.cumsum([0, *(len(part.values) for part in listed)])
    codes = [unified.codes[start + part.codes] for start, part in zip(starts, listed, strict=False)]
    return Listed(np.concatenate(codes), unified.values)


def encode(units: Units) -> Listed:
    """Number distinct units from 0 on."""
    import pyarrow as pa

    if isinstance(units, Listed):
        return units
    encoded = pa.array(units.codes).dictionary_encode()
    return Listed(np.asarray(encoded.indices).astype(np.int64), np.asarray(encoded.dictionary))


def _read_dictionary(array: pa.DictionaryArray) -> tuple[Units, NDArray[np.bool_] | None]:
    """Read values that come as places in a list; the list itself may name a value twice, or NULL."""
    units, listed = read_units(array.dictionary)
    indices = array.indices
    known = None if indices.null_count == 0 else np.asarray(indices.is_valid())
    places = _plain_integers(indices, indices.type) if known is None else np.asarray(indices.fill_null(0))
    if listed is not None:
        known = listed[places] if known is None else known & listed[places]
    if not len(array.dictionary):
        return Numbers(np.zeros(len(array), np.int64)), np.zeros(len(array), np.bool_)
    return units.where(places.astype(np.int64)), known


def _read_floats(array: pa.Array, known: NDArray[np.bool_] | None) -> tuple[Numbers, NDArray[np.bool_] | None]:
    """Tell floats apart by their bits, after -0.0 became 0.0; one that is no number names nobody."""
    values = np.asarray(array.fill_null(0.0)) + 0.0
    number = ~np.isnan(values)
    if not number.all():
        known = number if known is None else known & number
    return Numbers(values.view(np.int64)), known


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


def _plain_integers(array: pa.Array, kind: pa.DataType) -> Integers:
    """Return 64-bit integers; those of 64 bits without a sign keep their bits."""
    import pyarrow as pa

    stored = array.cast(kind) if pa.types.is_boolean(array.type) else array.view(kind)
    values = np.asarray(stored.fill_null(0) if stored.null_count else stored)
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def _as_bytes(array: pa.Array) -> pa.Array:
    import pyarrow as pa

    types = pa.types
    if types.is_decimal(array.type):
        array = array.cast(pa.string())
    kinds = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary
    if not any(is_kind(array.type) for is_kind in (*kinds, types.is_string_view, types.is_binary_view)):
        raise Refused("a unit must be identified by a number, a text, a time or bytes; name a column of such a type")
    return array.cast(pa.large_binary())


def _encoded(array: pa.Array) -> Listed:
    """Number distinct values in the order in which they appear; NULL gets any number, since its rows are dropped."""
    encoded = array.dictionary_encode()
    indices = encoded.indices.fill_null(0) if encoded.indices.null_count else encoded.indices
    return Listed(np.asarray(indices).astype(np.int64), encoded.dictionary)
