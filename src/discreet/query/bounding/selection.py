"""Keep at most so many groups of a unit, and at most so many rows in each: the one stage that bounds contributions.

Theorem     Given the secret, what is kept of a unit is a function of its own name and its own rows. So one unit more
            or less changes no other unit's kept rows, and the kept rows of the data by at most `max_groups` groups
            with at most `max_rows` rows each. Over the secret, a unit's groups are a uniform subset and so are its
            rows in each kept group, all independent.
Proof       Keys are sorted, so the rows of a unit are one run, and its groups are runs in it, numbered by their order
            within the unit. Subsets are drawn at places (name, number of the group in the unit) by `choose`, from the
            size of the run; the rows of a run are in an order that their levels decide, and equal rows are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.choosing import choose
from discreet.query.bounding.identity import Units
from discreet.query.bounding.keys import Layout
from discreet.query.bounding.limits import Limits
from discreet.query.bounding.payload import Payload
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.spans import lengths, spread, starts_of_runs

__all__ = ["Kept", "Selection"]

Integers: TypeAlias = NDArray[np.int64]
_OF_GROUPS = 0  # The stream of a unit that chooses its groups; the one of its group number g is g + 1.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was kept of some units."""

    pairs: Integers  # the group of each kept (unit, group) pair
    groups: Integers  # the group of each kept row
    payloads: Integers  # and its payload


@final
@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """How to keep: the limits, the secret, and what a key is made of."""

    limits: Limits
    secret: Secret
    units: Units
    layout: Layout
    payload: Payload

    def keep(self, keys: Integers) -> Kept:
        """Choose among sorted keys, which hold all rows of every unit in them. May reorder keys within a pair."""
        starts = starts_of_runs(keys, self.layout.payload_bits)
        heads = keys[starts]
        firsts = starts_of_runs(heads, self.layout.unit_shift)
        kept = self._pairs(heads, firsts)
        counts = lengths(starts, keys.size)
        if kept is not None:
            starts, counts, pairs = starts[kept], counts[kept], heads[kept]
        else:
            kept, pairs = np.arange(starts.size), heads
        rows = self._rows(keys, starts, counts, kept, firsts)
        return Kept(self.layout.groups(pairs), self.layout.groups(rows), self.layout.payloads(rows))

    def _pairs(self, heads: Integers, firsts: Integers) -> Integers | None:
        """Choose the groups of each unit that has too many; None if no unit has."""
        sizes = lengths(firsts, heads.size)
        most = self.limits.max_groups
        many = np.flatnonzero(sizes > most)
        if not many.size:
            return None
        kept = np.ones(heads.size, np.bool_)
        kept[spread(firsts[many], sizes[many])] = False
        names = self._names(heads[firsts[many]])
        chosen = choose(sizes[many], most, names, np.full(many.size, _OF_GROUPS), self.secret)
        kept[(firsts[many][:, None] + chosen).ravel()] = True
        return np.flatnonzero(kept)

    def _rows(self, keys: Integers, starts: Integers, counts: Integers, pairs: Integers, firsts: Integers) -> Integers:
        """Return the kept keys of kept pairs; `pairs` are their numbers among all pairs."""
        most = self.limits.max_rows
        many = np.flatnonzero(counts > most)
        if not many.size:
            return keys[spread(starts, counts)]
        self.payload.arrange(keys, starts[many], counts[many])
        unit = np.searchsorted(firsts, pairs[many], side="right") - 1
        streams = pairs[many] - firsts[unit] + 1
        names = self._names(keys[starts[many]])
        chosen = choose(counts[many], most, names, streams, self.secret)
        limited = np.minimum(counts, most)
        places = spread(starts, limited)
        within = np.cumsum(limited) - limited
        places[(within[many][:, None] + np.arange(most)).ravel()] = (starts[many][:, None] + chosen).ravel()
        return keys[places]

    def _names(self, keys: Integers) -> NDArray[np.uint64]:
        return self.units.names(self.layout.units(keys), self.secret)
