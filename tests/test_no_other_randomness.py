"""All randomness comes through one door, which the kernel keys: nothing else is random and nothing takes a seed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
DOOR = SOURCE / "noise" / "source.py"

MODULES = {"random", "secrets", "uuid", "numpy.random", "torch.random", "torch.distributions", "scipy.stats.sampling"}
NAMES = {"urandom", "getrandom", "rvs", "default_rng", "RandomState", "SystemRandom", "manual_seed", "RAND_bytes"}
ON_MODULES = {
    "np.random",
    "numpy.random",
    "torch.rand",
    "torch.randn",
    "torch.randint",
    "torch.normal",
    "torch.randperm",
}
SEEDS = {"seed", "random_state", "random_seed", "rng", "entropy"}
# Foreign generators are given keys there, and nothing is drawn from them.
KEYS = SOURCE / "learn" / "secret_chance.py"
# A UUID of a table is recognised there by its type, and none is made.
CELLS = SOURCE / "frames" / "cells.py"
ALLOWED = {(DOOR, "urandom"), (KEYS, "random"), (KEYS, "np.random"), (CELLS, "uuid")}


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def parameters(node: ast.AST) -> list[str]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return []
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument.arg for argument in named if argument]


def found(text: str) -> Iterator[str]:
    """List what is random in a piece of code, or asks for a seed."""
    for node in ast.walk(ast.parse(text)):
        yield from (module for module in imported(node) if module in MODULES or module.split(".")[-1] in NAMES)
        yield from (parameter for parameter in parameters(node) if parameter in SEEDS)
        if isinstance(node, ast.Attribute):
            yield from ([node.attr] if node.attr in NAMES or dotted(node) in ON_MODULES else [])
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in SEEDS:
            yield node.target.id  # A field of a dataclass is a parameter of its constructor.
        if isinstance(node, ast.Call) and dotted(node.func) in {"__import__", "importlib.import_module"}:
            yield from (part.value for part in node.args if isinstance(part, ast.Constant) and part.value in MODULES)


@pytest.mark.long
def test_no_file_but_the_door_is_random() -> None:
    names = [(path.relative_to(SOURCE).as_posix(), name) for path in FILES for name in found(path.read_text())]
    assert [(path, name) for path, name in names if (SOURCE / path, name) not in ALLOWED] == []


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import gauss",
        "import numpy.random as r",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nx = np.random.normal()",
        "from secrets import token_bytes",
        "import os\nkey = os.urandom(32)",
        "from os import urandom",
        "import os\nkey = os.getrandom(32)",
        "import torch\nz = torch.randn(3)",
        "import torch\ntorch.manual_seed(0)",
        "from scipy import stats\nz = stats.norm.rvs(3)",
        "import importlib\nr = importlib.import_module('random')",
        "def f(x, *, seed=None): ...",
        "def f(x, random_state): ...",
        "class A:\n    rng: object = None",
        "async def f(*, rng): ...",
    ],
)
def test_the_scan_finds_what_is_planted(planted: str) -> None:
    assert list(found(planted))


def test_the_door_asks_the_kernel_in_one_place_only() -> None:
    functions = [node for node in ast.walk(ast.parse(DOOR.read_text())) if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions if "urandom" in ast.unparse(function)] == ["_new_stream"]


# Draws with everything that is random, once with the kernel's bytes replaced by a counter's. If anything else were
# random, or hashed, or timed, two runs would differ.
SCRIPT = """
import hashlib, os, sys
calls = []
def fixed(count):
    calls.append(count)
    return hashlib.shake_256(f"{sys.argv[1]}/{len(calls)}".encode()).digest(count)
os.urandom = fixed
import numpy as np
from discreet import noise
before = len(calls)
scores = np.arange(100) % 7
drawn = [
    noise.discrete_laplace("5/3"), noise.discrete_laplace(1000, 5000).tolist(),
    noise.geometric(3, 10).tolist(), noise.rounded_laplace(7, 3000).tolist(),
    noise.discrete_gaussian(4, 5000).tolist(), noise.rounded_gaussian(5000, 3000).tolist(), noise.rounded_gaussian(3),
    noise.bernoulli("1/3", 50).tolist(), noise.bernoulli_exp("1/3", 50).tolist(), noise.uniform(10**6, 20).tolist(),
    noise.permutation(100).tolist(), noise.categorical(scores, factor=1), noise.categorical([1, "1/2"], factor=1),
    noise.permute_and_flip(scores, factor=1), noise.permute_and_flip([1, "1/2"], factor=1),
]
print(calls[before:], hashlib.sha256(repr(drawn).encode()).hexdigest())
"""


def run(label: str) -> str:
    command = [sys.executable, "-c", SCRIPT, label]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def test_two_processes_that_the_kernel_gives_the_same_key_draw_the_same() -> None:
    first, again, other = run("a"), run("a"), run("b")
    assert first == again
    assert first != other
    assert first.startswith("[32, 16] ")  # One key and one counter for all of it, and nothing else was asked for.
