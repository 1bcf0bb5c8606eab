"""Whatever is no private question is refused by the reader, before an engine is even loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from reading_worlds import BY_ROW, BY_UNIT

from discreet.errors import Refused
from discreet.query.catalogue import Catalogue
from discreet.query.parse.select import read

LINES = (Path(__file__).parent / "escapes.txt").read_text(encoding="utf-8").splitlines()
STATEMENTS = [line for line in LINES if line and not line.startswith("#")]


def test_there_are_enough_statements() -> None:
    assert len(set(STATEMENTS)) == len(STATEMENTS) >= 120


@pytest.mark.parametrize("catalogue", [BY_UNIT, BY_ROW], ids=["unit", "row"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_escapes_are_refused(statement: str, catalogue: Catalogue) -> None:
    with pytest.raises(Refused) as refusal:
        read(statement, catalogue)
    assert refusal.value.line == 1
    assert refusal.value.reason
    assert refusal.value.way_out


def test_reading_never_loads_an_engine() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from reading_worlds import BY_UNIT; from discreet.query.parse.select import read;"
        "read('SELECT COUNT(*) FROM people', BY_UNIT); print(*sys.modules)"
    )
    here = str(Path(__file__).parent)
    loaded = subprocess.run([sys.executable, "-c", code, here], capture_output=True, check=True, text=True).stdout
    assert not {"duckdb", "pyarrow", "pandas"} & set(loaded.split())


def test_a_control_is_answered() -> None:
    """The refusals above are about the statements, not about the tables."""
    assert read("SELECT COUNT(*) FROM people", BY_UNIT).question.measures
