"""Tallies of parts of the units, which add up to the tally of all: exactly, and in any order.

Theorem     Where no unit is in two parts and all parts are counted under one secret, the parts merge into the very
            numbers that one tally of all rows has.
Proof       Given the secret, what is kept of a unit is a function of its own rows (see `selection`): the number of a
            group or of a listed value decides nothing but their order, and a part numbers its own in the order of the
            whole. So the kept rows of the whole are those of the parts together. Counts and sums of these add up, as
            integers of any size; kept values are put together and sorted again, and distinct ones are counted there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.aggregation import Exact, MeasureTally, Tally, Values
from discreet.query.bounding.byte_blocks import Block, ByteBlocks, read_array, read_exact, read_integers, unpacked
from discreet.query.bounding.group_codes import GroupKeys, KeyColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PartialTally", "Wanted", "merged"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the whole tells of the kept values of a measure; a part has the values for either."""

    distinct: bool
    values: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialTally:
    """What some units gave, in the groups that they are in; all other groups have nothing of them. Private.

    Groups are told by `places`, their public numbers, or by `keys`, one column for each key. `lists` has the values
    that the indices of a measure number, where nobody listed them.
    """

    tally: Tally
    places: Integers | None
    keys: tuple[pa.Array, ...] = ()
    lists: tuple[pa.Array | None, ...] = ()

    @classmethod
    def of(
        cls,
        tally: Tally,
        wanted: Sequence[Wanted],
        found: GroupKeys | None = None,
        lists: Sequence[pa.Array | None] = (),
    ) -> PartialTally:
        """Take a tally with all values that are wanted or counted apart; leave out public groups that nobody is in.

        A group that was found is one of the whole, even if limits cut everybody off it.
        """
        present = np.flatnonzero(tally.rows) if found is None else np.arange(tally.rows.size)
        some = Tally(
            units=tally.units[present],
            rows=tally.rows[present],
            measures=tuple(_some(one, present, apart) for one, apart in zip(tally.measures, wanted, strict=True)),
        )
        lists = tuple(lists) or (None,) * len(tally.measures)
        if found is None:
            return cls(tally=some, places=present, lists=lists)
        return cls(tally=some, places=None, keys=found.columns_of(present), lists=lists)

    @property
    def size(self) -> int:
        """How many groups it has."""
        return int(self.tally.rows.size)

    def to_bytes(self) -> bytes:
        """Write it as whole numbers and Arrow columns."""
        blocks = ByteBlocks()
        said = {
            "places": None if self.places is None else blocks.integers(self.places),
            "keys": [blocks.array(key) for key in self.keys],
            "lists": [None if one is None else blocks.array(one) for one in self.lists],
            "units": blocks.integers(self.tally.units),
            "rows": blocks.integers(self.tally.rows),
            "measures": [_write(measure, blocks) for measure in self.tally.measures],
        }
        return blocks.packed(said)

    @classmethod
    def from_bytes(cls, written: Block) -> PartialTally:
        """Read what `to_bytes` wrote."""
        said, blocks = unpacked(written)
        return cls(
            tally=Tally(
                units=read_integers(blocks[said["units"]]),
                rows=read_integers(blocks[said["rows"]]),
                measures=tuple(_read(measure, blocks) for measure in said["measures"]),
            ),
            places=None if said["places"] is None else read_integers(blocks[said["places"]]),
            keys=tuple(read_array(blocks[place]) for place in said["keys"]),
            lists=tuple(None if place is None else read_array(blocks[place]) for place in said["lists"]),
        )


def merged(parts: Sequence[PartialTally], groups: int, wanted: Sequence[Wanted]) -> tuple[Tally, GroupKeys | None]:
    """Add parts up; `groups` is how many public groups there are, 0 where the parts tell them."""
    found, codes = _numbered(parts, groups)
    size = groups or (0 if found is None else found.size)
    units, rows = (_added([getattr(part.tally, name) for part in parts], codes, size) for name in ("units", "rows"))
    measures = tuple(_measure(parts, codes, size, place, one) for place, one in enumerate(wanted))
    return Tally(units=units, rows=rows, measures=measures), found


def _numbered(parts: Sequence[PartialTally], groups: int) -> tuple[GroupKeys | None, list[Integers]]:
    """Number the groups of the whole, and say which the groups of each part are."""
    import pyarrow as pa

    if groups:
        return None, [_public(part, groups) for part in parts]
    some = [part for part in parts if part.size]
    if not some:
        return None, [np.zeros(0, np.int64) for _ in parts]
    columns = [pa.concat_arrays([part.keys[place] for part in some]) for place in range(len(some[0].keys))]
    found = GroupKeys.found_in(columns)
    codes = found.codes(columns)
    assert codes is not None
    return found, np.split(codes, np.cumsum([part.size for part in parts])[:-1])


def _public(part: PartialTally, groups: int) -> Integers:
    assert part.places is not None
    if part.size and not 0 <= int(part.places.min()) <= int(part.places.max()) < groups:
        raise ValueError("a part has a group that there is not")
    return part.places


def _measure(
    parts: Sequence[PartialTally], codes: Sequence[Integers], size: int, place: int, wanted: Wanted
) -> MeasureTally:
    mine = [part.tally.measures[place] for part in parts]
    values = _values(parts, codes, size, place) if wanted.distinct or wanted.values else None
    return MeasureTally(
        counts=_added([one.counts for one in mine], codes, size),
        total=_exact([one.total for one in mine], codes, size),
        squares=_exact([one.squares for one in mine], codes, size),
        distinct=values.distinct if values is not None and wanted.distinct else None,
        values=values if wanted.values else None,
    )


def _added(numbers: Sequence[Integers], codes: Sequence[Integers], size: int) -> Integers:
    whole = np.zeros(size, np.int64)
    for number, places in zip(numbers, codes, strict=True):
        whole[places] += number  # A part has every group once.
    return whole


def _exact(numbers: Sequence[Exact | None], codes: Sequence[Integers], size: int) -> Exact | None:
    if not numbers or any(number is None for number in numbers):
        return None
    whole = np.zeros(size, object)
    for number, places in zip(numbers, codes, strict=True):
        whole[places] += number
    return whole


def _values(parts: Sequence[PartialTally], codes: Sequence[Integers], size: int, place: int) -> Values:
    """Put kept values together, in groups and indices of the whole, and sort them."""
    none = np.zeros(0, np.int64)
    groups, indices = [none], [none]
    for part, places, own in zip(parts, codes, _listed(parts, place), strict=True):
        values = part.tally.measures[place].values
        assert values is not None
        groups.append(np.repeat(places, np.diff(values.starts)))
        indices.append(values.indices if own is None else own[values.indices])
    where, what = np.concatenate(groups), np.concatenate(indices)
    order = np.lexsort((what, where))
    starts = np.searchsorted(where[order], np.arange(size + 1)).astype(np.int64)
    return Values(starts=starts, indices=what[order])


def _listed(parts: Sequence[PartialTally], place: int) -> list[Integers | None]:
    """Say which numbers the listed values of each part have in the list of all; None where their numbers are public."""
    import pyarrow as pa

    lists = [part.lists[place] for part in parts if part.lists[place] is not None]
    if not lists:
        return [None] * len(parts)
    whole = KeyColumn.of(pa.concat_arrays(lists))
    return [None if part.lists[place] is None else whole.codes(part.lists[place]) for part in parts]


def _some(measure: MeasureTally, groups: Integers, wanted: Wanted) -> MeasureTally:
    """Take some groups of a measure; the others have no value. Where values are only counted apart, one is enough."""
    values = measure.values
    if values is not None:
        starts = np.concatenate((values.starts[groups], [values.indices.size])).astype(np.int64)
        values = Values(starts=starts, indices=values.indices)
        values = values if wanted.values else values.apart()
    return MeasureTally(
        counts=measure.counts[groups],
        total=None if measure.total is None else measure.total[groups],
        squares=None if measure.squares is None else measure.squares[groups],
        distinct=None,  # It does not add up: the values do.
        values=values,
    )


def _write(measure: MeasureTally, blocks: ByteBlocks) -> dict[str, Any]:
    values = measure.values
    return {
        "counts": blocks.integers(measure.counts),
        "total": None if measure.total is None else blocks.exact(measure.total),
        "squares": None if measure.squares is None else blocks.exact(measure.squares),
        "values": None if values is None else [blocks.integers(values.starts), blocks.integers(values.indices)],
    }


def _read(said: dict[str, Any], blocks: Sequence[Block]) -> MeasureTally:
    values = said["values"]
    return MeasureTally(
        counts=read_integers(blocks[said["counts"]]),
        total=read_exact(said["total"], blocks),
        squares=read_exact(said["squares"], blocks),
        distinct=None,
        values=values and Values(starts=read_integers(blocks[values[0]]), indices=read_integers(blocks[values[1]])),
    )
