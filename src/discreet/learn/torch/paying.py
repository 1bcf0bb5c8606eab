"""The whole run is paid for before its first row is read, and never a second time."""

from __future__ import annotations

import inspect
from typing import Any

from discreet.errors import Refused
from discreet.learn.torch.checkpoints import RunFolder
from discreet.learn.training import RunPlan
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["check_unit", "pay"]


def check_unit(unit: str) -> None:
    """Refuse to promise more than clipping row by row can keep."""
    if unit != "row":
        raise Refused(
            f"training protects one row, not everybody who shares a {unit}",
            reason="each row is clipped by itself, so a person with many rows moves the weights by all of them",
            way_out='make one row of each person before training and say unit="row"',
        )


def pay(session: Payer | None, plan: RunPlan, name: str, folder: RunFolder | None) -> None:
    """Charge the run, unless it was charged before.

    A ledger knows a run with a folder by its key, and is asked each time: it charges the key once, also if the run was
    killed between the charge and its note in the folder, and a ledger that was never charged does not take the word of
    a folder for it. Only a payer without keys must rely on the note.
    """
    if session is None:
        return
    key = _key(session, folder)
    if folder is not None and folder.charged and not key:
        return
    session.charge(plan.event, relation=Relation.ADD_REMOVE, purpose=f"training: {name}", **key)
    if folder is not None and not folder.charged:
        folder.mark_charged()


def _key(session: Payer, folder: RunFolder | None) -> dict[str, Any]:
    takes_key = "key" in inspect.signature(session.charge).parameters
    return {"key": folder.key} if folder is not None and takes_key else {}
