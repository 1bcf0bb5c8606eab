"""Files of models promise no more than they can say, and the exact page is for its owner alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import discreet as dp
from discreet.cli.command_runner import run
from discreet.cli.exits import Code
from discreet.cli.synth_support import evaluated

DOMAIN = {"a": dp.synth.Category(["x", "y"]), "b": dp.synth.Category(["1", "2"])}
TABLE = {"a": ["x", "y"] * 20, "b": [1, 2, 2, 1] * 10}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model = dp.synthesize(TABLE, "independent", domain=DOMAIN, epsilon=1, delta=1e-6, progress=False)
    model.save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize(
    "claim",
    [{"unit": ["row"]}, {"unit": ""}, {"unit": {}}, {"rows_per_unit": 5}, {"epsilon": True}, {"epsilon": 10**400}],
)
def test_a_promise_to_nobody_in_particular_is_refused(saved: Path, claim: dict[str, Any]) -> None:
    with safe_open(str(saved), framework="np") as opened:
        head = json.loads((opened.metadata() or {})["discreet"])
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dictionary
    head["promise"] |= claim
    save_file(arrays, str(saved), {"discreet": json.dumps(head)})
    with pytest.raises(dp.Refused, match=r"claims more|whom it protects"):
        dp.synth.load(saved)


@pytest.fixture
def beside(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model, with its table as t.csv in the working folder."""
    monkeypatch.chdir(saved.parent)
    monkeypatch.setattr(
        "discreet.lab.evaluation.evaluation_page.page", lambda found: found.heading
    )  # Pictures take seconds.
    rows = zip(TABLE["a"], TABLE["b"], strict=True)
    Path("t.csv").write_text("\n".join(["a,b", *(f"{a},{b}" for a, b in rows)]), encoding="utf-8")
    return saved


def test_the_exact_page_is_for_its_owner_alone(beside: Path) -> None:
    evaluated(beside, Path("t.csv"), None, holdout=None, refits=0, out=None)
    page = Path("evaluation-not-private.html")
    assert "NOT PRIVATE" in page.read_text(encoding="utf-8")
    assert page.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "refitted"), [([], [True]), (["--holdout", "t.csv"], [False]), (["--refits", "0"], [])]
)
def test_membership_attacks_run_unless_they_are_left_out(
    beside: Path, capfd: pytest.CaptureFixture[str], options: list[str], refitted: list[bool]
) -> None:
    assert run(["synth", "evaluate", str(beside), "t.csv", "--json", *options]) == Code.OK
    found = json.loads(capfd.readouterr().out)
    assert [one["refitted"] for one in found["evaluation"]["attacks"]["membership"]] == refitted
    assert ("--refits 4" in found["text"]) is (refitted == [])  # What was left out names what runs it.


def test_attacks_that_would_not_be_run_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for attack in (["--holdout", "t.csv"], ["--refits", "4"]):
        assert run(["synth", "evaluate", "m.safetensors", "t.csv", "--public", *attack]) == Code.USAGE
        assert "--public" in capfd.readouterr().err
