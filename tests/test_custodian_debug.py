"""What fails after a charge is shown to whoever started the process with the switch, and to nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet import custodian_debug
from discreet.custodian_debug import ConstantFailure
from discreet.noise.source import Keystream
from discreet.synth import Category

CANARY = "canary-9c1e"


class Broken(Sequence[Any]):
    """A column that cannot be read, and whose error quotes a value."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: Any) -> Any:
        raise RuntimeError(CANARY)


def failed_fit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = {"kind": Category(["a", "b"])}
    dp.synthesize({"kind": Broken()}, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)


def failed_question(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source of randomness fails, and its error quotes a value."""

    def read(source: Keystream, count: int) -> bytes:
        raise RuntimeError(CANARY)

    public: dict[str, Any] = {"unit": dp.Unit("who"), "budget": dp.Budget(epsilon=10), "dataset": "d", "principal": "p"}
    with dp.Session({"t": pa.table({"who": ["a", "b"]})}, ledger=folder / "l.db", **public) as session:
        monkeypatch.setattr(Keystream, "read", read)
        session.sql("SELECT COUNT(*) FROM t", epsilon=1).release()


@pytest.mark.parametrize("fails", [failed_fit, failed_question])
@pytest.mark.parametrize("is_on", [False, True])
def test_a_failure_is_shown_on_standard_error_only_and_only_with_the_switch(
    fails: Callable[[Path, pytest.MonkeyPatch], None],
    is_on: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(custodian_debug, "_IS_ON", is_on)
    with pytest.raises(dp.AnswerFailed) as failure:
        fails(tmp_path, monkeypatch)
    assert CANARY not in str(failure.value)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    shown = capsys.readouterr()
    assert shown.out == ""
    assert not caplog.records
    assert ("MAY SHOW PRIVATE VALUES" in shown.err) is is_on
    assert (CANARY in shown.err) is is_on


@pytest.mark.parametrize(("value", "is_on"), [("1", True), ("", False), ("0", False), (None, False)])
def test_the_switch_is_read_once_when_the_process_starts(value: str | None, is_on: bool) -> None:
    code = (
        "import os\n"
        "from contextlib import suppress\n"
        "from discreet.errors import AnswerFailed\n"
        "from discreet.custodian_debug import ConstantFailure\n"
        "os.environ['DISCREET_CUSTODIAN_DEBUG'] = '0' if os.environ.get('DISCREET_CUSTODIAN_DEBUG') == '1' else '1'\n"
        f"with suppress(AnswerFailed), ConstantFailure(): raise ValueError('{CANARY}')\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "DISCREET_CUSTODIAN_DEBUG"}
    environment |= {} if value is None else {"DISCREET_CUSTODIAN_DEBUG": value}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (CANARY in ran.stderr) is is_on
    assert ran.stdout == ""


def test_what_cannot_be_shown_stays_hidden_and_what_ends_a_process_is_not_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(custodian_debug, "_IS_ON", True)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(dp.AnswerFailed), ConstantFailure():
        raise ValueError(CANARY)
    with pytest.raises(KeyboardInterrupt), ConstantFailure():
        raise KeyboardInterrupt
