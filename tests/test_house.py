"""The shape of the source: chapters that can be read, folders that can be searched, one name for one thing."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES, MOST_FILES, MOST_FUNCTION_LINES = 700, 26, 73
# A mechanism and the event that it costs have the name of the literature, and so have an estimator and its functional.
SHARED_NAMES = {"DiscreteGaussian", "Gaussian", "Laplace", "Mean", "Quantile", "RandomizedResponse"}


def classes_in(text: str) -> Iterator[str]:
    """Name the classes of a file; a private one may not have the name of another either."""
    return (node.name.lstrip("_") for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def longest_function(text: str) -> int:
    """Count the lines of code of the longest function: no blank lines, comments and docstrings."""
    rows, tree = text.splitlines(), ast.parse(text)
    left_out = {number for number, row in enumerate(rows, 1) if not row.strip() or row.strip().startswith("#")}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            left_out |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    functions = (node for node in ast.walk(tree) if isinstance(node, documented[2:]))
    return max((len(set(range(f.lineno, (f.end_lineno or 0) + 1)) - left_out) for f in functions), default=0)


def test_no_file_is_longer_than_a_chapter() -> None:
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_folder_has_more_files_than_one_can_look_through() -> None:
    folders = Counter(str(file.parent.relative_to(SOURCE)) for file in FILES)
    assert {name: files for name, files in folders.items() if files > MOST_FILES} == {}


@pytest.mark.long
def test_no_function_is_longer_than_the_longest_was() -> None:
    lengths = {str(file.relative_to(SOURCE)): longest_function(file.read_text(encoding="utf-8")) for file in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_FUNCTION_LINES} == {}


@pytest.mark.long
def test_a_name_of_a_class_means_one_class() -> None:
    homes = defaultdict(list)
    for file in FILES:
        for name in classes_in(file.read_text(encoding="utf-8")):
            homes[name].append(str(file.relative_to(SOURCE)))
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in SHARED_NAMES} == {}
    assert twice.keys() >= SHARED_NAMES, "leave out what is no longer shared"


def checks_beyond_types(text: str) -> list[str]:
    """List assertions that are more than a hint for types: those vanish under `python -O`, and must raise instead."""

    def hints(test: ast.expr) -> bool:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return all(hints(part) for part in test.values)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return isinstance(test.operand, ast.Call) and hints(test.operand)
        named = isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"
        absent = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot | ast.Is) and len(test.ops) == 1
        return named or absent

    asserted = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert))
    return [ast.unparse(node) for node in asserted if not hints(node.test)]


@pytest.mark.long
def test_invariants_raise() -> None:
    found = {str(file.relative_to(SOURCE)): checks_beyond_types(file.read_text(encoding="utf-8")) for file in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_an_invariant_that_is_only_asserted_is_found() -> None:
    assert (
        checks_beyond_types("assert a is not None and isinstance(b, int)\nassert not isinstance(b, int), 'why'") == []
    )
    assert len(checks_beyond_types("assert a > 0\nassert isinstance(a, int) and a\nassert not a")) == 3


@pytest.mark.parametrize("lines", [3, 80])
def test_long_functions_are_measured_without_their_words(lines: int) -> None:
    text = 'def f():\n    """What\n\n    it does."""\n    # Why.\n' + "    x = 1\n" * lines
    assert longest_function(text) == lines + 1
    assert list(classes_in("class A:\n    class B: ...")) == ["A", "B"]
