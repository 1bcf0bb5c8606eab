"""Where a run stands, on disk: safetensors and JSON, never a pickle."""

from __future__ import annotations

from discreet.learn.torch.checkpoints.folder import RunFolder
from discreet.learn.torch.checkpoints.packing import pack, unpack

__all__ = ["RunFolder", "pack", "unpack"]
