"""Impossible combinations are public: rules that no row could keep, or no model could hold, are refused unpaid."""

from __future__ import annotations

import numpy as np

from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column
from discreet.mechanisms.fields import settle
from discreet.synth.domain import Coder, Domain, Impossible
from discreet.synth.tables.compressing import Grouping
from discreet.synth.tables.graphical import fit, junction_cells
from discreet.synth.tables.shape import TableShape

__all__ = ["check_rules", "evenly_possible"]

_MOST_CELLS = 1 << 24  # Of all tables that the rules alone ask for: 128 MB.


def check_rules(domain: Domain) -> None:
    """Refuse rules that together leave nothing possible, or that join columns to tables of too many cells.

    Codes that the same rules name are alike to them, so whether a row is left is asked of one cell for each kind.
    """
    if not domain.impossible:
        return
    shape = TableShape.of(_named(domain))
    cells = junction_cells(shape.sizes, [rule.columns for rule in shape.rules])
    if cells > _MOST_CELLS:
        raise InvalidParameter(
            f"the rules of impossible combinations join columns to tables of {cells:,} cells, {_MOST_CELLS:,} at most: "
            "name fewer columns in a rule, or declare coarser bins"
        )
    kinds = [Grouping(kind.astype(np.int32), 1 / np.bincount(kind)[kind]) for kind in shape.kinds]
    fit([kind.size for kind in kinds], [], impossible=shape.zeros(kinds))


def evenly_possible(domain: Domain, rows: int) -> dict[str, Column]:
    """Draw rows of which every combination that the rules leave is as likely as any other."""
    shape = TableShape.of(domain)
    groupings = [Grouping.none(size) for size in shape.sizes]
    return Coder(domain).decode(fit(shape.sizes, [], impossible=shape.zeros(groupings)).sample(rows))


def _named(domain: Domain) -> Domain:
    """Return the columns that rules name, and the rules; other columns may not even be found yet."""
    places = sorted({place for rule in domain.impossible for place in rule.columns})
    rules = [Impossible(tuple(places.index(place) for place in one.columns), one.cells) for one in domain.impossible]
    named = Domain({domain.names[place]: domain.columns[domain.names[place]] for place in places})
    settle(named, impossible=tuple(rules))
    return named
