"""Measure the source as a house: how many rooms, how long, how they are named, and through how many a call walks.

    python scripts/house.py            # one table, with the goal beside each figure
    python scripts/house.py --json     # for machines
    python scripts/house.py --walk "SELECT COUNT(*)"   # the files that one call visits, and how many functions in each

Goals are goals, not gates; what is gated is in tests/test_house.py. A file is visited if a function that is defined in
it runs, in any thread of the calling process, during the second of two equal calls.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
TESTS = ROOT / "tests"
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
# What a tool is told is no comment, and neither is the title of a section.
TOLD = ("# type:", "# noqa", "# fmt:", "# pragma", "# ---")
Figures: TypeAlias = dict[str, float | str]
Walk: TypeAlias = dict[str, set[str]]  # functions by file

GOALS: dict[str, float | str] = {
    "files": 420,
    "code lines": 64_000,
    "median lines of a file": "about 200",
    "longest file": 700,
    "files that share their name": 60,
    "lines of imports, %": 7.0,
    "comment lines": "a why beside every clever line",
    "public names": 300,
    "class names with two meanings": 0,
    "longest function": 73,
    "files in the fullest folder": 26,
    "modules without a test in the mirrored place": 0,
    "files visited: SELECT COUNT(*)": 45,
    "files visited: grouped COUNT and AVG": 50,
    "files visited: discreet release": 110,
    "files visited: private.step": 14,
}

# --- the source at rest ---


def at_rest() -> Figures:
    """Measure what can be read off the files."""
    files = [file for file in sorted(SOURCE.rglob("*.py")) if "__pycache__" not in file.parts]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    trees = {file: ast.parse(text) for file, text in texts.items()}
    lengths = [len(text.splitlines()) for text in texts.values()]
    modules = [file for file in files if not file.name.startswith("__")]
    names = Counter(file.name for file in modules)
    return {
        "files": len(files),
        "code lines": sum(len(_code_lines(texts[file], trees[file])) for file in files),
        "median lines of a file": int(statistics.median(lengths)),
        "longest file": max(lengths),
        "files that share their name": sum(count for count in names.values() if count > 1),
        "lines of imports, %": round(100 * sum(map(_import_lines, trees.values())) / sum(lengths), 1),
        "comment lines": sum(map(_comment_lines, texts.values())),
        "public names": sum(_published(trees[file]) for file in files if file.name == "__init__.py"),
        "class names with two meanings": _shared_class_names(trees),
        "longest function": max(_longest_function(texts[file], trees[file]) for file in files),
        "files in the fullest folder": max(Counter(file.parent for file in files).values()),
        "modules without a test in the mirrored place": sum(not _mirrored(file) for file in modules),
    }


def _code_lines(text: str, tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that are code: no blank lines, comments and docstrings."""
    rows = text.splitlines()
    code = {number for number, row in enumerate(rows, 1) if row.strip() and not row.strip().startswith("#")}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *DEFINED)) and ast.get_docstring(node) is not None:
            code -= set(_lines_of(node.body[0]))
    return code


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _import_lines(tree: ast.AST) -> int:
    return sum(
        len(_lines_of(node))
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.Assign) and _is_all(node))
    )


def _is_all(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)


def _comment_lines(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and not token.string.startswith(TOLD) for token in tokens)


def _published(tree: ast.Module) -> int:
    found = [node.value for node in tree.body if isinstance(node, ast.Assign) and _is_all(node)]
    return sum(len(value.elts) for value in found if isinstance(value, (ast.List, ast.Tuple)))


def _shared_class_names(trees: dict[Path, ast.Module]) -> int:
    homes = defaultdict(set)
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name.lstrip("_")].add(file)
    return sum(len(files) > 1 for files in homes.values())


def _longest_function(text: str, tree: ast.AST) -> int:
    code = _code_lines(text, tree)
    return max((len(code & set(_lines_of(node))) for node in ast.walk(tree) if isinstance(node, DEFINED)), default=0)


def _mirrored(file: Path) -> bool:
    place = file.relative_to(SOURCE)
    return (TESTS / place.parent / f"test_{place.name}").exists()


# --- the walk of one call ---


def visited(call: Callable[[], object]) -> Walk:
    """Return what runs of the package during a call, in every thread of this process."""
    seen: Walk = defaultdict(set)
    prefix = str(SOURCE) + os.sep

    def look(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(prefix) and code.co_name != "<module>":
            seen[code.co_filename.removeprefix(prefix)].add(getattr(code, "co_qualname", code.co_name))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return dict(seen)


def _query(text: str) -> Iterator[Callable[[], object]]:
    import pyarrow as pa

    import discreet as dp

    table = pa.table({"who": [1, 2, 3] * 10, "city": [1] * 30, "pay": [5] * 30})
    with dp.Session(
        {"t": table},
        unit=dp.Unit("who"),
        budget=dp.Budget(epsilon=10**6),
        columns={"city": dp.between(0, 4), "pay": dp.between(0, 9)},
        ledger="memory",
        dataset="t",
        principal="me",
    ) as session:
        # A key each time: an answer that is on record would be shown again.
        for key in ("first", "second"):
            yield lambda key=key: session.sql(text, epsilon=1, idempotency_key=key).release()


def _release() -> Iterator[Callable[[], object]]:
    from discreet.cli import main

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["DISCREET_LEDGER"] = str(Path(folder) / "ledger.sqlite")

        def said(*words: str) -> None:
            sys.argv = ["discreet", *words]
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as errors:
                try:
                    code = main()
                except SystemExit as ended:
                    code = ended.code
            if code:
                raise RuntimeError(errors.getvalue())

        said("data", "copy", "hospital", ".")
        yield lambda: said("plan", "price", "plan.toml")
        yield lambda: said("release", "plan.toml", "--max-epsilon", "1000")
        os.chdir(ROOT)


def _step() -> Iterator[Callable[[], object]]:
    import torch
    from torch import nn

    import discreet as dp

    x, y = torch.randn(512, 4), torch.randint(0, 2, (512,))
    model, loss = nn.Linear(4, 2), nn.CrossEntropyLoss(reduction="none")
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    private = dp.make_private(
        model, optimiser, (x, y), loss=loss, epsilon=3, delta=1e-5, public_rows=512, batch_size=64, epochs=1
    )
    for rows, labels in private.batches():
        losses = loss(private.model(rows), labels)
        yield lambda losses=losses: private.step(losses)


CALLS: dict[str, Callable[[], Iterator[Callable[[], object]]]] = {
    "SELECT COUNT(*)": lambda: _query("SELECT COUNT(*) FROM t"),
    "grouped COUNT and AVG": lambda: _query("SELECT city, COUNT(*), AVG(pay) FROM t GROUP BY city"),
    "discreet release": _release,
    "private.step": _step,
}


def walk(name: str) -> Walk:
    """Make a call once, and look at it the second time."""
    calls = CALLS[name]()
    next(calls)()
    return visited(next(calls))


def _walked(name: str) -> Walk:
    """Walk in a fresh process: what one call has loaded must not serve another."""
    command = [sys.executable, __file__, "--walk", name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return {file: set(functions) for file, functions in json.loads(done.stdout).items()}


# --- what is printed ---


def main() -> None:
    """Print the table, or one walk."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--walk", choices=list(CALLS))
    asked = parser.parse_args()
    if asked.walk:
        _print_walk(walk(asked.walk), as_json=asked.json)
        return
    figures = at_rest() | {f"files visited: {name}": len(_walked(name)) for name in CALLS}
    if asked.json:
        print(json.dumps(figures, indent=1))
        return
    for name, figure in figures.items():
        goal = GOALS[name]
        missed = not isinstance(goal, str) and float(figure) > goal
        bound = goal if isinstance(goal, str) else f"at most {goal:,}"
        print(f"{name:46} {figure:>10,}   {bound}{'   ✗' if missed else ''}")


def _print_walk(found: Walk, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({file: sorted(functions) for file, functions in found.items()}))
        return
    for file, functions in sorted(found.items()):
        print(f"{file:52} {len(functions):4}   {', '.join(sorted(functions))[:80]}")
    print(f"{len(found)} files")


if __name__ == "__main__":
    main()
