"""Imports point down: a floor knows only the floors below it and its own folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
FLOORS = {
    "errors": 0,
    "custodian_debug": 0,
    "exact": 0,
    "formatting": 0,
    "names": 0,
    "stored_names": 0,
    "data": 1,
    "file_locks": 1,
    "http_client": 1,
    "seccomp_rules": 1,
    "schema": 1,
    "frames": 1,
    "pages": 1,
    "balls": 1,
    "noise": 2,
    "plots": 2,
    "privacy": 3,
    "mechanisms": 4,
    "adaptive": 5,
    "ledger": 5,
    "robust": 6,
    "statistics": 7,
    "query": 8,
    "learn": 8,
    "synth": 9,
    "release": 10,
    "server_answers": 10,
    "lab": 11,
    "remote_releases": 11,
    "client": 12,
    "server": 12,
    "cli": 13,
}
# Rooms of the laboratory: no floor below it needs one of them.
LAB = {"verify": 0, "attacks": 1, "audit": 1, "demo": 2, "evaluation": 2}
# At the bottom, what refuses or fails does so with an error.
SAME_FLOOR = {("exact", "errors"), ("custodian_debug", "errors"), ("names", "errors")}


def part_of(path: Path) -> str:
    """Return the folder or file right below the package to which a source file belongs."""
    part = path.relative_to(SOURCE).with_suffix("").parts[0]
    return "cli" if part == "__main__" else part  # `python -m discreet` is a door of the command line.


def modules(tree: ast.AST) -> Iterator[str]:
    """Find every module of the package that is imported anywhere in a file, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            whole = node.module in ("discreet", "discreet.lab")
            names = [f"{node.module}.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "discreet":
                assert rest, "the package root is not imported inside the package"
                yield rest


def imported(tree: ast.AST) -> Iterator[str]:
    """Find every part of the package that is imported."""
    return (name.partition(".")[0] for name in modules(tree))


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.long
def test_imports_point_down() -> None:
    assert {part_of(path) for path in FILES} <= set(FLOORS), "give these folders a floor"
    wrong = []
    for path in FILES:
        here = part_of(path)
        for there in imported(ast.parse(path.read_text(encoding="utf-8"))):
            below = FLOORS[there] < FLOORS[here] or there == here or (here, there) in SAME_FLOOR
            wrong += [] if below else [f"{path.relative_to(SOURCE)} must not import {there}"]
    assert wrong == []


def test_rooms_of_the_laboratory_point_down() -> None:
    files = [path for path in FILES if part_of(path) == "lab" and path.parent != SOURCE / "lab"]
    assert {path.relative_to(SOURCE).parts[1] for path in files} == set(LAB)
    wrong = []
    for path in files:
        here = path.relative_to(SOURCE).parts[1]
        for name in modules(ast.parse(path.read_text(encoding="utf-8"))):
            part, _, rest = name.partition(".")
            there = rest.partition(".")[0]
            if part == "lab" and there != here and LAB[there] >= LAB[here]:
                wrong.append(f"{path.relative_to(SOURCE)} must not import {name}")
    assert wrong == []


def test_the_walk_sees_imports_of_every_form() -> None:
    """The wrong neighbours: each of these lines would be found."""
    for line, part in (
        ("import discreet.query", "query"),
        ("from discreet import query", "query"),
        ("from discreet.lab import verify", "lab"),
        ("from discreet.query.plan import Plan", "query"),
        ("def f():\n    from discreet.server import app", "server"),
        ("if TYPE_CHECKING:\n    import discreet.cli as c", "cli"),
    ):
        assert list(imported(ast.parse(line))) == [part]
    for line in ("from . import x", "import discreet"):
        with pytest.raises(AssertionError):
            list(imported(ast.parse(line)))
