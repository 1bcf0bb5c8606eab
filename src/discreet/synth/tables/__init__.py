"""Tables by noisy marginals: independent columns, MST and AIM."""

from __future__ import annotations
