"""The durable record of what was spent: charge before reading, store before answering."""

from __future__ import annotations

from discreet.ledger.account import Account
from discreet.ledger.as_of import left_after
from discreet.ledger.budget import Budget
from discreet.ledger.entry import Charge, Entry, ReadClaim, StoredAnswer
from discreet.ledger.ledger import Ledger
from discreet.ledger.looking import LedgerView, look
from discreet.ledger.quota import Quota
from discreet.ledger.restoring import restore
from discreet.ledger.spending import Left, Spending, TightTotal
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
