"""A server and somebody who asks it: start one, give Ana a token, and ask from Python what costs what.

    python examples/ask_a_server.py [folder]

Everything goes into the folder, or into a temporary one. The rows are bundled, and about nobody.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import discreet as dp
from discreet.data.sets import copy

POLICY = """\
dataset = "visits"
ledger = "visits.ledger"

[unit]
column = "patient"
max_groups = 1
max_rows_per_group = 1

[budget]
epsilon = 4

[tables.visits]
source = "visits.csv"

[tables.visits.columns]
age = { low = 0, high = 120, whole = true }
clinic = { categories = ["Harbour", "Hillside", "Market", "Old Mill", "Station"] }
"""


def discreet(folder: Path, *words: str) -> dict[str, object]:
    """Run a command as whoever holds the data does, and return what it says."""
    command = [sys.executable, "-m", "discreet", *words, "--json"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    found: dict[str, object] = json.loads(said)
    return found


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run `discreet serve` on a free port, and return its address."""
    words = ["serve", "--policy", "visits.toml", "--port", "0", "--answer-after", "visits=2", "--json"]
    command = [sys.executable, "-m", "discreet", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            said = "".join(iter(server.stdout.readline, "}\n")) + "}"
            yield str(json.loads(said)["address"])
        finally:
            server.terminate()


def main(folder: Path) -> None:
    """Price a question, try it on made-up rows, release it, and see what is left."""
    copy("visits", folder)
    next(folder.rglob("visits.csv")).replace(folder / "visits.csv")
    (folder / "visits.toml").write_text(POLICY, encoding="utf-8")
    with served(folder) as address:
        discreet(folder, "user", "add", "ana", "--role", "analyst", "--dataset", "visits")
        made = discreet(folder, "token", "new", "ana", "--scope", "read", "--scope", "ask", "--scope", "release")
        with dp.client.connect(address, token=str(made["secret"])) as server:
            data = server.dataset("visits")
            print(data.describe())
            plan = data.sql("SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", epsilon=0.5)
            print("\nprice and expected error", plan.explain(), sep="\n")
            print("\non made-up rows", plan.dummy(), sep="\n")
            print("\nreleased", plan.release(), sep="\n")
            print("\nleft:", data.left)
            try:
                data.sql("SELECT age FROM visits", epsilon=0.1)
            except dp.Refused as refused:
                print("\nwhat is not answered\n", refused, sep="")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
