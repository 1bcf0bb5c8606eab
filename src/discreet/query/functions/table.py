"""All functions of one row, by operator: the table that parser, planner and engine read."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.query.ast import Operator
from discreet.query.functions.casts import CASTS
from discreet.query.functions.logic import LOGIC
from discreet.query.functions.numbers import NUMBERS
from discreet.query.functions.record import SqlFunction
from discreet.query.functions.texts import TEXTS
from discreet.query.functions.times import TIMES

__all__ = ["FUNCTIONS"]

FUNCTIONS: Mapping[Operator, SqlFunction] = {
    function.operator: function for function in (*NUMBERS, *LOGIC, *TEXTS, *TIMES, *CASTS)
}
