"""Layers of a model: which can be trained privately and how, made ready, mended, and tried on made-up rows."""

from __future__ import annotations

from discreet.learn.torch.layers.attention import Attention, Constant
from discreet.learn.torch.layers.layer_report import Layer, LayerReport
from discreet.learn.torch.layers.model_preparation import PreparedModel, fix, prepare
from discreet.learn.torch.layers.recurrent import Recurrent, RecurrentCell
from discreet.learn.torch.layers.row_separation_probe import Probed, probe
from discreet.learn.torch.layers.secret_draws import SecretDropout, SecretNormal

__all__ = [
    "Attention",
    "Constant",
    "Layer",
    "LayerReport",
    "PreparedModel",
    "Probed",
    "Recurrent",
    "RecurrentCell",
    "SecretDropout",
    "SecretNormal",
    "fix",
    "prepare",
    "probe",
]
