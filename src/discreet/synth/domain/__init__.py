"""The public declaration of a table or of pictures, and the rule that turns rows into whole numbers."""

from __future__ import annotations

from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.domain.domain import Domain, Impossible
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.domain.numeric import Numeric

__all__ = ["Category", "Coder", "Domain", "ImageRows", "Images", "Impossible", "Numeric", "TableRows"]
