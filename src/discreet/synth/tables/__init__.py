"""Tables by noisy marginals: independent columns, MST and AIM."""

from __future__ import annotations

from discreet.synth.tables.aim import AIM
from discreet.synth.tables.mst import MST, Independent

__all__ = ["AIM", "MST", "Independent"]
