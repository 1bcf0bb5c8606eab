"""A table model: groups of codes, how they go together, and how to draw rows from that. All of it is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column
from discreet.synth.domain import Coder, Domain
from discreet.synth.tables.compressing import Grouping
from discreet.synth.tables.graphical import Graphical

__all__ = ["TableModel"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableModel:
    """A joint law of groups of codes, and the share of each code in its group."""

    domain: Domain
    groupings: tuple[Grouping, ...]
    joint: Graphical

    def __post_init__(self) -> None:
        known = tuple(grouping.groups.size for grouping in self.groupings)
        if known != self.domain.sizes or self.joint.sizes != tuple(grouping.size for grouping in self.groupings):
            raise InvalidParameter("this model does not fit its domain: it belongs to another table, or was changed")

    def __repr__(self) -> str:
        return f"TableModel of {len(self.groupings)} columns"

    @property
    def rows(self) -> int:
        """How many rows the table has by the noisy counts."""
        return max(1, round(self.joint.total))

    def codes(self, rows: int) -> NDArray[np.int32]:
        """Draw rows of codes."""
        drawn = self.joint.sample(rows)
        return np.column_stack([grouping.expand(drawn[:, place]) for place, grouping in enumerate(self.groupings)])

    def sample(self, rows: int) -> dict[str, Column]:
        """Draw rows of declared values."""
        return Coder(self.domain).decode(self.codes(rows))

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what is to be saved."""
        arrays: dict[str, NDArray[Any]] = {}
        for place, grouping in enumerate(self.groupings):
            arrays |= {f"groups.{place}": grouping.groups, f"shares.{place}": grouping.shares}
        arrays |= {f"potential.{place}": table for place, table in enumerate(self.joint.potentials)}
        return {"cliques": [list(clique) for clique in self.joint.cliques], "total": self.joint.total}, arrays

    @classmethod
    def restored(cls, domain: Domain, document: tuple[dict[str, Any], dict[str, NDArray[Any]]]) -> Self:
        """Make a model from what was saved, or refuse what does not fit together."""
        facts, arrays = document
        try:
            groupings = tuple(
                Grouping(arrays[f"groups.{place}"].astype(np.int32), arrays[f"shares.{place}"].astype(np.float64))
                for place in range(len(domain.names))
            )
            cliques = tuple(tuple(int(column) for column in clique) for clique in facts["cliques"])
            tables = tuple(arrays[f"potential.{place}"].astype(np.float64) for place in range(len(cliques)))
            total = float(facts["total"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InvalidParameter("this model is not complete: a part is missing or is of another kind") from None
        return cls(domain, groupings, Graphical(tuple(one.size for one in groupings), cliques, total, tables))
