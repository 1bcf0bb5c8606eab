"""Shares: each part begins where the one before ends, and all of them make up a whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet.errors import InvalidParameter
from discreet.plots import shares


def rows(**changed: Any) -> list[dict[str, Any]]:
    options = {"labels": ["one", "two"], "parts": {"a": [0.2, 0.5], "b": [0.3, 0.5], "c": [0.5, 0.0]}} | changed
    chart = json.loads(shares(options["labels"], options["parts"], across="people", title="t").to_json())
    (values,) = chart["datasets"].values()
    return values


def test_every_part_begins_where_the_one_before_ends() -> None:
    first = [(row["part"], row["low"], row["high"]) for row in rows() if row["row"] == 0]
    assert first == [("a", 0.0, 0.2), ("b", 0.2, 0.5), ("c", 0.5, 1.0)]
    assert [row["told"] for row in rows() if row["told"]] == ["20.0 %", "50.0 %"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": []},
        {"parts": {"a": [1.0, 1.0]}},
        {"parts": {"a": [0.5], "b": [0.5, 0.5]}},
        {"parts": {"a": [0.5, 0.5], "b": [0.4, 0.5]}},
        {"parts": {"a": [1.5, 0.5], "b": [-0.5, 0.5]}},
        {"parts": {name: [0.125, 0.125] for name in "abcdefgh"}},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        rows(**wrong)
