"""A small hospital and its release plan, for tests that publish. All of it is made up by a rule."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from plan_texts import plan_in

from discreet.errors import LedgerUnavailable
from discreet.ledger import look
from discreet.ledger.charge_record import Entry
from discreet.ledger.inspect import LedgerView
from discreet.release.plan import Period, ReleasePlan

DISTRICTS = ("Harbour", "Hill", "Mill")
PATIENTS = 600
JANUARY = Period(label="2026-01", first=date(2026, 1, 1), end=date(2026, 2, 1))
KEY = "release/stays/2026-01"
# What is left out where a plan is published again and again.
SMALLER = (
    ('formats = ["csv", "parquet"]', 'formats = ["csv"]'),
    ('[[], ["region"], ["district"], ["district", "sex"]]', '[[], ["district"]]'),
    ("relative_error = 0.02\n", ""),
    ("epsilon = 1\ndelta = 1e-7\n", 'rho = 0.02\ndelta = 1e-7\nsplit = "even"\n'),
)


def stays(patients: int = PATIENTS) -> pa.Table:
    """One or two stays of each patient in the first two months of 2026."""
    rows = [
        {
            "patient": f"p{number:04}",
            "district": DISTRICTS[number % 7 % 3],
            "sex": "fm"[number % 2],
            "cost": number * 37 % 9000 + 1,
            "admitted": date(2026, 1, 1) + timedelta(days=(number * 11 + again * 29) % 59),
            "urgent": number % 5 == 0,
            "ward": f"ward {number % 4}",
        }
        for number in range(patients)
        for again in range(1 + number % 2)
    ]
    return pa.Table.from_pylist(rows)


def world(folder: Path, *changes: tuple[str, str], patients: int = PATIENTS) -> ReleasePlan:
    """Write the data and the plan into a folder and return the plan."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(stays(patients), folder / "stays.parquet")
    return plan_in(folder, *changes)


def book_of(plan: ReleasePlan) -> LedgerView | None:
    """The ledger of a plan; None if it is not there, or was only just begun."""
    try:
        return look(plan.policy.ledger) if Path(plan.policy.ledger).exists() else None
    except LedgerUnavailable:
        return None


def entries(plan: ReleasePlan, kind: str = "charge") -> list[Entry]:
    """The entries of one kind in the ledger of a plan."""
    book = book_of(plan)
    if book is None or plan.policy.dataset not in book.datasets:
        return []
    return [entry for entry in book.entries(plan.policy.dataset) if entry.kind == kind]


def answers(plan: ReleasePlan) -> list[str]:
    """The texts that are stored, one for each charge that was answered."""
    book = book_of(plan)
    texts = [] if book is None else [book.answer(entry.index) for entry in entries(plan)]
    return [text for text in texts if text is not None]


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder by name, but for those that are hidden."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith("."):
            found[name] = path.read_bytes()
    return found
