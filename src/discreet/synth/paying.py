"""The charge: all of it, for the right unit, before anything is read; and one failure for whatever comes after it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, cast

from discreet.custodian_debug import HiddenFailure
from discreet.errors import AnswerFailed, Refused
from discreet.privacy.events import ApproxDP, Event
from discreet.privacy.payer import Payer
from discreet.synth.promise import Promise

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = ["paid", "pay"]

_PURPOSE = "synthetic data"
T = TypeVar("T")


def paid(session: Payer | None, promise: Promise, work: Callable[[], T], *, of_session: bool) -> T:
    """Charge, then run what reads rows. Whatever fails after the charge fails with one and the same words.

    Rows that a session holds are read under a claim, since whoever asks may learn from a failure; whoever hands over a
    table of their own knows it.
    """
    if of_session:
        held = cast("Session", session)
        purpose = f"{_PURPOSE}: {promise.method}"
        event = _payable(held, promise)
        return held._read(work, event=event, relation=promise.relation, purpose=purpose, unit=promise.unit)
    pay(session, promise)
    # Which failure it was could depend on somebody's row, so no error may tell; nothing is refunded.
    with HiddenFailure():
        return work()
    raise AnswerFailed


def pay(session: Payer | None, promise: Promise) -> None:
    """Charge what a synthesis spends, or raise; without a session the cost is only reported."""
    if session is None:
        return
    names = inspect.signature(session.charge).parameters
    unit: dict[str, Any] = {"unit": promise.unit} if "unit" in names else {}
    if promise.unit != "row" and not unit:
        raise Refused(f"this payer is not told whom a charge protects, and this one protects a {promise.unit}")
    event = _payable(session, promise)
    session.charge(event, relation=promise.relation, purpose=f"{_PURPOSE}: {promise.method}", **unit)


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
