"""docs/design.md is true: its picture, its tables of parts and files, and the walk of one query."""

from __future__ import annotations

import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pyarrow as pa
import pytest
from test_imports_point_down import FLOORS

import discreet as dp
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "discreet"
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
# What a worker does, between the two visits of the ledger, is walked here in this process.
WORKER, IN_WORKER = "query/workers/serving.py", ("query/engines/", "query/bounding/")
TABLE = pa.table({"who": [1, 2, 3] * 10})


def rows(text: str) -> Iterator[list[str]]:
    """The cells of the rows of tables."""
    return ([cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line.startswith("|"))


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_picture_of_the_floors_is_drawn_from_the_test_that_keeps_them():
    """If this fails, `python docs/make_floors.py` draws it again."""
    floors = script("make_floors")
    assert floors.PICTURE.read_text(encoding="utf-8") == floors.drawing()
    assert set(floors.GLOSSES) == {part for parts in floors.floors().values() for part in parts}


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_part_stands_on_its_floor():
    listed = [(part, row) for row in list(rows(section("Parts and floors")))[2:] for part in names(row[1])]
    assert {part: int(row[0]) for part, row in listed} == FLOORS
    assert [row[3] for _, row in listed if not (SOURCE / names(row[3])[0]).exists()] == []


@pytest.mark.parametrize("table", re.findall(r"^\| in `.*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL))
def test_every_file_that_a_table_names_is_there(table):
    (head, _, *body), folder = rows(table), ""
    folder = names(head[0])[0]
    missing = []
    for place, files, _ in body:
        folder = names(place)[0] if names(place) else folder
        missing += [f"{folder}/{name}.py" for name in names(files) if not (SOURCE / folder / f"{name}.py").exists()]
    assert missing == []


def steps() -> list[tuple[str, str]]:
    """The files and functions of the walk, in order: a file, its functions, and perhaps a remark."""
    lines = section("The walk of one query").split("```")[1].splitlines()[1:]
    listed = [re.split(r" {2,}", line) for line in lines if not line.startswith("#")]
    return [(file, function) for file, functions, *_ in listed for function in functions.split(", ")]


def calls(work: Callable[[], Any]) -> list[tuple[str, str]]:
    """The functions of the package that are called, in order."""
    seen: list[tuple[str, str]] = []
    prefix = f"{SOURCE}/"

    def look(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix):
            seen.append((code.co_filename.removeprefix(prefix), code.co_qualname))

    threading.setprofile(look)  # Rows are sorted in threads.
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return seen


def missed(listed: list[tuple[str, str]], called: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is listed and not called, or not after what is listed before it."""
    lost, place = [], 0
    for step in listed:
        if step in called[place:]:
            place += called[place:].index(step)
        else:
            lost.append(step)
    return lost


def least_missed(listed: list[tuple[str, str]], work: Callable[[int], object]) -> list[tuple[str, str]]:
    """What is missed in every one of five walks: calls of two threads may be seen in another order now and then."""
    return min((missed(listed, calls(lambda number=number: work(number))) for number in range(5)), key=len)


def test_the_walk_of_one_query_is_the_one_that_is_walked():
    with dp.Session(
        {"t": TABLE},
        unit=dp.Unit("who"),
        budget=dp.Budget(epsilon=100),
        ledger="memory",
        dataset="t",
        principal="me",
    ) as session:

        def asked(key: str) -> Any:
            return session.sql("SELECT COUNT(*) FROM t", epsilon=1, idempotency_key=key)

        asked("warm").release()
        ours = [step for step in steps() if step[0] != WORKER and not step[0].startswith(IN_WORKER)]
        assert least_missed(ours, lambda number: asked(f"walked {number}").release()) == []
        engine, stage = DuckDBEngine({"t": TABLE}), asked("stage")._asked.priced.stage
        theirs = [step for step in steps() if step[0].startswith(IN_WORKER)]
        assert least_missed(theirs, lambda _: engine.run(stage, deadline=Deadline.after(60))) == []
        engine.close()
    (served,) = [function for file, function in steps() if file == WORKER]
    owner, method = served.split(".")
    assert re.search(
        rf"class {owner}\b.*?\n    def {method}\b", (SOURCE / WORKER).read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(steps()) > 30


def test_a_walk_in_another_order_is_found():
    called = [("a.py", "f"), ("b.py", "g"), ("a.py", "f")]
    assert missed([("a.py", "f"), ("b.py", "g")], called) == []
    assert missed([("b.py", "g"), ("a.py", "f")], called) == []
    assert missed([("a.py", "f"), ("a.py", "f"), ("b.py", "g"), ("c.py", "h")], called) == [("c.py", "h")]
    assert missed([("b.py", "g"), ("b.py", "h")], called) == [("b.py", "h")]
