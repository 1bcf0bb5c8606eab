"""DP-MERF: one noisy sum of whole-number features, and a generator fitted to it for free. [HAP21]

Fitting needs the extra `torch`; a fitted model is plain arrays and draws without it.
"""

from __future__ import annotations

from discreet.synth.merf.merf_images import HermiteImages, MerfImages
from discreet.synth.merf.merf_tables import MerfTables

__all__ = ["HermiteImages", "MerfImages", "MerfTables"]
