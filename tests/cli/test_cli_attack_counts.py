"""Attacks on counts, as typed: on a table, privately, with a picture; and what cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.cli.command_runner import run

ROWS = "sex,town\n" + "\n".join(f"{'fm'[i % 2]},{'abc'[i % 3]}" for i in range(40)) + "\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)


def answered(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> dict[str, object]:
    capfd.readouterr()
    assert run([*arguments, "--json"]) == 0
    return dict(json.loads(capfd.readouterr().out))


def test_a_table_is_traced_by_the_values_of_its_columns(table, capfd):
    found = answered(["attack", "tracing", "rows.csv", "--columns", "sex,town", "--trials", "9"], capfd)
    assert (found["people"], found["attributes"]) == (20, 4)
    assert str(found["text"]).startswith("NOT PRIVATE")


@pytest.mark.long
def test_rows_of_a_private_block_have_a_ceiling_and_a_picture(table, capfd):
    asked = ["attack", "reconstruction", "rows.csv", "--columns", "sex,town", "--where", "town = 'a'", "--trials", "5"]
    found = answered([*asked, "--epsilon", "1", "--plot", "rows.svg"], capfd)
    assert found["people"] == 14
    assert found["certain"] is None
    assert 0 < found["ceiling"] <= 1
    assert Path("rows.svg").read_text().startswith("<svg")
    assert answered(asked, capfd)["ceiling"] is None


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_counts_are_averaged_too(noise, capfd):
    found = answered(["attack", "averaging", "--noise", noise, "--epsilon", "1", "--times", "1,50"], capfd)
    first, last = found["chances"]
    assert first == found["remembered"] < last


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tracing", "--score", "guess"], "inner-product"),
        (["tracing", "rows.csv"], "which columns"),
        (["tracing", "https://example.org/rows.csv", "--columns", "sex"], "no table on another machine"),
        (["subset-counts", "--noise", "1", "--epsilon", "1"], "either --noise or --epsilon"),
        (["averaging", "--epsilon", "1", "--times", "1.5"], "whole numbers"),
        (["averaging", "--epsilon", "1", "--noise", "uniform"], "randomized-response"),
        (["reconstruction", "rows.csv", "--columns", "sex", "--where", "town = 'z'", "--ways", "1"], "from one to"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, words, table, capfd):
    assert run(["attack", *arguments]) != 0
    assert words in capfd.readouterr().err
