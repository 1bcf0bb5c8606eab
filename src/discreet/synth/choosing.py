"""Which method, by public facts alone: the columns and cells of a domain, the size of pictures, epsilon."""

from __future__ import annotations

from fractions import Fraction

from discreet.privacy.relation import Relation
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import Images
from discreet.synth.method import Terms

__all__ = ["choose_for_images", "choose_for_table"]

_MOST_COLUMNS = 48  # Above it, looking at all pairs and triples again and again takes too long.
_MOST_PAIR = 1 << 20  # Cells of two columns together.
_STRONG = Fraction(2)  # Below this epsilon one noisy embedding says more than many noisy gradients.
_SMALL = 28 * 28  # Pixels that a processor without a graphics card can learn to draw in minutes.


def choose_for_table(terms: Terms[Domain]) -> str:
    """Take AIM where its model stays small, else MST."""
    largest = sorted(terms.domain.sizes)[-2:]
    pair = largest[0] * largest[-1]
    return "aim" if len(terms.domain.names) <= _MOST_COLUMNS and pair <= _MOST_PAIR else "mst"


def choose_for_images(terms: Terms[Images]) -> str:
    """Take diffusion where epsilon allows it, pictures are small and it can tell how many there are, else DP-MERF."""
    can = terms.relation is Relation.ADD_REMOVE and terms.public_rows is not None
    return "diffusion" if can and terms.epsilon >= _STRONG and terms.domain.pixels <= _SMALL else "merf"
