"""Synthetic data: tables by noisy marginals (MST, AIM), tables and images by one noisy embedding (DP-MERF) or diffusion.

`discreet.synth.merf` and `discreet.synth.diffusion` need the extra `torch`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["diffusion", "domain", "merf", "tables"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'discreet.synth' has no attribute {name!r}")
    return import_module(f"discreet.synth.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
