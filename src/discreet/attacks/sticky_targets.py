"""Who can be attacked by two questions that differ by one person: whom known columns single out, in a crowd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet.attacks.local import laboratory, text_of
from discreet.attacks.sticky_questions import SECRET, CodedPeople, Codes
from discreet.errors import InvalidParameter

__all__ = ["TargetPair", "pairs_of", "read_rows", "singled_out"]


@final
@dataclass(frozen=True, slots=True)
class TargetPair:
    """Columns that single a person out, and the one of them that tells the person from all others who fit the rest."""

    rest: tuple[str, ...]
    telling: str
    crowd: int  # how many others fit the rest, and have the secret


def read_rows(rows: Any, known: Sequence[str], secret: str, value: Any) -> tuple[CodedPeople, str]:
    """Read a table of this machine as codes: known columns as they are, the secret as the value asked about or not."""
    with laboratory({"table": rows}) as lab:
        texts = [text_of(lab.column("table", column)) for column in (*known, secret)]
        listed = ", ".join(f"coalesce({text}, '') AS c{i}" for i, text in enumerate(texts))
        found = lab.select(f"SELECT {listed} FROM {lab.relations['table']}")
    columns = {f"c{i}": _codes(found.column(f"c{i}")) for i in range(len(known))}
    secrets = np.array(found.column(f"c{len(known)}").to_pylist(), dtype=object)
    asked = str(value) if value is not None else _commonest(secrets)
    has = secrets == asked
    if not has.any():
        raise InvalidParameter(f"nobody has this value of {secret}: say one that occurs")
    return CodedPeople({**columns, SECRET: has.astype(np.int64)}), asked


def singled_out(rows: CodedPeople) -> list[int]:
    """Return the people who share the values of all known columns with nobody."""
    known = np.column_stack([codes for name, codes in rows.columns.items() if name != SECRET])
    _, first, counts = np.unique(known, axis=0, return_index=True, return_counts=True)
    return [int(person) for person in first[counts == 1]]


def pairs_of(rows: CodedPeople, person: int, crowd: int) -> list[TargetPair]:
    """For each known column, find the pair of questions whose crowd is largest; the person's secret decides nothing.

    Bits of a mask say which columns of a row are the person's; a subset of columns singles the person out if no other
    mask has all of its bits.
    """
    names = [name for name in rows.columns if name != SECRET]
    masks = np.zeros(rows.size, dtype=np.int64)
    for bit, name in enumerate(names):
        masks |= (rows.columns[name] == rows.columns[name][person]).astype(np.int64) << bit
    others = np.ones(rows.size, dtype=np.bool_)
    others[person] = False
    alike = _supersets(masks[others], len(names))
    fitting = _supersets(masks[others & (rows.columns[SECRET] == 1)], len(names))
    found = [_largest(bit, names, alike, fitting) for bit in range(len(names))]
    return [pair for pair in found if pair is not None and pair.crowd >= crowd]


def _supersets(masks: Codes, bits: int) -> Codes:
    """Count, for every set of columns, the rows that agree in all of them."""
    counts = np.bincount(masks, minlength=2**bits)
    for bit in range(bits):
        shaped = counts.reshape(-1, 2, 2**bit)
        shaped[:, 0] += shaped[:, 1]
    return counts


def _largest(bit: int, names: Sequence[str], alike: Codes, fitting: Codes) -> TargetPair | None:
    own = 1 << bit
    # Subsets that hold the column, agree with nobody else, and leave a question with at least one condition.
    usable = [subset for subset in range(len(alike)) if subset & own and subset != own and alike[subset] == 0]
    if not usable:
        return None
    best = max(usable, key=lambda subset: (int(fitting[subset ^ own]), -subset))
    rest = tuple(name for other, name in enumerate(names) if other != bit and best >> other & 1)
    return TargetPair(rest, names[bit], int(fitting[best ^ own]))


def _codes(column: Any) -> Codes:
    return np.unique(np.array(column.to_pylist(), dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)


def _commonest(values: Any) -> str:
    texts, counts = np.unique(values.astype(str), return_counts=True)
    return str(texts[np.argmax(counts)])
