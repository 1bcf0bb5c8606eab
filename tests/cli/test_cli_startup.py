"""Help and version start fast, because they load nothing heavy; and colours go where they are wanted."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_folder import environment, on_terminal, process

HEAVY = {"numpy", "scipy", "duckdb", "sqlglot", "altair", "pyarrow", "flint", "cryptography", "sqlite3"}


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["query", "--help"], ["release", "--help"]])
def test_help_and_version_load_nothing_heavy(arguments):
    code = (
        "import sys, time; from discreet.cli.command_runner import run; code = run(sys.argv[1:]); "
        "print('\\n', *sys.modules); print(code, time.process_time())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment(), capture_output=True, text=True, check=True
    )
    *_, modules, last = done.stdout.splitlines()
    assert last.startswith("0 ")
    assert not HEAVY & {name.partition(".")[0] for name in modules.split()}
    print(f"{' '.join(arguments)}: {1000 * float(last.split()[1]):.0f} ms of CPU")  # Machines differ: never a gate.


@pytest.mark.long
def test_nothing_is_coloured_without_a_terminal_or_with_no_color(folder):
    listing = ("data", "list")
    assert "\x1b" not in process(*listing, folder=folder).out
    assert "\x1b[" not in on_terminal(*listing, folder=folder, NO_COLOR="1").out
    assert "\x1b[1m" in on_terminal(*listing, folder=folder).out  # The head of the table is bold.
    assert "\x1b[3" not in on_terminal("--help", folder=folder, NO_COLOR="1").out  # Bold may be; colours may not.


@pytest.mark.long
def test_a_terminal_without_greek_letters_is_no_failure(folder):
    ran = process("budget", "--policy", "policy.toml", folder=folder, PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert "? = 4" in ran.out
