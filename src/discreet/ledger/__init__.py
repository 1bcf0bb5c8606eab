"""The durable record of what was spent: charge before reading, store before answering."""

from __future__ import annotations

from discreet.ledger.account import Account
from discreet.ledger.as_of import left_after
from discreet.ledger.budget import Budget
from discreet.ledger.entry import Charge, Entry, ReadClaim, StoredAnswer
from discreet.ledger.ledger import Ledger
from discreet.ledger.looking import Look, look
from discreet.ledger.quota import Quota
from discreet.ledger.restoring import restore
from discreet.ledger.spending import Left, Spending, Total
from discreet.ledger.store import Rows, Store

__all__ = [
    "Account",
    "Budget",
    "Charge",
    "Entry",
    "Ledger",
    "Left",
    "Look",
    "Quota",
    "ReadClaim",
    "Rows",
    "Spending",
    "Store",
    "StoredAnswer",
    "Total",
    "left_after",
    "look",
    "restore",
]
