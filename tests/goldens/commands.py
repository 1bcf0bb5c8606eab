"""The command line: what each command writes, for people and as JSON, in a folder with the bundled data."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from .canonical import wordless
from .flow import Flow, Said
from .folders import folder, masked

__all__ = ["flows"]

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
_FREE = """
data list
data copy visits copied
init visits.csv --unit patient --epsilon 1 --out first.toml --yes
plan check plan.toml
plan price plan.toml
plan dummy plan.toml
plan schema
explain "SELECT AVG(age) AS age FROM visits" --epsilon 0.1 --policy plan.toml
account compose "gaussian:sigma=20 x 10, laplace:scale=30" --delta 1e-6
account compose "gaussian:sigma=1 @ 0.01 x 100" --delta 1e-6
account convert --rho 0.1 --delta 1e-6
account calibrate --epsilon 2 --delta 1e-6 --steps 100 --sampling-rate 0.01
explain-epsilon 1.0 --delta 1e-6
explain-epsilon --rho 0.1 --delta 1e-6
"""
_PAID = """
release plan.toml --max-epsilon 1
bundle verify published/visits-once --ledger visits.ledger
bundle verify published/visits-once
plan status plan.toml
query "SELECT AVG(age) AS age FROM visits" --epsilon 0.1 --policy plan.toml --max-epsilon 0.1
query "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic" --epsilon 0.1 --policy plan.toml --max-epsilon 0.1
query "SELECT satisfied, COUNT(*) AS n FROM visits GROUP BY satisfied" --rho 0.01 --policy plan.toml --max-epsilon 2
profile copied/visits.csv --unit patient --epsilon 1 --delta 1e-6 --lifetime-epsilon 1 --max-epsilon 1
budget --policy plan.toml
ledger verify --policy plan.toml
ledger history --policy plan.toml
ledger claims --policy plan.toml
ledger export record.jsonl --policy plan.toml
"""
_SYNTH = """
synth domain plan.toml --out domain.toml
synth fit plan.toml --domain domain.toml --method mst --epsilon 1 --delta 1e-6 --max-epsilon 1 --out m.safetensors
synth sample m.safetensors --rows 50 --out made.csv
"""
_ATTACKS = """
attack uniqueness visits.csv --columns age,clinic,wait_minutes --person patient
attack singling-out visits.csv --fact age=45 --fact clinic=Market --person patient
attack averaging --noise randomized-response --epsilon 1 --times 1,10,30
attack tracing --people 30 --attributes 200 --epsilon 1
attack subset-counts --people 60 --queries 300 --noise 4
attack floating-point discreet.lab.attacks.textbook_noise:laplace --epsilon 1 --law laplace --samples 3000
audit mechanism discreet.lab.audit.example_mechanisms:noisy_count --pairs discreet.lab.audit.example_mechanisms:pairs \
    --epsilon 1 --runs 1000
"""
_WRONG = """
query "SELECT age FROM visits" --epsilon 0.1 --policy plan.toml --max-epsilon 0.1
query "SELECT COUNT(*) AS n FROM visits" --epsilon 50 --policy plan.toml --max-epsilon 50
query "SELECT COUNT(*) AS n FROM visits" --epsilon 1 --policy plan.toml --max-epsilon 0.1
query "SELECT COUNT(*) AS n FROM visits" --epsilon 1 --policy none.toml --max-epsilon 1
plan price none.toml
account compose nonsense --delta 1e-6
bundle verify nowhere
frobnicate
release plan.toml
explain-epsilon -1
"""
_LAST = """
budget raise --policy plan.toml --epsilon 9 --reason "one more year"
budget --policy plan.toml
query "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1 --policy plan.toml --max-epsilon 0.1
"""
_HELPS = """
|plan|plan price|release|query|explain|budget|budget raise|ledger|ledger history|ledger export
account|account compose|synth|synth fit|attack|attack linkage|attack uniqueness|audit|audit self
bundle|bundle verify|key|profile|init|shell|demo|doctor|data
"""
_TIMES = re.compile(r"\b\d+(\.\d+)? (seconds|s)\b|\"seconds\": [\d.]+")


def flows() -> Iterator[Flow]:
    """Each command for people, and as JSON in a folder of its own: what is paid once is free afterwards."""
    for more in ("", "--json"):
        with folder() as where:
            for line in _lines(_FREE + _PAID + _SYNTH + _ATTACKS + _WRONG):
                yield _flow(f"{line} {more}".strip(), where, as_json=bool(more))
            for line in _lines(_LAST):
                yield _flow(f"at last: {line} {more}".strip(), where, as_json=bool(more))
    with folder() as where:
        for name in _HELPS.strip().replace("\n", "|").split("|"):
            yield _flow(f"{name} --help".strip(), where, as_json=False)
        yield Flow(
            "shell", lambda: _said("shell --policy plan.toml --epsilon 0.1 --max-epsilon 1", where, False, _TYPED)
        )


_TYPED = "SELECT COUNT(*) AS n FROM visits;\n\\budget\n\\tables\n\\explain SELECT AVG(age) AS a FROM visits;\n\\quit\n"


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line)


def _flow(line: str, where: Path, *, as_json: bool) -> Flow:
    return Flow(line, lambda: _said(line, where, as_json), rounded=True)


def _said(line: str, where: Path, as_json: bool, typed: str = "") -> Said:
    """Run a command; what JSON holds besides sentences belongs to the numbers."""
    code, out, err = _ran(shlex.split(line.removeprefix("at last: ")), typed)
    out, err = (_TIMES.sub("<time>", masked(text, where)) for text in (out, err))
    return Said([code, wordless(out) if as_json else ""], [out, err])


def _ran(words: list[str], typed: str) -> tuple[Any, str, str]:
    out, err = io.StringIO(), io.StringIO()
    known = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    known |= {"COLUMNS": "100", "DISCREET_PRINCIPAL": "ana", "NO_COLOR": "1"}
    with (
        patch.dict(os.environ, known, clear=True),
        patch.object(sys, "argv", ["discreet", *words]),
        patch.object(sys, "stdin", io.StringIO(typed)),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            code = _main()()
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()


def _main() -> Callable[[], Any]:
    """Find where the program begins, as installers do."""
    module, name = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["scripts"]["discreet"].split(":")
    return getattr(import_module(module), name)
