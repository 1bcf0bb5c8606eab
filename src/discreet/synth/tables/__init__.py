"""Tables by noisy marginals: independent columns, MST and AIM."""

from __future__ import annotations

from discreet.synth.tables.aim import AIM
from discreet.synth.tables.independent import Independent
from discreet.synth.tables.model import TableModel
from discreet.synth.tables.mst import MST

__all__ = ["AIM", "MST", "Independent", "TableModel"]
