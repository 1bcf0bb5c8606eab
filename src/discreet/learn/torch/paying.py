"""The whole run is paid for before its first row is read, and never a second time."""

from __future__ import annotations

import inspect
from typing import Any

from discreet.errors import Refused
from discreet.learn.torch.checkpoints import LedgerClaims, RunFolder
from discreet.learn.training import RunPlan
from discreet.ledger import Ledger
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["MOST_CLAIMS", "check_unit", "pay"]

MOST_CLAIMS = 1_000_000  # as many answers as a charge of the ledger pays for


def check_unit(unit: str) -> None:
    """Refuse to promise more than clipping row by row can keep."""
    if unit != "row":
        raise Refused(
            f"training protects one row, not everybody who shares a {unit}",
            reason="each row is clipped by itself, so a person with many rows moves the weights by all of them",
            way_out='make one row of each person before training and say unit="row"',
        )


def pay(session: Payer | None, plan: RunPlan, name: str, folder: RunFolder | None) -> None:
    """Charge the run, unless it was charged before, and refuse a folder that would draw its steps again.

    A ledger knows a run with a folder by its key, and is asked each time: it charges the key once, also if the run was
    killed between the charge and its note in the folder, and a ledger that was never charged does not take the word of
    a folder for it. It keeps the claims of the run as well. A payer without a ledger relies on what is in the folder.
    """
    ledger = _ledger_of(session)
    if folder is None:
        if session is not None:
            session.charge(plan.event, relation=Relation.ADD_REMOVE, purpose=f"training: {name}")
        return
    if session is not None and ledger is not None:
        folder.use_ledger(_charged(session, ledger, plan, name, folder))
    else:
        folder.check_place(plan.steps)
        if session is None:
            return
        _charge_once(session, plan, name, folder)
    if not folder.charged:
        folder.mark_charged()


def _charge_once(session: Payer, plan: RunPlan, name: str, folder: RunFolder) -> None:
    """Charge a payer without a ledger: one with keys each time, one without by the note in the folder."""
    key = {"key": folder.key} if "key" in inspect.signature(session.charge).parameters else {}
    if key or not folder.charged:
        session.charge(plan.event, relation=Relation.ADD_REMOVE, purpose=f"training: {name}", **key)


def _ledger_of(session: Payer | None) -> Ledger | None:
    """Find the ledger behind a payer: itself, or that of a session."""
    found = session if isinstance(session, Ledger) else getattr(session, "ledger", None)
    return found if isinstance(found, Ledger) else None


def _charged(session: Payer, ledger: Ledger, plan: RunPlan, name: str, folder: RunFolder) -> LedgerClaims:
    """Charge a run with room for its claims; return what the ledger knows of them."""
    before = ledger.charged(folder.key)
    # A charge that an earlier release made has no room for several claims, and stays as it is.
    parts = None if before is not None and "parts" not in before.content else min(plan.steps, MOST_CLAIMS)
    room: dict[str, Any] = {"key": folder.key, "parts": parts}
    session.charge(plan.event, relation=Relation.ADD_REMOVE, purpose=f"training: {name}", **room)
    charge = ledger.charged(folder.key)
    assert charge is not None, "a charge is found under its key"
    return LedgerClaims(ledger, charge, plan.steps)
