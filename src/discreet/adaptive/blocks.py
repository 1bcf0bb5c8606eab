"""Which record is in which block, by fresh secret randomness alone, and the rows of a block as they are sent.

Every record draws its blocks for itself. So one record more or less changes what its own blocks hold and nothing
else; blocks by position would all shift. The rows of a block are in random order, which tells nothing of others.
"""

from __future__ import annotations

import io
import marshal
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.isolation import BlockRows
from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column, column_of

__all__ = ["Records", "all_assignments", "assign", "read_records", "rows_of"]

Records: TypeAlias = NDArray[Any] | list[Any]

_DEEPEST = 16  # Nested lists in a record.
_MOST_ASSIGNMENTS = 1 << 16


def read_records(data: Any) -> Records:
    """Take an array with one record a row, a column, or a sequence of records; tables are refused.

    What kind of numbers an array holds is public. How wide its texts are is not: one of them decides it for all, and
    every block would see that. So texts become a list.
    """
    if isinstance(data, np.ndarray) and not isinstance(data, np.ma.MaskedArray):
        if data.ndim == 0:
            raise InvalidParameter("data must have one record a row")
        return data if _has_one_width(data.dtype) else data.tolist()
    if isinstance(data, (Column, np.ma.MaskedArray)):
        return column_of(data).objects()
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise InvalidParameter(f"data must be an array or a sequence of records, not {type(data).__name__}")
    return list(data)


def _has_one_width(kind: np.dtype[Any]) -> bool:
    """Tell whether values of a type are of one size, whatever they are: not objects, and not texts or bytes."""
    if kind.names is None:
        return kind.base.kind in "biufcmM"
    return all(_has_one_width(kind[name]) for name in kind.names)


def assign(count: int, *, blocks: int, memberships: int) -> list[NDArray[np.int64]]:
    """Draw `memberships` different blocks for each of `count` records; return the records of each block, shuffled."""
    drawn = _subsets(count, blocks, memberships)
    records, labels = np.repeat(np.arange(count), memberships), drawn.ravel()
    order = noise.permutation(len(labels)) if len(labels) else np.zeros(0, np.int64)
    order = order[np.argsort(labels[order], kind="stable")]
    ends = np.cumsum(np.bincount(labels, minlength=blocks))
    return np.split(records[order], ends[:-1])


def _subsets(count: int, blocks: int, size: int) -> NDArray[np.int64]:
    """Draw a subset of the blocks in each row, all of this size equally likely. [BF87]

    Numbers are drawn from more and more of the blocks; where one repeats, the newest block is taken instead.
    """
    chosen = np.zeros((count, size), np.int64)
    for place, last in enumerate(range(blocks - size, blocks)):
        drawn = noise.uniform(last + 1, size=count)
        again = (chosen[:, :place] == drawn[:, None]).any(axis=1)
        chosen[:, place] = np.where(again, last, drawn)
    return chosen


def all_assignments(count: int, *, blocks: int, memberships: int) -> Iterator[list[tuple[int, ...]]]:
    """List the records of each block for everything that may be drawn, each as likely as any other."""
    choices = list(combinations(range(blocks), memberships))
    if len(choices) ** count > _MOST_ASSIGNMENTS:
        raise InvalidParameter("too many assignments to list: verify with fewer records or blocks")
    for drawn in product(choices, repeat=count):
        yield [tuple(record for record in range(count) if block in drawn[record]) for block in range(blocks)]


def rows_of(records: Records, chosen: NDArray[np.int64] | Sequence[int]) -> BlockRows:
    """Pack some of the records, in this order."""
    if not isinstance(records, np.ndarray):
        return BlockRows(marshal.dumps([_plain(records[place]) for place in chosen], 2), array=False)
    packed = io.BytesIO()
    np.save(packed, records[np.asarray(chosen, dtype=np.int64)], allow_pickle=False)
    return BlockRows(packed.getvalue(), array=True)


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a record made of None, truth values, numbers, texts, bytes, and tuples, lists and dicts of these.

    Exact numbers, dates and times become text, and everything else becomes None: what it is made of is its own
    affair, and one record must not stop all others.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return value
    if depth >= _DEEPEST:
        return None
    if type(value) in (tuple, list):
        return type(value)(_plain(part, depth + 1) for part in value)
    if type(value) is dict:
        return {_plain(key, _DEEPEST): _plain(part, depth + 1) for key, part in value.items()}
    return _written(value) if type(value) in (Fraction, Decimal) or isinstance(value, (date, time)) else None


def _written(value: Any) -> str | None:
    """Return a value as text; None for a ratio of more digits than Python writes."""
    try:
        return str(value)
    except ValueError:
        return None
