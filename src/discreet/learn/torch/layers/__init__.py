"""Layers of a model: which can be trained privately and how, made ready, mended, and tried on made-up rows."""

from __future__ import annotations

from discreet.learn.torch.layers.attention import Constant
from discreet.learn.torch.layers.layer_report import LayerReport
from discreet.learn.torch.layers.model_preparation import fix, prepare
from discreet.learn.torch.layers.row_separation_probe import probe
from discreet.learn.torch.layers.secret_draws import SecretNormal

__all__ = [
    "Constant",
    "LayerReport",
    "SecretNormal",
    "fix",
    "prepare",
    "probe",
]
