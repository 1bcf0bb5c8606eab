"""What a value shows of itself is short, the same in every run, and exact where it does not say about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.formatting import places_for, record, with_article


@pytest.mark.parametrize(
    "noun", ["an employee", "an hour of one user", "a user", "an id", "a uid", "a unit", "a household"]
)
def test_an_article_is_that_of_how_a_noun_sounds(noun: str) -> None:
    assert with_article(noun.split(" ", 1)[1]) == noun


@pytest.mark.parametrize(
    ("value", "places"), [(Fraction(272, 100), 2), (Fraction(5, 2), 1), (Fraction(40), 0), (Fraction(1, 3), 12)]
)
def test_a_value_without_error_has_no_decimals_that_say_nothing(value: Fraction, places: int) -> None:
    """A median of prices that is surely 2.72 was shown as 2.720000000000 ± 0.000000000000."""
    assert places_for(Fraction(0), value) == places


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Shown:
    value: Any
    usual: Any = Fraction(1, 2)
    nothing: Any = None
    hidden: Any = field(default=0, repr=False)

    __repr__ = record


class Loud:
    def __repr__(self) -> str:
        return "two\nlines"


def named(value: int) -> int:
    return value


NUMBERS = {
    Fraction(1, 2): "0.5",
    Fraction(1, 10**6): "1e-06",
    Fraction(-3): "-3",
    Fraction(1, 3): "1/3",
    Fraction(10**6 + 1, 3 * 10**6): "≈0.333334",
    Fraction(1, 10**400): "≈1.00000e-400",
    Fraction(0): "0",
}


@pytest.mark.parametrize(("value", "written"), NUMBERS.items())
def test_a_fraction_is_a_short_decimal_or_ratio_or_says_about(value: Fraction, written: str) -> None:
    assert repr(Shown(value)) == f"Shown(value={written})"


@given(st.fractions())
def test_a_fraction_is_short_and_near_for_all_fractions(value: Fraction) -> None:
    written = repr(Shown(value)).removeprefix("Shown(value=").removesuffix(")")
    assert len(written) <= 22
    exact = Fraction(written.removeprefix("≈"))
    assert exact == value if not written.startswith("≈") else abs(exact - value) <= abs(value) / 10**5


PARTS: dict[str, tuple[Any, str]] = {
    "a text": ("a'b", '"a\'b"'),
    "a member": (Colour.RED, "'red'"),
    "a path": (Path("a/b"), "'a/b'"),
    "one in brackets": ((Fraction(1, 2),), "(0.5,)"),
    "a list": ([1, None, True, 1.5], "[1, None, True, 1.5]"),
    "a long list": (tuple(range(1000)), "(0, 1, 2, 3, 4, 5, 6, … 993 more)"),
    "names": ({"a": Fraction(1, 4)}, "{'a': 0.25}"),
    "a set": (frozenset({"b", "a"}), "{'a', 'b'}"),
    "a function": (named, "named"),
    "a method": (Shown(1).__repr__, "record"),
    "an array": (np.zeros((1000, 3)), "array of 1,000 × 3"),
    "a huge number": (10**30, "≈1e+30"),
    "a record": (Shown(Fraction(1, 4)), "Shown(value=0.25)"),
    "lines": (Loud(), "Loud(…)"),
    "an object": (object(), "object(…)"),
}


@pytest.mark.parametrize(("value", "written"), PARTS.values(), ids=PARTS)
def test_a_part_is_on_one_line_without_an_address(value: Any, written: str) -> None:
    assert repr(Shown(value)) == f"Shown(value={written})"


def test_what_nobody_said_is_left_out() -> None:
    assert repr(Shown(1, Fraction(1, 2), None, 5)) == "Shown(value=1)"
    assert repr(Shown(1, Fraction(1, 3), 0)) == "Shown(value=1, usual=1/3, nothing=0)"
    assert repr(dp.Budget(epsilon=4, delta=1e-6)) == "Budget(epsilon=4, delta=1e-06)"


SEEN: dict[str, Callable[[], object]] = {
    "PureDP(epsilon=0.5)": lambda: dp.privacy.PureDP(0.5),
    "GDP(mu_squared=≈0.056029)": lambda: dp.privacy.GDP(
        mu_squared=Fraction(1267650600228229401496703205376, 22624916002080477227145005602609)
    ),
    "Unit(column='patient', max_groups=3)": lambda: dp.Unit("patient", max_groups=3, max_rows_per_group=1),
}


@pytest.mark.parametrize(("written", "make"), SEEN.items(), ids=SEEN)
def test_values_that_people_name_in_notebooks(written: str, make: Callable[[], object]) -> None:
    assert repr(make()) == written
