"""Where a run stands, on disk: safetensors and JSON, never a pickle."""

from __future__ import annotations

from discreet.learn.torch.checkpoints.folder import RunFolder
from discreet.learn.torch.checkpoints.ledger_claims import LedgerClaims
from discreet.learn.torch.checkpoints.packing import pack, unpack

__all__ = ["LedgerClaims", "RunFolder", "pack", "unpack"]
