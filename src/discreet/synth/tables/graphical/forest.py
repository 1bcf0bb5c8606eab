"""A tree over the factors of a model: whose columns each factor shares with one before it.

Unlike a junction tree it is one of the factors themselves, so nothing larger than a factor is ever made; where factors
form loops it leaves some of what they share unsaid. It gives a scale for the steps of the fit, which may be rough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.effects import Cells, Effects
from discreet.synth.tables.graphical.junction import Clique, columns_of, mask_of
from discreet.synth.tables.graphical.linear import Places, SparseMap, places

__all__ = ["Forest", "Link"]


@dataclass(frozen=True, slots=True)
class Link:
    """A factor, the factor it hangs from, and the columns both have."""

    child: int
    parent: int
    shared: Clique


@dataclass(frozen=True, slots=True)
class Forest:
    """Links in an order in which a factor's own link comes before those of what hangs from it."""

    effects: Effects
    links: tuple[Link, ...]
    separators: SparseMap  # From effects to counts of the cells of what is shared.
    homes: Places  # For the cells of all factors: the cell of what is shared, or one after the last.

    @staticmethod
    def of(sizes: Sequence[int], cells: Cells, effects: Effects) -> Forest:
        """Hang every factor from the one it shares most columns with; those that share none stay alone."""
        links = _links(cells.cliques)
        between = Cells.of(sizes, [link.shared for link in links])
        homes = np.full(int(cells.starts[-1]), between.starts[-1], dtype=np.int32)
        for link, start in zip(links, between.starts.tolist(), strict=False):
            span = slice(*cells.starts[link.child : link.child + 2].tolist())
            homes[span] = places(sizes, cells.cliques[link.child], link.shared, start)
        return Forest(effects, tuple(links), effects.shared_by(sizes, between.cliques), homes)

    def scaled(self, vector: Floats, curvature: Floats) -> Floats:
        """Apply an approximate inverse of the second derivative to a gradient, both as effects.

        Theorem     For a decomposable model the inverse of the covariance of its marginals is that of its cliques minus
                    that of its separators, each diagonal. With curvature c in a clique's cells and the sum of c in a
                    separator's cell the difference is positive, by the inequality of Cauchy and Schwarz. [Lau96]
        """
        sums = np.bincount(self.homes, weights=curvature, minlength=self.separators.height + 1)[:-1]
        cliques = self.effects.shared.transposed(self.effects.shared.times(vector) / curvature)
        return self.effects.centred(cliques - self.separators.transposed(self.separators.times(vector) / sums))


def _links(cliques: Sequence[Clique]) -> list[Link]:
    masks = [mask_of(clique) for clique in cliques]
    best = {place: (mask & masks[0], 0) for place, mask in enumerate(masks) if place > 0}
    links = []
    while best:
        child = max(best, key=lambda place: best[place][0].bit_count())
        shared, parent = best.pop(child)
        if shared:
            links.append(Link(child, parent, columns_of(shared)))
        for other, (held, _) in best.items():
            if (masks[other] & masks[child]).bit_count() > held.bit_count():
                best[other] = (masks[other] & masks[child], child)
    return links
