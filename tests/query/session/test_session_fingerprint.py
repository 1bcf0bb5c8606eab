"""A fingerprint tells any two plans apart, and nothing that is equal."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from itertools import combinations

import pytest

from discreet.errors import InvalidParameter
from discreet.privacy.events import PureDP
from discreet.query.expressions import Apply, Field, Literal
from discreet.query.facts import Facts, Kind
from discreet.query.operators import Operator
from discreet.query.session.fingerprint import fingerprint

NUMBER = Facts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(1))
DIFFERENT = [
    1, True, "1", Fraction(1, 2), None, "None", (1,), (1, 1), ("1,int:1",), {"a": 1}, {"a": True}, {"b": 1},
    date(2020, 1, 1), datetime(2020, 1, 1), Operator.ADD, Operator.AND, Kind.TEXT, PureDP(1), PureDP(2),
    Literal(1, NUMBER), Literal(True, NUMBER), Field("a", NUMBER), Field("b", NUMBER),
    Apply(Operator.ADD, (Field("a", NUMBER), Literal(1, NUMBER)), NUMBER),
    Apply(Operator.ADD, (Literal(1, NUMBER), Field("a", NUMBER)), NUMBER),
]  # fmt: skip


def test_what_differs_has_different_fingerprints():
    for one, other in combinations(DIFFERENT, 2):
        assert fingerprint(one) != fingerprint(other)
    assert fingerprint(1, 2) != fingerprint((1, 2)) != fingerprint(12)


def test_what_is_equal_has_one_fingerprint():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(Field("a", NUMBER)) == fingerprint(
        Field("a", Facts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(1)))
    )


@pytest.mark.parametrize("value", [1.5, object(), {1, 2}, lambda: None])
def test_what_has_no_one_text_is_refused(value):
    with pytest.raises(InvalidParameter):
        fingerprint(value)
