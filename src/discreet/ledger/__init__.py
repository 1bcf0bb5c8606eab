"""The durable record of what was spent: charge before reading, store before answering."""

from __future__ import annotations

from discreet.ledger.budget import Budget, Quota
from discreet.ledger.charge_record import Account, Charge, Entry, ReadClaim, StoredAnswer
from discreet.ledger.inspect import LedgerView, look
from discreet.ledger.ledger import Ledger
from discreet.ledger.restoration import restore
from discreet.ledger.spending import Left, Spending, TightTotal, left_after
from discreet.ledger.store import LedgerRows, Store

__all__ = [
    "Account",
    "Budget",
    "Charge",
    "Entry",
    "Ledger",
    "LedgerRows",
    "LedgerView",
    "Left",
    "Quota",
    "ReadClaim",
    "Spending",
    "Store",
    "StoredAnswer",
    "TightTotal",
    "left_after",
    "look",
    "restore",
]
