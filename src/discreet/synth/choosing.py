"""Which method, by public facts alone: the columns and cells of a domain, the size of pictures, epsilon."""

from __future__ import annotations

from fractions import Fraction

from discreet.privacy.relation import Relation
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import Images
from discreet.synth.method import ImageMethod, TableMethod, Terms
from discreet.synth.methods import image_method, table_method

__all__ = ["choose_for_images", "choose_for_table"]

_FEW, _MANY = 20, 60  # Columns up to which all triples, and all pairs, are looked at again and again within minutes.
_MOST_PAIR = 1 << 20  # Cells of two columns together.
_STRONG = Fraction(2)  # Below this epsilon one noisy embedding says more than many noisy gradients.
_SMALL = 28 * 28  # Pixels that a processor without a graphics card can learn to draw in minutes.


def choose_for_table(terms: Terms[Domain]) -> TableMethod:
    """Take AIM where its model stays small, of pairs only where there are many columns, else MST."""
    columns, largest = len(terms.domain.names), sorted(terms.domain.sizes)[-2:]
    if columns > _MANY or largest[0] * largest[-1] > _MOST_PAIR:
        return table_method("mst")
    if columns <= _FEW:
        return table_method("aim")
    from discreet.synth.tables import AIM

    return AIM(ways=2)


def choose_for_images(terms: Terms[Images]) -> ImageMethod:
    """Take diffusion where epsilon allows it, pictures are small and it can tell how many there are, else DP-MERF."""
    can = terms.relation is Relation.ADD_REMOVE and terms.public_rows is not None
    strong = terms.epsilon >= _STRONG and terms.domain.pixels <= _SMALL
    return image_method("diffusion" if can and strong else "merf")
