"""An agent's side of the protocol, by hand: a process of `discreet mcp`, every byte that it wrote, and its ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cli_folder import environment
from injected_texts import INJECTED

from discreet.ledger import look
from discreet.ledger.budget import EventPrice

CANARY, NUMBER = "CANARY-zq7351", 735190284  # what one person has, and nobody else
CAP = Fraction(1, 2)
POLICY = """\
dataset = "people"
ledger = "people.ledger"

[unit]
column = "row"

[budget]
epsilon = 4
delta = 1e-5
expect = "mixed"

[[quotas]]
principal = "*"
window = "day"
epsilon = 3
delta = 1e-5

[tables.people]
source = "people.parquet"

[tables.people.columns]
said = { kind = "text" }
age = { low = 0, high = 120, whole = true }
"""


def prepare_people(folder: Path, *, rows: int = 300) -> Path:
    """Put down a table in which many people share each injected text, and one person has what nobody else has."""
    said = [text for text in INJECTED for _ in range(rows)] + [CANARY]
    ages = [40] * (len(said) - 1) + [NUMBER]
    names = [f"name {number}" for number in range(len(said) - 1)] + [CANARY]
    pq.write_table(pa.table({"said": said, "age": ages, "name": names}), folder / "people.parquet")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return folder


class Talk:
    """One process of `discreet mcp`, and all that it ever wrote."""

    def __init__(self, folder: Path, *, cap: str = "0.5", delta: str | None = None, agent: str = "assistant") -> None:
        command = [sys.executable, "-m", "discreet", "mcp", "--policy", "policy.toml", "--cap-epsilon", cap]
        command += ["--agent", agent, *(() if delta is None else ("--cap-delta", delta))]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(command, cwd=folder, env=environment(), text=True, **pipes)
        self.number, self.transcript = 0, ""

    def start(self) -> dict[str, Any]:
        """Shake hands, and return what the server says of itself."""
        about = {"name": "red team", "version": "1"}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        told = self.request("initialize", asked)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return told

    def send(self, message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(message if isinstance(message, str) else json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: object) -> dict[str, Any]:
        """Ask, and return the whole response."""
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, f"it ended: {self.end()}"
            self.transcript += line
            told = json.loads(line)
            if told.get("id") == self.number:
                return told

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return the structured content, with `failed`."""
        told = self.request("tools/call", {"name": name, "arguments": arguments})["result"]
        assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
        return told["structuredContent"] | {"failed": told.get("isError", False)}

    def end(self) -> int:
        """Close the input, and return how it ended; what it wrote to either stream is in the transcript."""
        out, err = self.process.communicate(timeout=100)
        self.transcript += out + err
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return self.process.returncode


def spent_by(folder: Path, principal: str | None = "agent:assistant") -> tuple[int, Fraction]:
    """Check the chain, and return how many charges a principal has and the exact sum of their ε; None is everybody."""
    seen = look(folder / "people.ledger")
    charges = [one for one in seen.entries() if one.kind == "charge" and principal in (None, one.content["principal"])]
    prices = [EventPrice.unpacked(one.content["prices"][""]) for one in charges]
    return len(charges), sum((price.epsilon or Fraction(10**9) for price in prices), Fraction(0))
