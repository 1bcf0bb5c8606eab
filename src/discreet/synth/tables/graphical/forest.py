"""A tree over the factors of a model: whose columns each factor shares with one before it.

Unlike a junction tree it is one of the factors themselves, so nothing larger than a factor is ever made; where factors
form loops it leaves some of what they share unsaid. Two things need it: a scale for the steps of the fit, which may be
rough, and the removal of what factors say against each other, which is exact whichever tree is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.effects import Effects, Layout
from discreet.synth.tables.graphical.junction import Clique, mask_of
from discreet.synth.tables.graphical.network import HALF_NEVER

__all__ = ["Forest", "Link"]

_FLOOR = -80.0  # Below the largest potential of a slice; what is smaller adds nothing that a float could hold.


@dataclass(frozen=True, slots=True)
class Link:
    """A factor, the factor it hangs from, and the columns both have."""

    child: int
    parent: int
    axes: tuple[int, ...]  # Of the child's table, that the parent does not have.
    own_shape: tuple[int, ...]  # Of the shared columns as a part of the child's table,
    parent_shape: tuple[int, ...]  # and of the parent's.
    shared: Layout


@dataclass(frozen=True, slots=True)
class Forest:
    """Links in an order in which a factor's own link comes before those of what hangs from it."""

    effects: Effects
    links: tuple[Link, ...]

    @staticmethod
    def of(sizes: Sequence[int], cliques: Sequence[Clique], effects: Effects) -> Forest:
        """Hang every factor from the one it shares most columns with; those that share none stay alone."""
        masks = [mask_of(clique) for clique in cliques]
        best = {place: ((mask & masks[0]).bit_count(), 0) for place, mask in enumerate(masks) if place > 0}
        links = []
        while best:
            child = max(best, key=lambda place: best[place][0])
            shared, parent = best.pop(child)
            if shared:
                links.append(_link(sizes, cliques, effects, child, parent))
            for other in best:
                best[other] = max(
                    best[other], ((masks[other] & masks[child]).bit_count(), child), key=lambda one: one[0]
                )
        return Forest(effects, tuple(links))

    def scaled(self, vector: Floats, curvatures: Sequence[Floats]) -> Floats:
        """Apply an approximate inverse of the second derivative to a gradient, both as effects.

        Theorem     For a decomposable model the inverse of the covariance of its marginals is that of its cliques minus
                    that of its separators, each diagonal. With curvature c in a clique's cells and the sum of c in a
                    separator's cell the difference is positive, by the inequality of Cauchy and Schwarz. [Lau96]
        """
        result = np.zeros_like(vector)
        for layout, curvature in zip(self.effects.full, curvatures, strict=True):
            layout.add_means(result, layout.counts(vector) / curvature, 1.0)
        for link in self.links:
            curvature = curvatures[link.child].sum(axis=link.axes)
            link.shared.add_means(result, link.shared.counts(vector) / curvature, -1.0)
        return result

    def settle(self, potentials: Sequence[Floats]) -> list[Floats]:
        """Return potentials of the same distribution whose factors do not work against each other.

        What a factor says of the columns it shares with its parent is moved there, the last factors first: each slice
        then sums to one, and no product of factors underflows unless it is negligible indeed.
        """
        settled = [table.copy() for table in potentials]
        for link in reversed(self.links):
            table = settled[link.child]
            top = table.max(axis=link.axes, keepdims=True)
            said = top + np.log(np.exp(table - top).sum(axis=link.axes, keepdims=True))
            table -= said
            settled[link.parent] += said.reshape(link.parent_shape)
            _raise(table, table.max(axis=link.axes, keepdims=True))
        for table in settled:
            table -= table.max()
            _raise(table, np.zeros(()))
        return settled


def _raise(table: Floats, top: Floats) -> None:
    """Lift what is negligible, but possible, to a floor, so that potentials cannot grow without end."""
    np.maximum(table, top + _FLOOR, out=table, where=table > HALF_NEVER)


def _link(sizes: Sequence[int], cliques: Sequence[Clique], effects: Effects, child: int, parent: int) -> Link:
    own, above = cliques[child], cliques[parent]
    shared = tuple(column for column in own if column in above)
    return Link(
        child,
        parent,
        tuple(axis for axis, column in enumerate(own) if column not in shared),
        tuple(sizes[column] if column in shared else 1 for column in own),
        tuple(sizes[column] if column in shared else 1 for column in above),
        Layout.of(sizes, shared, effects.spans),
    )
