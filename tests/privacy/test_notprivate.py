"""A value that must never leave: it prints under a heading, and nothing else works."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from discreet.errors import Refused
from discreet.privacy import NotPrivate

SECRET = NotPrivate(4711.25)
HEADING = "NOT PRIVATE: for the custodian only, never release"


def test_every_text_has_the_heading_first() -> None:
    for text in (repr(SECRET), str(SECRET), f"{SECRET}", f"{SECRET:.1f}", f"{SECRET!r:>99}"):
        assert text.lstrip().startswith(HEADING)
    assert f"{SECRET:.1f}" == f"{HEADING}\n4711.2"
    assert HEADING in SECRET._repr_html_()
    assert "<b>" not in NotPrivate("<b>x</b>")._repr_html_()


def test_the_value_is_there_for_who_asks() -> None:
    assert SECRET.value == 4711.25
    assert NotPrivate[int](3).value == 3


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_cannot_be_pickled(protocol: int) -> None:
    with pytest.raises(Refused):
        pickle.dumps(SECRET, protocol)
    with pytest.raises(Refused):
        pickle.dumps({"a": [SECRET]}, protocol)


def test_it_cannot_be_copied_or_written_as_json() -> None:
    for make in (copy.copy, copy.deepcopy):
        with pytest.raises(Refused):
            make(SECRET)
    with pytest.raises(TypeError):
        json.dumps(SECRET)
    assert not hasattr(SECRET, "to_json")


def test_it_is_not_compared_and_decides_nothing() -> None:
    other = NotPrivate(4711.25)
    for ask in (
        lambda: other == SECRET,
        lambda: other != SECRET,
        lambda: SECRET == 4711.25,
        lambda: SECRET == 4711.25,
        lambda: bool(SECRET),
        lambda: SECRET in [other],
    ):
        with pytest.raises(Refused):
            ask()
    for ask in (lambda: other > SECRET, lambda: SECRET > 1, lambda: sorted([SECRET, other])):
        with pytest.raises(TypeError):
            ask()
    assert hash(SECRET) != hash(other)


def test_it_does_not_calculate() -> None:
    for calculate in (
        lambda: SECRET + 1,
        lambda: 1 - SECRET,
        lambda: -SECRET,
        lambda: float(SECRET),
        lambda: int(SECRET),
        lambda: round(SECRET),
        lambda: len(SECRET),
        lambda: iter(SECRET),
        lambda: SECRET[0],
        lambda: np.asarray(SECRET, dtype=float),
        lambda: abs(SECRET),
    ):
        with pytest.raises(TypeError):
            calculate()


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        SECRET.value = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        SECRET._value = 3
    with pytest.raises(AttributeError):
        SECRET.note = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        del SECRET._value
    assert not hasattr(SECRET, "__dict__")
