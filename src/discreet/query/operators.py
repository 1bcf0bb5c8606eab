"""The operators of the closed tree. Each is total and looks at one row: it has a value, perhaps NULL, for all inputs.

What cannot be computed is NULL: division by zero, the root of a negative number, a text that is no date. NULL in gives
NULL out, except where it is said otherwise. Whole numbers never overflow: their bounds are checked before the engine
sees them. NaN and infinities do not occur: they are NULL where a column is read and where a result would be one.
"""

from __future__ import annotations

from enum import Enum
from typing import final

__all__ = ["Operator"]


@final
class Operator(Enum):
    """What a node of an expression does; the arguments in order."""

    # Numbers.
    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"  # always real
    FLOOR_DIVIDE = "floor divide"  # integers; towards minus infinity
    MODULO = "modulo"  # integers; x - y * floor(x / y)
    NEGATE = "negate"
    ABSOLUTE = "absolute"
    SIGN = "sign"
    FLOOR = "floor"  # an integer
    CEILING = "ceiling"  # an integer
    ROUND = "round"  # to a literal number of decimals; half away from zero
    SQUARE_ROOT = "square root"
    LOGARITHM = "logarithm"  # natural
    EXPONENTIAL = "exponential"
    POWER = "power"  # a literal whole exponent from 0 to 8
    LEAST = "least"  # of those that are not NULL
    GREATEST = "greatest"  # of those that are not NULL

    # Comparisons; two texts, two numbers, two times or two truth values.
    EQUAL = "equal"
    NOT_EQUAL = "not equal"
    LESS = "less"
    LESS_OR_EQUAL = "less or equal"
    GREATER = "greater"
    GREATER_OR_EQUAL = "greater or equal"
    IS_NULL = "is null"  # never NULL
    IN = "in"  # the first argument among the literals that follow

    # Truth values, with SQL's three-valued logic.
    AND = "and"
    OR = "or"
    NOT = "not"

    # Choices; CASE is a node of its own.
    COALESCE = "coalesce"  # the first that is not NULL

    # Texts.
    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"  # in characters
    TRIM = "trim"
    SUBSTRING = "substring"  # literal start (from 1) and length
    CONCAT = "concat"
    LIKE = "like"  # a literal pattern; no escape character
    LIKE_ANY_CASE = "like in any case"
    STARTS_WITH = "starts with"  # a literal text
    REPLACE = "replace"  # two literal texts

    # Times.
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"  # of the ISO year
    DAY = "day"
    WEEKDAY = "weekday"  # Sunday is 0
    DAY_OF_YEAR = "day of year"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    TRUNCATE_TIME = "truncate time"  # literal unit: year, quarter, month, week, day, hour, minute; then the time
    ADD_DAYS = "add days"  # a literal number of days to a date or a timestamp
    ADD_MONTHS = "add months"  # a literal number of months
    DAYS_BETWEEN = "days between"  # whole days from the first to the second

    # Casts: NULL where there is no such value.
    TO_INTEGER = "to integer"  # half to even
    TO_REAL = "to real"
    TO_TEXT = "to text"
    TO_DATE = "to date"
    TO_TIMESTAMP = "to timestamp"
    TO_BOOLEAN = "to boolean"
