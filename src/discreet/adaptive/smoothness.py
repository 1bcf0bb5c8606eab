"""Look for a counterexample to a smooth bound: all pairs of neighbours in a small world, by enumeration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias, final

from discreet.adaptive.smooth_query import SmoothQuery
from discreet.balls import ball, ball_down, ball_up, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Smoothness", "check_smoothness"]

World: TypeAlias = tuple[Hashable, ...]

_BITS = 128
_SLACK = Fraction(1, 2**64)  # Two sides that are equal look apart by less once they are enclosed.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """What was found in a small world. It can refute a bound; it cannot prove one."""

    beta: Fraction
    pairs: int  # of neighbours
    growth: float  # the largest change of the logarithm of the bound, rounded up
    exceeded: tuple[World, World] | None  # neighbours whose values are farther apart than a bound of them
    uneven: tuple[World, World] | None  # neighbours whose bounds are apart by more than e^beta

    @property
    def holds(self) -> bool:
        """Whether no pair of neighbours in this world refutes the bound."""
        return self.exceeded is None and self.uneven is None

    def __str__(self) -> str:
        if self.holds:
            return f"no violation among {self.pairs} pairs: the bound grows by e^{self.growth:.6g} at most"
        what = "is below a change of the value" if self.exceeded else f"grows by e^{self.growth:.6g}"
        return f"refuted: the bound {what}, for {self.exceeded or self.uneven}"


def check_smoothness(query: SmoothQuery, worlds: Iterable[Sequence[Any]], *, beta: Number) -> Smoothness:
    """Compare the values and bounds of all neighbours among some made-up data sets, taken as multisets.

    A bound that says it is known up to a factor only is compared with that much room. Never run this on real data:
    what it returns tells data sets apart.
    """
    smooth = positive(beta, name="beta")
    data_sets = list(dict.fromkeys(tuple(sorted(world)) for world in worlds))
    pairs = _neighbours(data_sets, query.relation)
    if not pairs:
        raise InvalidParameter("this world has no two neighbours under the query's relation: name more data sets")
    computed = smooth - 2 * query.relative_error
    with precision(_BITS):
        values = [query.value(data) for data in data_sets]
        room = ball(1 + query.relative_error)
        sizes = [query.smooth_bound(data, computed).enclose(computed) * room for data in data_sets]
        found = _SmoothnessSearch(values, sizes, pairs)
        growth, uneven = found.growth(smooth)
        exceeded = found.exceeded(2 * query.value_error)
    return Smoothness(
        beta=smooth,
        pairs=len(pairs),
        growth=growth,
        exceeded=_named(data_sets, exceeded),
        uneven=_named(data_sets, uneven),
    )


class _SmoothnessSearch:
    __slots__ = ("_pairs", "_sizes", "_values")

    def __init__(self, values: list[Fraction], sizes: list[arb], pairs: list[tuple[int, int]]) -> None:
        self._values, self._sizes, self._pairs = values, sizes, pairs

    def growth(self, beta: Fraction) -> tuple[float, tuple[int, int] | None]:
        """Return the largest growth, and a pair where it is surely above beta."""
        logs = [size.log() if size > 0 else None for size in self._sizes]
        most, uneven = 0.0, None
        for one, other in self._pairs:
            first, second = logs[one], logs[other]
            if first is None or second is None:
                # Only a bound of zero all over is smooth.
                apart = 0.0 if first is second else float("inf")
                least = apart
            else:
                apart, least = ball_up(abs(first - second)), ball_down(abs(first - second))
            most = max(most, apart)
            if least > float(beta + _SLACK):
                uneven = uneven or (one, other)
        return most, uneven

    def exceeded(self, error: Fraction) -> tuple[int, int] | None:
        """Return a pair whose values are surely farther apart than a bound of them, up to errors of the values."""
        for one, other in self._pairs:
            change = ball(abs(self._values[one] - self._values[other]) - error)
            if change > self._sizes[one] * ball(1 + _SLACK) or change > self._sizes[other] * ball(1 + _SLACK):
                return one, other
        return None


def _named(data_sets: list[World], pair: tuple[int, int] | None) -> tuple[World, World] | None:
    return None if pair is None else (data_sets[pair[0]], data_sets[pair[1]])


def _neighbours(data_sets: list[World], relation: Relation) -> list[tuple[int, int]]:
    """Pair data sets that are the same once a record of one, or one of each, is gone."""
    where = {world: index for index, world in enumerate(data_sets)}
    without: defaultdict[World, set[int]] = defaultdict(set)
    for world, index in where.items():
        for place in range(len(world)):
            without[world[:place] + world[place + 1 :]].add(index)
    if relation is Relation.REPLACE_ONE:
        found = {pair for group in without.values() for pair in combinations(sorted(group), 2)}
    else:
        found = {(where[rest], index) for rest, group in without.items() if rest in where for index in group}
    return sorted(found)
