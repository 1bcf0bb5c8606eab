"""Graphical models fitted to noisy marginals, and sampled: the estimator behind MST and AIM. Plain numpy."""

from __future__ import annotations

from discreet.synth.tables.graphical.fitting import Impossible, fit
from discreet.synth.tables.graphical.junction import Clique, junction_cells
from discreet.synth.tables.graphical.measured import NoisyMarginal
from discreet.synth.tables.graphical.model import Graphical

__all__ = ["Clique", "Graphical", "Impossible", "NoisyMarginal", "fit", "junction_cells"]
