"""Small worlds: all data sets of a few sizes over a few values, and who is a neighbour of whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import comb
from typing import Any, NamedTuple, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import exact, integer
from discreet.formatting import plain, record
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "ExhaustiveSensitivity",
    "World",
    "Worlds",
    "as_worlds",
    "l1",
    "neighbours",
    "sensitivity",
    "squared_l2",
    "worlds",
]

World: TypeAlias = tuple[Hashable, ...]

_MOST = 100_000  # Data sets in one world; a verification of more would not end.
_LONGEST_ORDERED = 4  # Records; ordered data sets of more are too many and show nothing new.


@final
@dataclass(frozen=True, slots=True)
class Worlds:
    """Data sets to verify on. Those that are not ordered stand for multisets of records."""

    data_sets: tuple[World, ...]
    ordered: bool

    __repr__ = record

    def __len__(self) -> int:
        return len(self.data_sets)

    def __iter__(self) -> Iterator[World]:
        return iter(self.data_sets)


def worlds(values: Iterable[Hashable], sizes: Iterable[int], *, ordered: bool = False) -> Worlds:
    """List all data sets of the given sizes over the given values.

    Multisets do for a mechanism that does not look at the order of records; say `ordered=True` for others.

    Args:
        values: The values that a record may have.
        sizes: The numbers of records.
        ordered: Whether data sets in another order are listed, too.

    Returns:
        The data sets.

    Raises:
        InvalidParameter: If there are too many to list.

    Examples:
        >>> list(dp.verify.worlds("ab", sizes=[2]))
        [('a', 'a'), ('a', 'b'), ('b', 'b')]
    """
    alphabet = tuple(dict.fromkeys(values))
    lengths = sorted({integer(size, name="a size") for size in sizes})
    _check_size(len(alphabet), lengths, ordered)
    if ordered:
        data_sets = [row for length in lengths for row in product(alphabet, repeat=length)]
    else:
        data_sets = [row for length in lengths for row in combinations_with_replacement(alphabet, length)]
    return Worlds(tuple(data_sets), ordered)


def _check_size(values: int, sizes: Sequence[int], ordered: bool) -> None:
    if not sizes or sizes[0] < 0:
        raise InvalidParameter("sizes must name at least one size, none below 0")
    if values == 0 and sizes[-1] > 0:
        raise InvalidParameter("values must name at least one value")
    if ordered and sizes[-1] > _LONGEST_ORDERED:
        raise InvalidParameter(f"ordered worlds go up to size {_LONGEST_ORDERED}")
    count = sum(values**size if ordered else comb(values + size - 1, size) for size in sizes if values)
    if count > _MOST:
        raise InvalidParameter(f"{count} data sets are too many: take fewer values or smaller sizes")


def as_worlds(given: Worlds | Iterable[Sequence[Hashable]], *, symmetric: bool | None) -> Worlds:
    """Read the data sets of a caller; plain ones are ordered unless the mechanism is symmetric."""
    if isinstance(given, Worlds):
        if symmetric is False and not given.ordered:
            raise InvalidParameter("this mechanism depends on the order of records: say ordered=True")
        found = given
    else:
        found = Worlds(tuple(dict.fromkeys(_read(given))), ordered=not symmetric)
    if not found.data_sets:
        raise InvalidParameter("worlds must hold at least one data set")
    return found


def _read(given: Iterable[Sequence[Hashable]]) -> list[World]:
    try:
        rows = [tuple(row) for row in given]
        hash(tuple(rows))
    except TypeError:
        raise InvalidParameter("worlds must be data sets, each a sequence of hashable records") from None
    return rows


def neighbours(found: Worlds, relation: Relation | str) -> list[tuple[int, int]]:
    """List the positions of all pairs of neighbours, in both orders."""
    relation = read_relation(relation)
    rows = _canonical(found)
    pairs = _one_removed(rows) if relation is Relation.ADD_REMOVE else _one_replaced(rows, found.ordered)
    if not pairs:
        raise InvalidParameter(
            f"no two of these {len(found)} data sets are neighbours under {relation.name}: "
            "ADD_REMOVE needs sizes that differ by one, REPLACE_ONE two data sets of one size"
        )
    return sorted(pairs)


def _canonical(found: Worlds) -> list[tuple[int, ...]]:
    """Number the values, and sort each data set whose order has no meaning."""
    numbers: dict[Hashable, int] = {}
    rows = [tuple(numbers.setdefault(value, len(numbers)) for value in row) for row in found]
    return rows if found.ordered else [tuple(sorted(row)) for row in rows]


def _one_removed(rows: Sequence[tuple[int, ...]]) -> set[tuple[int, int]]:
    where = {row: index for index, row in enumerate(rows)}
    pairs = set()
    for index, row in enumerate(rows):
        for place in range(len(row)):
            other = where.get(row[:place] + row[place + 1 :])
            if other is not None:
                pairs |= {(index, other), (other, index)}
    return pairs


def _one_replaced(rows: Sequence[tuple[int, ...]], ordered: bool) -> set[tuple[int, int]]:
    """Neighbours agree once one record of each, at the same place if ordered, is gone."""
    groups: defaultdict[tuple[int, tuple[int, ...]], set[int]] = defaultdict(set)
    for index, row in enumerate(rows):
        for place in range(len(row)):
            groups[place if ordered else -1, row[:place] + row[place + 1 :]].add(index)
    return {pair for group in groups.values() for pair in permutations(group, 2)}


# --- exhaustive ---
# Sensitivity by exhaustion: the largest change of a query over all pairs of neighbours in a small world.


class ExhaustiveSensitivity(NamedTuple):
    """The largest change, and the neighbours between which it happens."""

    value: Fraction
    worst_pair: tuple[World, World]

    def __repr__(self) -> str:
        return f"ExhaustiveSensitivity(value={plain(self.value)}, worst_pair={self.worst_pair!r})"


def l1(one: Any, other: Any) -> Fraction:
    """Return the l1 distance of two numbers or of two vectors.

    Args:
        one: A number or a sequence of numbers.
        other: Another one, of the same length.

    Returns:
        The distance, exactly.

    Raises:
        InvalidParameter: If they differ in length.

    Examples:
        >>> dp.verify.l1((1, 2), (3, 1))
        Fraction(3, 1)
    """
    return sum((abs(a - b) for a, b in _coordinates(one, other)), Fraction(0))


def squared_l2(one: Any, other: Any) -> Fraction:
    """Return the squared l2 distance of two numbers or of two vectors.

    Args:
        one: A number or a sequence of numbers.
        other: Another one, of the same length.

    Returns:
        The square of the distance, exactly.

    Raises:
        InvalidParameter: If they differ in length.

    Examples:
        >>> small = dp.verify.worlds("ab", sizes=[2])
        >>> found = dp.verify.sensitivity(
        ...     lambda rows: [rows.count("a"), rows.count("b")], small,
        ...     relation=dp.Relation.REPLACE_ONE, distance=dp.verify.squared_l2,
        ... )
        >>> found.value
        Fraction(2, 1)
    """
    return sum(((a - b) ** 2 for a, b in _coordinates(one, other)), Fraction(0))


def sensitivity(
    query: Callable[[World], Any],
    worlds: Worlds | Iterable[Sequence[Any]],
    *,
    relation: Relation | str,
    distance: Callable[[Any, Any], Fraction] = l1,
) -> ExhaustiveSensitivity:
    """Return the largest distance of the query's answers to neighbours, as an exact number.

    A lower bound on the sensitivity; equal to it if the small world holds a worst case.

    Args:
        query: The function from a data set to a number or a vector.
        worlds: The data sets to compare, such as `worlds(…)` lists them.
        relation: The neighbouring relation.
        distance: How far two answers are apart: `l1`, `squared_l2` or a function of your own.

    Returns:
        The largest distance as `value`, and the pair of data sets where it was found.

    Raises:
        InvalidParameter: If no two of the data sets are neighbours.

    Examples:
        >>> small = dp.verify.worlds([0, 1, 5], sizes=range(4))
        >>> dp.verify.sensitivity(sum, small, relation=dp.Relation.ADD_REMOVE).value
        Fraction(5, 1)
    """
    relation = read_relation(relation)
    if not isinstance(relation, Relation):
        raise InvalidParameter("say relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE")
    found = as_worlds(worlds, symmetric=getattr(query, "symmetric", None))
    answers = [query(world) for world in found]
    changes = [(distance(answers[i], answers[j]), (i, j)) for i, j in neighbours(found, relation) if i < j]
    value, (one, other) = max(changes, key=lambda change: change[0])
    return ExhaustiveSensitivity(value, (found.data_sets[one], found.data_sets[other]))


def _coordinates(one: Any, other: Any) -> list[tuple[Fraction, Fraction]]:
    try:
        pairs = list(zip(one, other, strict=True))
    except TypeError:
        pairs = [(one, other)]
    except ValueError:
        raise InvalidParameter("a query must answer with vectors of one length") from None
    return [(exact(a, name="an answer"), exact(b, name="an answer")) for a, b in pairs]
