"""Codes of the values of one key column, in an order that depends on the values alone.

Values are made canonical first: texts in normal form C, -0.0 as 0.0, what is no number as NULL. Two values that print
alike are then one key, whatever the engine took them for.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

    Column: TypeAlias = pa.Array | pa.ChunkedArray

__all__ = ["KeyColumn"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class KeyColumn:
    """Distinct canonical values; the code of a value is its place among them."""

    values: pa.Array  # at most one of them NULL

    @classmethod
    def of(cls, column: Column) -> KeyColumn:
        """List the values that occur, in order, NULL last."""
        import pyarrow.compute as pc

        distinct = _canonical(pc.unique(column)).unique()
        return cls(distinct.take(pc.sort_indices(distinct)))

    @classmethod
    def listed(cls, values: Sequence[Hashable], kind: pa.DataType | None = None) -> KeyColumn:
        """List public values in the order in which they are given."""
        import pyarrow as pa

        canonical = _canonical(pa.array(values, kind))
        if len(canonical.unique()) != len(values):
            raise InvalidParameter("the values of a key must be distinct")
        return cls(canonical)

    @property
    def size(self) -> int:
        return len(self.values)

    def codes(self, column: Column) -> Integers:
        """Return the code of each value, -1 for one that is not listed."""
        places, distinct = _encoded(column)
        canonical = _canonical(distinct)
        if canonical.type != self.values.type:
            raise InvalidParameter(f"a key of type {canonical.type} cannot be found among {self.values.type}")
        return self._places(canonical)[places]

    def _places(self, canonical: pa.Array) -> Integers:
        import pyarrow.compute as pc

        found = pc.index_in(canonical, value_set=self.values)
        return np.asarray(found.fill_null(-1)).astype(np.int64)


def _encoded(column: Column) -> tuple[Integers, pa.Array]:
    """Split a column into places and a short list of raw values; NULL is the last of them if there is any."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    places, values = array.indices, array.dictionary
    if places.null_count:
        places = places.fill_null(len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return np.asarray(places).astype(np.int64), values


def _canonical(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if types.is_string(values.type) or types.is_large_string(values.type) or types.is_string_view(values.type):
        return pc.utf8_normalize(values.cast(pa.large_string()), form="NFC")
    if types.is_floating(values.type):
        doubles = pc.add(values.cast(pa.float64()), 0.0)
        return pc.if_else(pc.is_nan(doubles), pa.scalar(None, pa.float64()), doubles)
    if types.is_integer(values.type):
        return values.cast(pa.uint64() if types.is_uint64(values.type) else pa.int64())
    return values
