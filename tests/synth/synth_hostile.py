"""Columns that somebody could declare, and values that nobody would expect in them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from synth_toys import CANARY

from discreet.errors import InvalidParameter
from discreet.synth.domain.category import OTHER, Category
from discreet.synth.domain.numeric import Numeric

hostile = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3),
    st.decimals(), st.dates(), st.just(CANARY), st.just(float("inf")), st.just(-1e300), st.just(10**400),
    st.just(np.datetime64("NaT")), st.just((1, 2)), st.just(object()), st.just("1e999"), st.just([1]),
    st.just(pd.NA), st.complex_numbers(), st.just(10**5000),
)  # fmt: skip
texts = st.lists(st.text(max_size=4).filter(lambda text: text != OTHER), min_size=1, max_size=5, unique=True)
numbers = st.lists(st.integers(1 - 2**53, 2**53 - 1), min_size=1, max_size=5, unique=True)


@st.composite
def columns(draw: st.DrawFn) -> Category | Numeric:
    null = draw(st.booleans())
    match draw(st.integers(0, 3)):
        case 0:
            return _distinct(draw(texts), other=draw(st.booleans()), null=null)
        case 1:
            return Category(draw(numbers), null=null)
        case 2:
            return Category([True, False], null=null)
    low = draw(st.integers(-1000, 1000))
    width = draw(st.integers(1, 1000))
    whole = draw(st.booleans())
    high: Any = low + width if whole else Fraction(low) + Fraction(width, 7)
    return Numeric(low, high, whole=whole, bins=draw(st.integers(1, 9)), null=null)


def _distinct(values: list[str], *, other: bool, null: bool) -> Category:
    try:
        return Category(values, other=other, null=null)
    except InvalidParameter:  # Two texts that are one in composed form.
        return Category(values[:1], other=other, null=null)


def belongs(column: Category | Numeric, value: object) -> bool:
    if isinstance(column, Category):
        return any(value is label or (value == label and type(value) is type(label)) for label in column.labels)
    if value is None:
        return column.null
    inside = column.low - Fraction(1, 10**9) <= Fraction(value) <= column.high + Fraction(1, 10**9)  # type: ignore[arg-type]
    return inside and (isinstance(value, int) if column.whole else isinstance(value, float))
