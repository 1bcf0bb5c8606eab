"""A flow, and what came out of it: numbers, and texts apart from them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from recorded import keyed

import discreet as dp

from .canonical import canonical, plain

__all__ = ["Flow", "Said", "ran", "released", "tabled"]

_NOW = 1_767_323_045_000_000_000  # The clock of every flow: 2 January 2026.


@dataclass(frozen=True)
class Said:
    """Numbers and texts of one output: wording may change apart from numbers."""

    numbers: Any
    texts: Any = None


@dataclass(frozen=True)
class Flow:
    """Something that draws and returns an output, under a name for ever; `rounded` where sums of floats are in it."""

    name: str
    make: Callable[[], Any]
    rounded: bool = False


def ran(flow: Flow, family: str) -> dict[str, str]:
    """Run a flow under the bytes of its name, and return the texts of its numbers and of its words."""
    with _still(), keyed(f"{family}/{flow.name}"):
        said = _split(_made(flow), flow.rounded)
    found = {"numbers": canonical(said.numbers, rounded=flow.rounded)}
    return found if said.texts is None else found | {"texts": canonical(said.texts, rounded=flow.rounded)}


def _made(flow: Flow) -> Any:
    try:
        return flow.make()
    except dp.DiscreetError as error:
        return Said(f"refused: {type(error).__name__}", str(error))


@contextmanager
def _still() -> Iterator[None]:
    """Let no time pass for the ledger."""
    with patch.object(time, "time_ns", lambda: _NOW), patch.object(time, "time", lambda: _NOW / 1e9):
        yield


def _split(value: Any, rounded: bool) -> Said:
    if isinstance(value, Said):
        return value
    if isinstance(value, dp.Release):
        return released(value, rounded=rounded)
    if isinstance(value, dp.ReleaseTable):
        return tabled(value)
    return Said(value)


def released(value: dp.Release[Any], *, rounded: bool = False) -> Said:
    """Take a release apart."""
    told = json.loads(value.to_json())
    refused = told["interval"].pop("refused", None)
    value_and_tidy = [plain(value.value, rounded=rounded), plain(value.tidy, rounded=rounded)]
    numbers = [value_and_tidy, told["interval"], told["event"], told["relation"]]
    return Said(numbers, [repr(value), refused, told["cost"], told["method"], told["labels"]])


def tabled(value: dp.ReleaseTable) -> Said:
    """Take a table of releases apart."""
    columns = [[column.name, column.kind, column.values, column.low, column.high] for column in value.columns]
    return Said([columns, value.rows_shown, value.event], [str(value), value.cost, value.notes, value.to_json()])
