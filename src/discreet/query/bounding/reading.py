"""Reads columns of units, of whatever type they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Refused
from discreet.query.bounding.identity import NumberUnits, TextUnits, Unread, listed, spelled

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Reader"]

Integers: TypeAlias = NDArray[np.int64]
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
