"""How the words of attacks on identity are read, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from cli_folder import Ran

from discreet.cli.attack.identity_attacks import calculations, numbers, pairs
from discreet.errors import InvalidParameter

Discreet = Callable[..., Ran]


def test_words_are_read_one_by_one_or_with_commas() -> None:
    assert calculations(["a,b", "c"], None) == ["a", "b", "c"]
    assert calculations(None, None) is None
    assert calculations(["a b"], ["year=year(born)"]) == {"a b": '"a b"', "year": "year(born)"}
    assert numbers("2, 4,8", "--known") == [2, 4, 8]
    assert pairs(["day=2020-01-01", "note=a=b"], "--fact") == {"day": "2020-01-01", "note": "a=b"}


@pytest.mark.parametrize("wrong", [["zip"], ["=1"], ["zip=1", "zip=2"]])
def test_facts_of_nonsense_are_refused(wrong: list[str]) -> None:
    with pytest.raises(InvalidParameter, match="--fact"):
        pairs(wrong, "--fact")


@pytest.mark.parametrize("wrong", ["", "two", "-1", "1.5"])
def test_numbers_of_nonsense_are_refused(wrong: str) -> None:
    with pytest.raises(InvalidParameter, match="--days"):
        numbers(wrong, "--days")


def test_columns_are_calculated_and_the_picture_is_drawn(discreet: Discreet, tmp_path) -> None:
    told = discreet(
        "attack", "uniqueness", "visits.csv", "--columns", "clinic", "--as", "decade=left(age, 1)", "--plot", "u.json",
        "--json",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert told.json["columns"] == ["clinic", "decade"]
    assert "NOT PRIVATE" in told.json["text"]
    assert json.loads((tmp_path / "u.json").read_text())["layer"]


def test_a_network_is_refused_and_nothing_is_repeated(discreet: Discreet) -> None:
    told = discreet("attack", "uniqueness", "https://example.org/people.parquet")
    assert told.code == 3
    assert "another machine" in told.err


def test_exact_tables_are_attacked_if_no_price_is_said(discreet: Discreet) -> None:
    told = discreet(
        "attack", "differencing", "visits.csv", "--by", "clinic,satisfied", "--attribute", "satisfied",
        "--where", "age <> '41'", "--json",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert (told.json["fresh"], told.json["ceiling"]) == (None, None)
