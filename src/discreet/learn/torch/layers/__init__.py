"""Layers of a model: which can be trained privately and how, made ready, mended, and tried on made-up rows."""

from __future__ import annotations

from discreet.learn.torch.layers.attention import Attention
from discreet.learn.torch.layers.constant import Constant
from discreet.learn.torch.layers.dropout import SecretDropout
from discreet.learn.torch.layers.fixing import fix
from discreet.learn.torch.layers.preparing import PreparedModel, prepare
from discreet.learn.torch.layers.probe import Probed, probe
from discreet.learn.torch.layers.recurrent import Recurrent, RecurrentCell
from discreet.learn.torch.layers.report import Layer, LayerReport
from discreet.learn.torch.layers.secret_normal import SecretNormal

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
