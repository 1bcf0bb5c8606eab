"""What a custodian does about reads that failed: list them, let one be read again, let somebody ask again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_folder import ASK, Ran

from discreet.query.workers.worker_engine import WorkerEngine

BY_ANA = ("--principal", "ana", "--max-epsilon", "1")
OF = ("--policy", "policy.toml")


def listed(discreet: Callable[..., Ran]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(discreet("ledger", "claims", *OF, "--json").out)["claims"]
    return found


def test_failed_reads_are_listed_released_and_forgiven(
    discreet: Callable[..., Ran], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "has its answer" in discreet("ledger", "claims", *OF).out
    assert not (folder / "clinics.ledger").exists()

    def fails(*given: object, **named: object) -> None:
        raise MemoryError("a secret")

    asks = [(*ASK[:-1], epsilon, *BY_ANA) for epsilon in ("0.1", "0.2", "0.3")]
    with monkeypatch.context() as wrong:
        wrong.setattr(WorkerEngine, "run_all", fails)
        for ask in asks:
            ran = discreet(*ask)
            assert ran.code == 3
            assert "discreet ledger claims" in ran.err
    refused = discreet(*asks[0])
    assert refused.code == 3
    assert "discreet ledger reopen" in refused.err
    assert [one["state"] for one in listed(discreet)] == ["failed"] * 3
    assert "secret" not in discreet("ledger", "claims", *OF).out

    for wrong_call in (("release", "999"), ("reopen", "ben")):
        assert discreet("ledger", *wrong_call, *OF, "--reason", "try").code == 2
    charge = str(listed(discreet)[0]["charge"])
    assert discreet("ledger", "release", charge, *OF, "--reason", " ").code == 2
    assert discreet("ledger", "release", charge, *OF, "--reason", "more memory").code == 0
    assert len(listed(discreet)) == 2
    assert discreet("ledger", "reopen", "ana", *OF, "--reason", "a full disk").code == 0
    assert [one["state"] for one in listed(discreet)] == ["failed, looked at"] * 2
    assert discreet(*asks[0]).code == 0
    assert discreet("ledger", "verify", *OF).code == 0
    told = discreet("ledger", "history", *OF).out
    assert "more memory" in told
    assert "a full disk" in told
