"""A command parses, calls and shows: nobody has to look for rules in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import discreet.cli.commands as commands

FOLDER = Path(commands.__file__).parents[1]
FILES = sorted(file for name in ("commands", "attack", "serving") for file in (FOLDER / name).glob("*.py"))
SHARED = {"attack_support", "count_attacks", "identity_attacks", "backup_support"}  # What several commands call.
MOST = 15  # Lines, without the words that a command takes and its help.


def lines_of(function: ast.FunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("file", [file for file in FILES if file.stem not in SHARED], ids=lambda file: file.stem)
def test_commands_are_thin_and_import_nothing_heavy(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert {function.name: lines_of(function) for function in functions if lines_of(function) > MOST} == {}
    above = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    allowed = (
        "__future__",
        "collections.abc",
        "dataclasses",
        "importlib.metadata",
        "pathlib",
        "typing",
        "discreet.cli",
    )
    assert [name for name in above if not name.startswith(allowed)] == []


def test_a_long_command_would_be_found() -> None:
    text = "def f():\n    '''Help.'''\n" + "    x = 1\n" * (MOST + 1)
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of(function) == MOST + 1
