"""Codes of key values and of groups, in an order that depends on the values alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.query.bounding.contribution_bounds import MOST_GROUPS

__all__ = ["GroupKeys", "KeyColumn"]

# --- codes: Codes of the values of one key column, in an order that depends on the values alone. ---
#
# Values are made canonical first: texts in normal form C, -0.0 as 0.0, what is no number as NULL. Two values that print
# alike are then one key, whatever the engine took them for.


if TYPE_CHECKING:
    import pyarrow as pa

    Column: TypeAlias = pa.Array | pa.ChunkedArray


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


# --- groups: Codes of whole groups: combinations of key values, either all of them or those that occur. ---


if TYPE_CHECKING:
    import pyarrow as pa

    GroupColumn: TypeAlias = pa.Array | pa.ChunkedArray


_TABLE = 1 << 22  # Combinations that are looked up in a table; more are searched for.


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupKeys:
    """Groups numbered in the order of their keys, the last key fastest.

    `steps` has, for each key after the first, those pairs (group of the keys before, code of this key) that are
    groups, in order, each as one number; None where all of them are.
    """

    columns: tuple[KeyColumn, ...]
    steps: tuple[Integers | None, ...]

    @classmethod
    def all_of(cls, columns: Sequence[KeyColumn]) -> GroupKeys:
        """Take all combinations of listed values, empty ones too."""
        return cls(tuple(columns), (None,) * max(0, len(columns) - 1))

    @classmethod
    def found_in(cls, columns: Sequence[GroupColumn]) -> GroupKeys:
        """Take the combinations that occur in some rows; duplicates do not matter, nor does the order."""
        keys = tuple(KeyColumn.of(column) for column in columns)
        codes = np.zeros(len(columns[0]) if columns else 0, np.int64)
        steps: list[Integers | None] = []
        for number, (key, column) in enumerate(zip(keys, columns, strict=True)):
            if number == 0:
                codes = key.codes(column)
                continue
            found, codes = np.unique(codes * key.size + key.codes(column), return_inverse=True)
            steps.append(found)
        return cls(keys, tuple(steps))

    @property
    def size(self) -> int:
        """How many groups there are; one if there is no key."""
        size = self.columns[0].size if self.columns else 1
        for key, found in zip(self.columns[1:], self.steps, strict=True):
            size = size * key.size if found is None else len(found)
        if size > MOST_GROUPS:
            raise InvalidParameter("there must be at most 2^31 groups")
        return size

    def codes(self, columns: Sequence[GroupColumn]) -> Integers | None:
        """Return the group of each row, -1 if it is in none; None if there is one group for all."""
        if not self.columns:
            return None
        codes = self.columns[0].codes(columns[0])
        for key, column, found in zip(self.columns[1:], columns[1:], self.steps, strict=True):
            here = key.codes(column)
            nowhere = (codes < 0) | (here < 0)
            codes = codes * key.size + here
            codes[nowhere] = -1
            codes = codes if found is None else _places(codes, found)
        return codes

    def values(self, groups: Iterable[int]) -> list[tuple[Hashable, ...]]:
        """Return the keys of some groups; ask for released groups only."""
        codes = np.fromiter(groups, np.int64)
        if not self.columns:
            return [()] * codes.size
        return list(zip(*(column.to_pylist() for column in self.columns_of(codes)), strict=True))

    def columns_of(self, groups: Integers) -> tuple[pa.Array, ...]:
        """Return the keys of some groups, one column for each key."""
        codes, listed = groups, []
        for key, found in zip(self.columns[:0:-1], self.steps[::-1], strict=True):
            codes, here = np.divmod(codes if found is None else found[codes], key.size)
            listed.append(key.values.take(here))
        listed += [key.values.take(codes) for key in self.columns[:1]]
        return tuple(reversed(listed))


def _places(codes: Integers, found: Integers) -> Integers:
    """Return the place of each code among sorted ones, -1 if it is not there."""
    if not found.size:
        return np.full(codes.size, -1, np.int64)
    if found[-1] < _TABLE:
        table = np.full(int(found[-1]) + 2, -1, np.int64)
        table[found] = np.arange(found.size)
        return np.asarray(table[np.minimum(codes, found[-1] + 1)], np.int64)
    places = np.minimum(np.searchsorted(found, codes), found.size - 1)
    return np.where(found[places] == codes, places, -1)
