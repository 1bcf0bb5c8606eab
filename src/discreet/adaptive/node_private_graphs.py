"""Counts of edges and degrees of a graph that protect a whole node with all its edges.

One node may have edges to all others, so the plain counts are sensitive to as many. Edges are added one by one in a
public order, each only while both of its ends have fewer than D edges, and those that were added are counted. [DLL16]

Let H and H' be what is kept of a graph with and without node v, k <= D the degree of v in H, and x_u the degree of
node u in H less that in H'. Then the |x_u| of all nodes but v add up to at most k:

- an edge of v that is added changes one x_u by 1, and k by 1;
- an edge between two others that is added to both or to neither changes nothing;
- one that is added to H alone was turned away from H', so one of its ends has D edges there and fewer in H. Its x is
  below 0 and comes nearer to it by 1; that of the other end changes by 1. The same holds the other way round.

Twice the number of edges of H less that of H' is k plus the sum of all x_u, so that is between 0 and 2 k: a node more
never takes edges away, and never brings more than D. Two graphs that differ in all edges of one node have the same H',
and so differ by D at most, too.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.graph_queries import Edges, Graph, Nodes, graph_among, node_count, read_nodes
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, positive_integer
from discreet.formatting import record
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise, Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.parameters import read_flag, settle
from discreet.mechanisms.release import EachCell, Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

__all__ = ["NodePrivateCounts", "kept_edges", "node_private_degrees", "node_private_edges"]


def node_private_edges(
    graph: Edges,
    *,
    cap: int,
    epsilon: Number,
    relation: Relation | str,
    delta: Number | None = None,
    nodes: Nodes | None = None,
    session: Payer | None = None,
) -> Release[int]:
    """Count the edges of a graph so that a whole node with all its edges is protected.

    At most `cap` edges of a node are counted, the first in the order of `nodes`. The interval is about the edges that
    are counted: what the cap leaves out is not in the ±. Without nodes above the cap that is nothing. [DLL16]

    Args:
        graph: The private edges: pairs of nodes, or a networkx graph, of which only the edges are read. Loops, repeated
            edges and edges to nodes that are not named are left out: they may be somebody's.
        cap: A public number: how many edges of a node count at most.
        epsilon: What a release spends.
        relation: Add-remove if a node comes or goes with its edges; replace-one if it gets any other edges.
        delta: The delta that goes with it; Gaussian noise if it is said.
        nodes: All nodes that there may be, in a public order, as a number or by name. Who is among them is public,
            who has an edge is not; so a networkx graph does not name them, nor does a `Graph` that was read from one.
        session: Who pays, for the unit "node"; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy count of the edges that are kept.

    Raises:
        InvalidParameter: If nodes are not named, or the cap is not below their number.

    Examples:
        >>> friends = [(0, 1), (1, 2), (0, 2)]
        >>> release = dp.adaptive.node_private_edges(friends, cap=5, nodes=10, epsilon=1, relation="add-remove")
        >>> release.cost, release.unit, release.plus_minus(0.95)
        ('ε = 1', 'node', Fraction(15, 1))
    """
    release = _mechanism(graph, cap, epsilon, relation, delta, nodes, by_degree=False).release(graph, session=session)
    return replace(_whole(release), delta=exact_or_none(delta, name="delta"))


def node_private_degrees(
    graph: Edges,
    *,
    cap: int,
    epsilon: Number,
    relation: Relation | str,
    delta: Number | None = None,
    nodes: Nodes | None = None,
    session: Payer | None = None,
) -> Release[tuple[int, ...]]:
    """Count the nodes of degree at least 1, 2, …, `cap` so that a whole node with all its edges is protected.

    Degrees are those that are left when at most `cap` edges of a node are counted, the first in the order of `nodes`.
    Intervals are about these: what the cap leaves out is not in the ±. [DLL16]

    Args:
        graph: The private edges: pairs of nodes, or a networkx graph, of which only the edges are read. Loops, repeated
            edges and edges to nodes that are not named are left out: they may be somebody's.
        cap: A public number: how many edges of a node count at most.
        epsilon: What a release spends.
        relation: Add-remove if a node comes or goes with its edges; replace-one if it gets any other edges.
        delta: The delta that goes with it; Gaussian noise if it is said.
        nodes: All nodes that there may be, in a public order, as a number or by name.
        session: Who pays, for the unit "node"; it is charged before the data is read. Nobody if not said.

    Returns:
        One noisy count for each degree from 1 to the cap. The difference of two is the count of one degree.

    Raises:
        InvalidParameter: If nodes are not named, or the cap is not below their number.

    Examples:
        >>> friends = [(0, 1), (1, 2), (0, 2)]
        >>> release = dp.adaptive.node_private_degrees(friends, cap=2, nodes=10, epsilon=1, relation="add-remove")
        >>> release.labels
        ('1 or more', '2 or more')
    """
    release = _mechanism(graph, cap, epsilon, relation, delta, nodes, by_degree=True).release(graph, session=session)
    return replace(release, delta=exact_or_none(delta, name="delta"))


def _mechanism(
    graph: Edges,
    cap: int,
    epsilon: Number,
    relation: Relation | str,
    delta: Number | None,
    nodes: Nodes | None,
    *,
    by_degree: bool,
) -> NodePrivateCounts:
    if nodes is None:
        if not isinstance(graph, Graph):
            raise InvalidParameter(
                "say nodes=…, how many there may be or all their names: who is in the graph is private"
            )
        nodes = graph.size
    known = read_nodes(nodes)
    noise: Noise = LaplaceNoise(epsilon=exact(epsilon, name="epsilon"))
    if delta is not None:
        noise = GaussianNoise.for_epsilon(epsilon, delta)
    return NodePrivateCounts(nodes=known, cap=cap, noise=noise, relation=read_relation(relation), by_degree=by_degree)


def _whole(release: Release[tuple[int, ...]]) -> Release[int]:
    """Return the release of the only number of a tuple."""
    assert isinstance(release.accuracy, EachCell)
    return Release(
        value=release.value[0],
        event=release.event,
        relation=release.relation,
        accuracy=release.accuracy.cells[0],
        limits=release.limits,
        method=release.method,
        unit=release.unit,
    )


def kept_edges(graph: Graph, cap: int) -> NDArray[np.int64]:
    """Add edges in the order of their nodes while both ends have fewer than `cap`; return those. This is private.

    The order of two edges must not depend on which others there are; a graph has its edges sorted by their nodes.
    """
    degrees, kept = [0] * graph.size, []
    for one, other in graph.ends.tolist():
        if degrees[one] < cap and degrees[other] < cap:
            degrees[one] += 1
            degrees[other] += 1
            kept.append((one, other))
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrivateCounts:
    """Count the edges that are kept under a cap D of degrees, or with `by_degree` the nodes of degree at least 1, …, D.

    Guarantee   what the noise spends on sensitivity D for edges, under both relations. By degree: l1 sensitivity 2 D
                under both, squared l2 sensitivity D² + 3 D if a node comes or goes and 4 D² if its edges are others.
    Theorem     Edges: as above. By degree a node of degree k adds 1 to the first k counts, and another node moves
                |x_u| of them by 1. So counts z of others have |z|_1 <= k, and the squared length of z + (1, …, 1) is
                at most k² + 2 k + k. Two graphs that differ in the edges of one node, of degrees k >= l after the cap,
                differ by at most (k + l) + (k - l) <= 2 D in l1, and in squared l2 by at most (2 D)²: by s² + 2 s + k
                - l with s = k + l <= 2 k - 1 if k > l, which is largest at k = D, l = D - 1 and 4 D² there, and by
                (2 k)² if k = l. [DLL16]
    Utility     noise of size D / epsilon on the number of edges. No edge is left out of a graph without a node above
                the cap; of others at least half of the most edges that any choice could keep are kept.
    """

    unit: ClassVar[str] = "node"

    nodes: int | tuple[Hashable, ...]  # all that there may be, in a public order
    cap: int
    noise: Noise
    relation: Relation
    by_degree: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        known, cap = read_nodes(self.nodes), positive_integer(self.cap, name="cap")
        if cap >= node_count(known):
            raise InvalidParameter("cap must be below the number of nodes: no node can have more neighbours")
        by_degree = read_flag(self.by_degree, name="by_degree")
        settle(self, nodes=known, cap=cap, relation=read_relation(self.relation), by_degree=by_degree)
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def event(self) -> Event:
        return self._measurement.event

    @property
    def labels(self) -> tuple[str, ...]:
        """The public names of the cells."""
        if not self.by_degree:
            return ("edges",)
        return tuple(f"{degree} or more" for degree in range(1, self.cap + 1))

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one node with all its edges moves the counts."""
        cap = self.cap
        if not self.by_degree:
            return Sensitivity.scalar(cap)
        squared = cap * (cap + 3) if self.relation is Relation.ADD_REMOVE else 4 * cap * cap
        return Sensitivity(l1=2 * cap, squared_l2=squared, dimension=cap)

    def release(self, data: Edges, *, session: Payer | None = None) -> Release[tuple[int, ...]]:
        """Charge, then count with noise."""
        if isinstance(data, Graph) and not data.public_order:
            raise InvalidParameter(
                "this graph was read from networkx, and its nodes are in the order in which that graph has them, which "
                "may follow from edges: hand over the networkx graph itself, and say nodes=[…] in a public order"
            )
        what = "degrees of nodes" if self.by_degree else "number of edges"
        size = node_count(self.nodes)
        with paid(session, self, purpose=f"{what}, one node with all its edges protected", unit=self.unit):
            measurement = self._measurement
            return Release(
                value=measurement.measure(data),
                event=self.event,
                relation=self.relation,
                accuracy=EachCell(cells=(measurement.accuracy(),)),
                limits=(Fraction(0), Fraction(size if self.by_degree else size * self.cap // 2)),
                labels=self.labels,
                method=f"at most {self.cap} edges of a node are counted; what that leaves out is not in the ±",
                unit=self.unit,
            )

    def distribution(self, data: Edges) -> Outcomes:
        return self._measurement.distribution(data)

    def counts(self, data: Edges) -> tuple[int, ...]:
        """Count without noise. This is private."""
        graph = graph_among(data, self.nodes)
        kept = kept_edges(graph, self.cap)
        if not self.by_degree:
            return (len(kept),)
        bins = np.bincount(np.bincount(kept.ravel(), minlength=graph.size), minlength=self.cap + 1)
        return tuple(bins[::-1].cumsum()[::-1][1:].tolist())

    @property
    def _measurement(self) -> Measurement:
        query = BoundedQuery(evaluate=self.counts, sensitivity=self.sensitivity, relation=self.relation)
        return Measurement(query=query, noise=self.noise)
