"""Folders that flows write, and what is in them without what differs from run to run."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .flow import Said
from .made_up import VISITS

__all__ = ["PLAN", "bundle", "folder", "masked"]

PLAN = """
name = "visits"
title = "Visits to five clinics"
publisher = "Health Board"
dataset = "visits"
ledger = "visits.ledger"
[unit]
column = "patient"
[budget]
epsilon = 8
delta = 1e-5
[tables.visits]
source = "visits.csv"
[tables.visits.columns]
clinic = { categories = ["Harbour", "Hillside", "Market", "Old Mill", "Station"] }
satisfied = { categories = ["yes", "no"] }
age = { low = 0, high = 120, whole = true }
wait_minutes = { low = 0, high = 240, step = 0.1 }
[release]
epsilon = 1
delta = 1e-7
[output]
folder = "published"
[[levels]]
name = "side"
of = "clinic"
members = { River = ["Harbour", "Old Mill"], Town = ["Hillside", "Market", "Station"] }
[[publish]]
name = "patients"
from = "visits"
groupings = [[], ["side"], ["clinic"], ["clinic", "satisfied"]]
measures = { patients = "COUNT(*)" }
expected = { "*" = 150 }
[[publish]]
name = "waiting"
title = "Average wait by clinic"
sql = "SELECT clinic, AVG(wait_minutes) AS wait FROM visits GROUP BY clinic"
expected = { "*" = 300, wait = 30 }
[[invariants]]
table = "patients"
column = "patients"
value = 2000
reason = "published in the annual report"
"""
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_VERSIONS = re.compile(r'"versions": \{[^}]*\}')
_SIZES = re.compile(r'"bytes": \d+')


@contextmanager
def folder() -> Iterator[Path]:
    """A folder with the bundled table and a plan, in which we are."""
    with TemporaryDirectory() as name, chdir(name):
        shutil.copy(VISITS, "visits.csv")
        Path("plan.toml").write_text(PLAN, "utf-8")
        yield Path(name)


def masked(text: str, where: Path | None = None) -> str:
    """Leave out what the process, its folder and the versions of libraries put into a text."""
    text = _SIZES.sub("<bytes>", _VERSIONS.sub("<versions>", _HASH.sub("<hash>", text)))
    return text if where is None else text.replace(str(where), "<folder>")


def bundle(path: Path) -> Said:
    """Hash each file of a bundle: tables apart from what is told about them."""
    files = {str(file.relative_to(path)): _hash(file) for file in sorted(path.rglob("*")) if file.is_file()}
    tables = {name: found for name, found in files.items() if name.startswith("tables/")}
    return Said(tables, {name: found for name, found in files.items() if name not in tables})


def _hash(file: Path) -> str:
    if file.suffix == ".parquet":
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return hashlib.sha256(masked(file.read_text("utf-8")).encode()).hexdigest()
