"""The privacy budget ledger: a durable record; charge before reading, store before answering."""

from __future__ import annotations

from discreet.ledger.budget import Budget, Quota
from discreet.ledger.charge_record import Account
from discreet.ledger.inspect import look
from discreet.ledger.ledger import Ledger
from discreet.ledger.relocation import move
from discreet.ledger.restoration import restore
from discreet.ledger.spending import left_after
from discreet.ledger.store import Store

__all__ = [
    "Account",
    "Budget",
    "Ledger",
    "Quota",
    "Store",
    "left_after",
    "look",
    "move",
    "restore",
]
