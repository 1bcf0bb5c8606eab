"""Fixed features of pictures: made from public drawings, never from the data that are learnt from."""

from __future__ import annotations

from discreet.learn.torch.features.drawings import drawings
from discreet.learn.torch.features.scattering import scattered
from discreet.learn.torch.features.strokes import StrokeFeatures

__all__ = ["StrokeFeatures", "drawings", "scattered"]
