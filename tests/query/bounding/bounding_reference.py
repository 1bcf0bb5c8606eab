"""Contribution bounding one unit at a time, in plain Python: the same secret, the same words, no arrays.

It reads the two keys from the same source as the library, so both keep the very same rows.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from recorded import replayed

from discreet.noise.source import read
from discreet.query.bounding.aggregation import Tally, tally
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk

# A row: unit, group, index of each measure (None for NULL).
Row = tuple[Any, ...]
FEW = 16


@dataclass(frozen=True)
class Plain:
    """A tally as plain numbers, to be compared."""

    units: list[int]
    rows: list[int]
    counts: list[list[int]]
    totals: list[list[int]]
    squares: list[list[int]]
    distinct: list[list[int]]
    values: list[list[list[int]]]


def aes(key: bytes, block: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)


class PlainSecret:
    def __init__(self) -> None:
        self.naming, self.placing = read(32), read(32)

    def name(self, unit: Hashable) -> bytes:
        if isinstance(unit, float):
            return struct.pack("<dQ", unit + 0.0, 0)
        if isinstance(unit, int):
            return struct.pack("<QQ", unit % 2**64, 0)
        text = unit.encode() if isinstance(unit, str) else unit
        assert isinstance(text, bytes)
        state = aes(self.naming, struct.pack("<QQ", len(text), 0))
        for start in range(0, len(text), 16):
            block = text[start : start + 16].ljust(16, b"\0")
            state = aes(self.naming, bytes(a ^ b for a, b in zip(state, block, strict=True)))
        return state

    def block(self, name: bytes, stream: int, number: int) -> bytes:
        first, second = struct.unpack("<QQ", name)
        return aes(self.placing, struct.pack("<QQ", first, second ^ (stream << 32 | number)))

    def below(self, limit: int, name: bytes, stream: int, turn: int) -> int:
        word = struct.unpack("<4I", self.block(name, stream, turn // 4))[turn % 4]
        attempt = 1
        while word * limit % 2**32 < 2**32 % limit:
            word = struct.unpack("<4I", self.block(name, stream, attempt * 2**16 + turn))[0]
            attempt += 1
        return word * limit >> 32

    def choose(self, size: int, some: int, name: bytes, stream: int) -> list[int]:
        if size <= some:
            return list(range(size))
        if some > FEW:
            return sorted(range(size), key=lambda place: struct.unpack("<QQ", self.block(name, stream, place)))[:some]
        chosen: list[int] = []
        for turn in range(some):
            last = size - some + turn
            drawn = self.below(last + 1, name, stream, turn)
            chosen.append(last if drawn in chosen else drawn)
        return chosen


def kept(rows: Iterable[Row], limits: ContributionBounds, groups: int, secret: PlainSecret) -> list[Row]:
    """Keep rows as the semantics say, unit by unit."""
    owned: dict[Hashable, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        unit, group = row[:2]
        if unit is None or unit != unit or not 0 <= group < groups:
            continue
        owned[unit][group].append(row)
    return [row for unit, by_group in owned.items() for row in kept_of_one(unit, by_group, limits, secret)]


def kept_of_one(
    unit: Hashable, by_group: dict[int, list[Row]], limits: ContributionBounds, secret: PlainSecret
) -> list[Row]:
    name, order = secret.name(unit), sorted(by_group)
    result = []
    for place in secret.choose(len(order), limits.max_groups, name, 0):
        listed = sorted(by_group[order[place]], key=lambda row: [(x is not None, x or 0) for x in row[2:]])
        result += [listed[i] for i in secret.choose(len(listed), limits.max_rows, name, place + 1)]
    return result


def reference(rows: Sequence[Row], groups: int, limits: ContributionBounds, measures: Sequence[BoundedColumn]) -> Plain:
    """Count what is kept, in Python integers."""
    secret = PlainSecret()
    clamped = [(*row[:2], *(clamp(x, m) for x, m in zip(row[2:], measures, strict=True))) for row in rows]
    left = kept(clamped, limits, groups, secret)
    by_group = [[row for row in left if row[1] == group] for group in range(groups)]
    columns = [[[r[2 + m] for r in rows if r[2 + m] is not None] for rows in by_group] for m in range(len(measures))]
    pairs = list(zip(columns, measures, strict=True))
    return Plain(
        [len({row[0] for row in rows}) for rows in by_group],
        [len(rows) for rows in by_group],
        [[len(values) for values in column] for column in columns],
        [[sum(value - m.centre for value in values) for values in column] for column, m in pairs],
        [[sum((value - m.centre) ** 2 for value in values) for values in column] for column, m in pairs],
        [[len(set(values)) for values in column] for column in columns],
        [[sorted(values) for values in column] for column in columns],
    )


def clamp(value: int | None, measure: BoundedColumn) -> int | None:
    return None if value is None else min(max(value, measure.low), measure.high)


def plain(result: Tally) -> Plain:
    groups = range(len(result.rows))
    columns = result.measures
    assert all(c.total is not None and c.squares is not None and c.values is not None for c in columns)
    return Plain(
        result.units.tolist(),
        result.rows.tolist(),
        [column.counts.tolist() for column in columns],
        [column.total.tolist() for column in columns],
        [column.squares.tolist() for column in columns],
        [column.distinct.tolist() for column in columns],
        [[column.values.of(group).tolist() for group in groups] for column in columns],
    )


def everything(low: int, high: int, centre: int = 0) -> BoundedColumn:
    return BoundedColumn(low=low, high=high, centre=centre, total=True, squares=True, distinct=True, values=True)


def chunk(rows: Sequence[Row], kind: pa.DataType) -> RowChunk:
    """Lay rows out as columns."""
    measures, valid = [], []
    for place in range(2, len(rows[0]) if rows else 2):
        column = [row[place] for row in rows]
        measures.append(np.array([0 if value is None else value for value in column], np.int64))
        present = np.array([value is not None for value in column], np.bool_)
        valid.append(None if present.all() else present)
    groups = np.array([row[1] for row in rows], np.int64)
    units = pa.array([row[0] for row in rows], kind)
    return RowChunk(units=units, groups=groups, measures=tuple(measures), valid=tuple(valid))


def chunks(rows: Sequence[Row], kind: pa.DataType, size: int) -> list[RowChunk]:
    return [chunk(rows[start : start + size], kind) for start in range(0, len(rows), size)]


def ours(
    rows: Sequence[Row],
    groups: int,
    limits: ContributionBounds,
    measures: Sequence[BoundedColumn],
    *,
    kind: pa.DataType | None = None,
    size: int = 1 << 20,
    label: str = "bounding",
    **how: int,
) -> Plain:
    """Count with the library, under recorded randomness."""
    with replayed(label):
        return plain(
            tally(chunks(rows, kind or pa.int64(), size), groups=groups, limits=limits, measures=measures, **how)
        )


def theirs(
    rows: Sequence[Row],
    groups: int,
    limits: ContributionBounds,
    measures: Sequence[BoundedColumn],
    label: str = "bounding",
) -> Plain:
    with replayed(label):
        return reference(rows, groups, limits, measures)
