"""The charge: all of it, for the right unit, before anything is read."""

from __future__ import annotations

import inspect
from typing import Any

from discreet.errors import Refused
from discreet.privacy.payer import Payer
from discreet.synth.promise import Promise

__all__ = ["pay"]


def pay(session: Payer | None, promise: Promise) -> None:
    """Charge what a synthesis spends, or raise; without a session the cost is only reported."""
    if session is None:
        return
    names = inspect.signature(session.charge).parameters
    unit: dict[str, Any] = {"unit": promise.unit} if "unit" in names else {}
    if promise.unit != "row" and not unit:
        raise Refused(f"this payer is not told whom a charge protects, and this one protects a {promise.unit}")
    session.charge(promise.event, relation=promise.relation, purpose=f"synthetic data: {promise.method}", **unit)
