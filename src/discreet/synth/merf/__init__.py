"""DP-MERF: one noisy sum of whole-number features, and a generator fitted to it for free."""

from __future__ import annotations

__all__: list[str] = []
