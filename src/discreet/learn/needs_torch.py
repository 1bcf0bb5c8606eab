"""PyTorch is needed from here on."""

from __future__ import annotations

from discreet.learn.extras import require

require("torch", "safetensors", extra="torch")
