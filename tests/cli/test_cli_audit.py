"""`discreet audit`: a right mechanism passes, a wrong one ends with code 3, and reports are written."""

from __future__ import annotations

import json

import pytest

from discreet.cli.command_runner import run

WRONG = [
    "audit",
    "mechanism",
    "discreet.lab.audit.example_mechanisms:half_the_noise",
    "--pairs",
    "discreet.lab.audit.example_mechanisms:pairs",
]


@pytest.mark.statistical
def test_a_refuted_claim_ends_with_code_three_and_names_the_pair(capsys):
    assert run([*WRONG, "--epsilon", "1", "--runs", "4000", "--level", "1e-9"]) == 3
    told = capsys.readouterr().out
    assert "REFUTED" in told
    assert "Worst pair: (" in told


@pytest.mark.statistical
def test_its_true_claim_is_not_refuted(capsys):
    assert run([*WRONG, "--epsilon", "2", "--runs", "400", "--level", "1e-9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["refuted"] is False
    assert found["epsilon_at_least"] <= 2


def test_a_users_own_module_is_found_in_this_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine_to_audit.py").write_text("def tells(data): return len(data)\ndef pairs(): return [((), (1,))]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ["mine_to_audit:tells", "--pairs", "mine_to_audit:pairs"]
    assert run(["audit", "mechanism", *names, "--epsilon", "1", "--runs", "200"]) == 3
    assert "REFUTED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        [*WRONG, "--epsilon", "1", "--relation", "friends"],
        [*WRONG, "--epsilon", "-1"],
        [*WRONG, "--epsilon", "1", "--runs", "3"],
        [*WRONG[:4], "discreet.lab.audit.example_mechanisms:noisy_count", "--epsilon", "1"],
        ["audit", "self", "--size", "huge"],
        ["audit", "self", "--only", "nothing like this"],
        ["audit", "self", "--only", "Laplace", "--out", "report.pdf"],
    ],
    ids=str,
)
def test_nonsense_is_refused_before_anything_runs(wrong, capsys):
    assert run(wrong) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["html", "json", "txt"])
def test_the_report_is_written(suffix, tmp_path, capsys):
    file = tmp_path / f"report.{suffix}"
    assert run(["audit", "self", "--only", "RandomizedResponse", "--out", str(file)]) == 0
    assert "RandomizedResponse" in file.read_text(encoding="utf-8")
    assert "no claim is broken" in capsys.readouterr().out
