"""The charge: all of it, for the right unit, before anything is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.errors import Refused
from discreet.privacy.events import ApproxDP, Event
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
    event = _payable(session, promise)
    session.charge(event, relation=promise.relation, purpose=f"synthetic data: {promise.method}", **unit)


def _payable(session: Payer, promise: Promise) -> Event:
    """Return the event, or what it means at its delta where only that fits; both are true, and both are public.

    A ledger adds Rényi divergences or epsilons. The former is cheaper beside other noise, the latter for a single fit
    that takes the whole budget.
    """
    affords = getattr(session, "affords", None)
    if affords is None:
        return promise.event
    plain = ApproxDP(Fraction(promise.epsilon), promise.delta)
    fits = {event: _fits(affords, event) for event in (promise.event, plain)}
    return next((event for wanted in (True, False) for event in fits if fits[event] is wanted), promise.event)


def _fits(affords: Callable[[Event], bool], event: Event) -> bool | None:
    """Tell whether a ledger could be charged; None if it keeps no account in which such an event has a price."""
    try:
        return affords(event)
    except Refused:
        return None
