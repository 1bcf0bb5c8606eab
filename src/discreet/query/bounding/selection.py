"""Contribution bounding: keep at most so many groups of a unit, and at most so many rows in each.

Theorem     Given the secret, what is kept of a unit is a function of its own name and its own rows. So one unit more
            or less changes no other unit's kept rows, and the kept rows of the data by at most `max_groups` groups
            with at most `max_rows` rows each. Over the secret, a unit's groups are a uniform subset and so are its
            rows in each kept group, all independent.
Proof       Keys are sorted, so the rows of a unit are one run, and its groups are runs in it, numbered by their order
            within the unit. Subsets are drawn at places (name, number of the group in the unit) by `choose`, from the
            size of the run; the rows of a run are in an order that their levels decide, and equal rows are alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.contribution_bounds import ContributionBounds
from discreet.query.bounding.packed_columns import KeyLayout, Payload, Runs, lengths, members
from discreet.query.bounding.secret import Blocks, Secret, Words

__all__ = ["Kept", "NamedUnits", "Selection", "choose"]

Integers: TypeAlias = NDArray[np.int64]
_MOSTLY = 0.5
_OF_GROUPS = 0  # The stream of a unit that chooses its groups; the one of its group number g is g + 1.


class NamedUnits(Protocol):
    """Units by codes, each with a name that depends on who it is."""

    def names(self, codes: Integers, secret: Secret) -> Blocks:
        """Return the names by which secret choices are made."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was kept of some units."""

    pairs: Integers  # the group of each kept (unit, group) pair
    groups: Integers  # the group of each kept row
    payloads: Integers  # and its payload

    @classmethod
    def all_of(cls, keys: Integers, layout: KeyLayout) -> Kept:
        """Keep the rows of units that have one row each."""
        groups = layout.groups(keys)
        return cls(groups, groups, layout.payloads(keys))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """How to keep: the limits, the secret, and what a key is made of. It belongs to one thread."""

    limits: ContributionBounds
    secret: Secret
    units: NamedUnits
    layout: KeyLayout
    payload: Payload
    runs: Runs = field(default_factory=Runs)

    def keep(self, keys: Integers) -> list[Kept]:
        """Choose among sorted keys, which hold all rows of every unit in them. May reorder keys within a pair."""
        self.runs.read(keys)
        alone = self.runs.alone(self.layout.unit_shift)
        single = np.count_nonzero(alone)
        if single < keys.size * _MOSTLY:
            return [self._chosen(keys)]
        # Where most units have one row there is mostly nothing to choose.
        if single == keys.size:
            return [Kept.all_of(keys, self.layout)]
        others = keys[np.flatnonzero(~alone)]
        whole = Kept.all_of(keys[np.flatnonzero(alone)], self.layout)
        self.runs.read(others)
        return [whole, self._chosen(others)]

    def _chosen(self, keys: Integers) -> Kept:
        """Choose among the keys that were just read."""
        # Keys that are equal above the payload are the rows of one unit in one group.
        starts = self.runs.starts(self.layout.payload_bits)
        heads = keys[starts]
        pairs, ranks = self._pairs(heads)
        counts = lengths(starts, keys.size)[pairs]
        rows = self._rows(keys, starts[pairs], counts, ranks)
        return Kept(self.layout.groups(heads[pairs]), self.layout.groups(rows), self.layout.payloads(rows))

    def _pairs(self, heads: Integers) -> tuple[Integers, Integers]:
        """Choose the groups of each unit: return their places in `heads`, and their ranks among the unit's groups."""
        most = self.limits.max_groups
        self.runs.read(heads)
        firsts = self.runs.starts(self.layout.unit_shift)
        sizes = lengths(firsts, heads.size)
        many = np.flatnonzero(sizes > most)
        if not many.size:
            return members(firsts, sizes, most)
        few = np.flatnonzero(sizes <= most)
        places, ranks = members(firsts[few], sizes[few], most)
        starts = firsts[many]
        streams = np.full(many.size, _OF_GROUPS)
        chosen = choose(sizes[many], most, self._names(heads[starts]), streams, self.secret)
        return np.concatenate((places, (starts + chosen).ravel())), np.concatenate((ranks, chosen.ravel()))

    def _rows(self, keys: Integers, starts: Integers, counts: Integers, ranks: Integers) -> Integers:
        """Return the kept keys of kept pairs, whose ranks are those among the groups of their unit."""
        most = self.limits.max_rows
        many = np.flatnonzero(counts > most)
        if not many.size:
            return keys[members(starts, counts, most)[0]]
        few = np.flatnonzero(counts <= most)
        places, _ = members(starts[few], counts[few], most)
        starts, counts = starts[many], counts[many]
        self.payload.arrange(keys, starts, counts)
        chosen = choose(counts, most, self._names(keys[starts]), ranks[many] + 1, self.secret)
        return keys[np.concatenate((places, (starts + chosen).ravel()))]

    def _names(self, keys: Integers) -> NDArray[np.uint64]:
        return self.units.names(self.layout.units(keys), self.secret)


# --- choosing: Choose some of many, for many sets at once: every subset of the size asked for is equally likely. ---
#
# Few are chosen by Floyd's rule, which needs one uniform number for each that is chosen, however large the set [BF87].
# Many are chosen by random tags: each element gets one, and the smallest win.


_FEW = 16  # Floyd's rule compares each choice with the earlier ones: it pays up to here.
_LANES = 4  # Words of 32 bits in a block.
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)
_AGAIN = 1 << 16  # The numbers of later attempts; those of the first are below.


def choose(sizes: Integers, some: int, names: Blocks, streams: Integers, secret: Secret) -> Integers:
    """Choose `some` of the places 0, …, size - 1 for each size, all of which are above `some`; one column a set.

    Theorem     Given uniform words each subset has the same chance; it depends on (name, stream) and size only.
    """
    rule = _few if some <= _FEW else _many
    return rule(sizes, some, names, streams.astype(np.uint64), secret)


def _few(sizes: Integers, some: int, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Floyd's rule: draw one of 0, …, j for the last `some` values of j; if it is taken already, take j itself."""
    last = sizes - np.arange(some, 0, -1)[:, None]
    chosen = _below(last + 1, names, streams, secret)
    for turn in range(1, some):
        for earlier in chosen[:turn]:
            # Once it is j it stays so: no earlier choice reaches j.
            np.copyto(chosen[turn], last[turn], where=earlier == chosen[turn])
    return chosen


def _below(limits: Integers, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Draw one of 0, …, limit - 1, each alike, for each limit below 2^32: the high half of word times limit.

    Of the 2^32 products, those with a given high half are floor(2^32 / limit) or one more; refusing the products
    whose low half is below 2^32 mod limit leaves exactly floor(2^32 / limit) for each. [Lem19]
    """
    limit = limits.view(np.uint64)
    product = _words(len(limits), names, streams, secret) * limit
    drawn = (product >> _HALF).view(np.int64)
    product &= _LOW
    unsure = product < limit  # What is refused is among them, and few are left to divide.
    if unsure.any():
        turns, sets = np.nonzero(unsure)
        refused = product[turns, sets] < (1 << 32) % limit[turns, sets]
        for turn, one in zip(turns[refused], sets[refused], strict=True):
            drawn[turn, one] = _again(int(limits[turn, one]), turn, names[[one]], streams[[one]], secret)
    return drawn


def _words(count: int, names: Blocks, streams: Words, secret: Secret) -> NDArray[np.uint32]:
    """Return `count` words of 32 bits for each name, one row for each of them."""
    blocks = [secret.blocks(names, streams, np.uint64(number)) for number in range(-(-count // _LANES))]
    return np.concatenate([block.view(np.uint32).T for block in blocks])[:count]


def _again(limit: int, turn: int, name: Blocks, stream: Words, secret: Secret) -> int:
    """Draw in place of a word that was refused."""
    attempt = 1
    while True:
        block = secret.blocks(name, stream, np.uint64(attempt * _AGAIN + turn))
        product = int(block.view(np.uint32)[0, 0]) * limit
        if product % (1 << 32) >= (1 << 32) % limit:
            return product >> 32
        attempt += 1


def _many(sizes: Integers, some: int, names: Blocks, streams: Words, secret: Secret) -> Integers:
    """Give a tag of 128 bits to each element and take the smallest. Tags of a set are distinct: AES is a bijection."""
    sets = np.repeat(np.arange(sizes.size), sizes)
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sets.size) - starts[sets]
    tags = secret.blocks(names[sets], streams[sets], places.astype(np.uint64))
    order = np.lexsort((tags[:, 1], tags[:, 0], sets))
    chosen: Integers = places[order[np.arange(some)[:, None] + starts]]
    return chosen
