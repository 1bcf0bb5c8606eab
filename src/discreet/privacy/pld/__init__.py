"""Privacy-loss distributions: numerical accounts with a proven upper and a proven lower end."""

from __future__ import annotations

from discreet.privacy.pld.loss_profile import LossProfile, profile

__all__ = ["LossProfile", "profile"]
