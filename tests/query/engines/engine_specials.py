"""Values that break what is not total, and one expression or more for every operator."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import Any

from engine_trees import field

from discreet.query.ast import Expression, Operator
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, when
from discreet.schema.columns import Kind

O, K = Operator, Kind  # noqa: E741
CANARY = "canary-7d1f"
SPECIALS: dict[Kind, list[Any]] = {
    K.BOOLEAN: [True, False, None],
    K.INTEGER: [0, 1, -1, 7, -7, 10, 1000, 2**31, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63), None],
    K.REAL: [
        float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, -5e-324, 1.7976931348623157e308,
        -1.7976931348623157e308, 0.5, 1.5, 2.5, -2.5, 0.1, -7.25, 9007199254740993.0, 1e19, None,
    ],
    K.TEXT: [
        "", "x", " 12 ", "1e3", "NaN", "inf", "-7.5", "2.5", "3.5", "0x10", "1_0", "+4", "1e400", "9223372036854775807",
        "9223372036854775808", "2020-02-30", "2020-02-29", "2020-02-29 13:14:15", "true", "F", "abc%_",
        "ÄÖ é", "e\u0301", CANARY, "👍🏽 naïve", None,
    ],
    K.DATE: [date.min, date.max, date(1970, 1, 1), date(2020, 2, 29), date(2019, 12, 30), date(2024, 1, 31), None],
    K.TIMESTAMP: [
        datetime.min, datetime.max, datetime(1970, 1, 1), datetime(2020, 2, 29, 23, 59, 59, 999999),
        datetime(1969, 12, 31, 12), datetime(2021, 1, 3, 1, 2, 3), None,
    ],
}  # fmt: skip

ROW = field("row", K.INTEGER)
FIELDS = {f"{kind.value}{side}": field(f"{kind.value}{side}", kind) for kind in SPECIALS for side in "12"}
BOUNDED = {
    "small1": field("small1", K.INTEGER, -1000, 1000),
    "small2": field("small2", K.INTEGER, -1000, 1000),
    "unit1": field("unit1", K.REAL, -4, 4),
    "unit2": field("unit2", K.REAL, -4, 4),
}


def rows() -> list[dict[str, Any]]:
    """Return rows in which every two specials of one kind meet."""
    most = max(len(values) for values in SPECIALS.values())
    made = []
    for first, second in product(range(most), repeat=2):
        row: dict[str, Any] = {}
        for kind, values in SPECIALS.items():
            row[f"{kind.value}1"] = values[first % len(values)]
            row[f"{kind.value}2"] = values[second % len(values)]
        row["small1"], row["small2"] = row["integer1"], row["integer2"]
        row["unit1"], row["unit2"] = row["real1"], row["real2"]
        made.append(row)
    return made


def as_read(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as it is read: no NaN, no infinity, within bounds."""
    read = {name: _finite(value) for name, value in row.items()}
    for name, one in BOUNDED.items():
        value, facts = read[name], one.facts
        if value is not None and facts.low is not None and facts.high is not None:
            clamped = min(max(value, facts.low), facts.high)
            read[name] = float(clamped) if facts.kind is K.REAL else int(clamped)
    return read


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and value - value != 0 else value


def cases() -> list[Expression]:
    """Return expressions that together use every operator."""
    f = {**FIELDS, **BOUNDED}
    i, j, r, s, t, w = (f[name] for name in ("integer1", "integer2", "real1", "real2", "text1", "text2"))
    a, b, x, y = (f[name] for name in ("small1", "small2", "unit1", "unit2"))
    p, q, d, e, m, n = (f[name] for name in ("boolean1", "boolean2", "date1", "date2", "timestamp1", "timestamp2"))
    one, text = literal, literal
    made = [apply(op, *pair) for op in (O.ADD, O.SUBTRACT, O.MULTIPLY, O.DIVIDE) for pair in
            ((a, b), (i, j), (r, s), (x, y), (a, x), (i, r), (r, one(Fraction(1, 3))), (i, one(7)))]  # fmt: skip
    made += [apply(op, *pair) for op in (O.FLOOR_DIVIDE, O.MODULO) for pair in
             ((a, b), (a, one(7)), (a, one(-7)), (i, one(7)), (a, one(0)))]  # fmt: skip
    made += [apply(op, one_) for op in (O.NEGATE, O.ABSOLUTE, O.SIGN) for one_ in (a, i, r, x)]
    made += [apply(op, one_) for op in (O.FLOOR, O.CEILING) for one_ in (r, x)]
    made += [apply(O.ROUND, one_, one(decimals)) for one_, decimals in
             ((a, 0), (a, -1), (a, -2), (r, 0), (x, 0), (x, 1), (x, 2), (r, 2), (a, 2), (i, -1))]  # fmt: skip
    made += [apply(op, one_) for op in (O.SQUARE_ROOT, O.LOGARITHM, O.EXPONENTIAL) for one_ in (r, x, a, i)]
    made += [apply(O.POWER, one_, one(exponent)) for one_ in (a, r, x, i) for exponent in (0, 1, 2, 3)]
    made += [apply(op, *some) for op in (O.LEAST, O.GREATEST) for some in
             ((a, b), (r, s, one(1)), (i, j), (d, e), (m, n), (a, x))]  # fmt: skip
    comparisons = (O.EQUAL, O.NOT_EQUAL, O.LESS, O.LESS_OR_EQUAL, O.GREATER, O.GREATER_OR_EQUAL)
    made += [apply(op, *pair) for op in comparisons for pair in
             ((a, b), (i, j), (r, s), (t, w), (d, e), (m, n), (p, q), (a, x), (r, one(Fraction(1, 2))))]  # fmt: skip
    made += [apply(O.IS_NULL, one_) for one_ in (p, i, r, t, d, m)]
    made += [apply(O.IN, i, one(7), one(-1)), apply(O.IN, t, text("x"), text("1e3")), apply(O.IN, d, one(date.max)),
             apply(O.IN, r, one(Fraction(1, 2)), one(3)), apply(O.NOT, apply(O.IN, t, text("x")))]  # fmt: skip
    made += [apply(O.AND, p, q), apply(O.OR, p, q), apply(O.NOT, p), apply(O.AND, p, q, apply(O.IS_NULL, t))]
    made += [apply(O.COALESCE, *some) for some in ((a, b, one(5)), (r, s), (t, w), (d, e), (p, q), (a, x))]
    made += [apply(op, t) for op in (O.LOWER, O.LENGTH, O.TRIM)]
    made += [apply(O.UPPER, t), apply(O.CONCAT, t, w), apply(O.CONCAT, t, text("-"), w)]
    made += [apply(O.RIGHT, t, one(length)) for length in (0, 1, 3, 100)]
    made += [apply(O.SUBSTRING, t, one(start), one(length)) for start, length in ((1, 2), (2, 1), (3, 0), (4, 100))]
    made += [apply(op, t, text(pattern)) for op in (O.LIKE, O.LIKE_ANY_CASE) for pattern in
             ("%", "", "_", "%é%", "1%", "%\\%", "ABC%", "abc%_", "a.c%", "\\", "%%__")]  # fmt: skip
    made += [apply(O.STARTS_WITH, t, text(start)) for start in ("", "1", "%", CANARY)]
    made += [apply(O.REPLACE, t, text(old), text(new)) for old, new in (("1", ""), ("x", "''"), (" ", "\\0"))]
    parts = (O.YEAR, O.QUARTER, O.MONTH, O.WEEK, O.DAY, O.WEEKDAY, O.DAY_OF_YEAR, O.HOUR, O.MINUTE, O.SECOND)
    made += [apply(op, time) for op in parts for time in (d, m)]
    made += [apply(O.TRUNCATE_TIME, text(unit), time) for time in (d, m) for unit in
             ("year", "quarter", "month", "week", "day", "hour", "minute")]  # fmt: skip
    made += [apply(op, time, one(amount)) for op in (O.ADD_DAYS, O.ADD_MONTHS) for time in (d, m) for amount in
             (0, 1, -1, 29, -365, 120_000, -120_000, 3_999_999)]  # fmt: skip
    made += [apply(O.DAYS_BETWEEN, d, e), apply(O.DAYS_BETWEEN, m, n)]
    made += [apply(O.TO_INTEGER, one_) for one_ in (r, x, t, p)] + [apply(O.TO_REAL, one_) for one_ in (i, t, p)]
    made += [apply(O.TO_TEXT, one_) for one_ in (i, p, d)] + [apply(O.TO_BOOLEAN, one_) for one_ in (t, i)]
    made += [apply(O.TO_DATE, m), apply(O.TO_DATE, t), apply(O.TO_TIMESTAMP, d), apply(O.TO_TIMESTAMP, t)]
    made += [when([(apply(O.LESS, r, s), a), (p, b)], one(3)), when([(apply(O.EQUAL, t, w), t)]), when([(q, r)], i)]
    return made


def deep(levels: int) -> Expression:
    """Return an expression that would be 2^levels long if every argument that is needed twice were written twice."""
    value: Expression = FIELDS["real1"]
    for _ in range(levels):
        value = apply(O.DIVIDE, literal(1), apply(O.ADD, value, literal(1)))
    return value
