"""How many nodes have each degree, for private edges."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet.adaptive.charging import charge
from discreet.adaptive.graph import Edges, graph_of, node_count, read_nodes
from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.mechanisms.accuracy import EachCell
from discreet.mechanisms.budget import Noise, Sensitivity
from discreet.mechanisms.fields import read_flag, settle
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["DegreeHistogram"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeHistogram:
    """Count the nodes of degree 0, 1, …, `largest` or more; or of degree at least 1, 2, …, `largest`.

    Guarantee   what the noise spends on l1 sensitivity 4 and squared l2 sensitivity 8; for nodes of at least a
                degree, 2 and 4.
    Theorem     An edge more moves two nodes up by one degree. Each leaves one bin and enters another; it joins the
                nodes of at least one more degree, and leaves no such count. Both nodes may do so at the same
                degree. [HLMJ09]
    Utility     noise of one size in every bin. The difference of two counts of at least a degree is a bin with half
                the variance.
    """

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    nodes: int | tuple[Hashable, ...]
    largest: int  # public; nodes of higher degree are counted with it
    noise: Noise
    at_least: bool = False

    def __post_init__(self) -> None:
        known, largest = read_nodes(self.nodes), positive_integer(self.largest, name="largest")
        if largest >= node_count(known):
            raise InvalidParameter("largest must be below the number of nodes: no node can have more neighbours")
        settle(self, nodes=known, largest=largest, at_least=read_flag(self.at_least, name="at_least"))
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def event(self) -> Event:
        return self._measurement.event

    @property
    def labels(self) -> tuple[str, ...]:
        """The public names of the cells."""
        if self.at_least:
            return tuple(f"{degree} or more" for degree in range(1, self.largest + 1))
        return (*map(str, range(self.largest)), f"{self.largest} or more")

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one edge moves the counts."""
        moved = 2 if self.at_least else 4
        return Sensitivity(l1=moved, squared_l2=2 * moved, dimension=len(self.labels))

    def release(self, data: Edges, *, session: Payer | None = None) -> Release[tuple[int, ...]]:
        """Charge, then count with noise."""
        charge(self, session, purpose="degrees of nodes, one edge protected")
        measurement = self._measurement
        return Release(
            value=measurement.measure(data),
            event=self.event,
            relation=self.relation,
            accuracy=EachCell(cells=(measurement.accuracy(),)),
            limits=(Fraction(0), Fraction(node_count(self.nodes))),
            labels=self.labels,
        )

    def distribution(self, data: Edges) -> Outcomes:
        return self._measurement.distribution(data)

    def counts(self, data: Edges) -> tuple[int, ...]:
        """Count without noise. This is private."""
        degrees = np.minimum(graph_of(data, self.nodes).degrees, self.largest)
        bins = np.bincount(degrees, minlength=self.largest + 1)
        return tuple((bins[::-1].cumsum()[::-1][1:] if self.at_least else bins).tolist())

    @property
    def _measurement(self) -> Measurement:
        query = BoundedQuery(evaluate=self.counts, sensitivity=self.sensitivity, relation=self.relation)
        return Measurement(query=query, noise=self.noise)
