"""A text that is the same for the same plan, and for no other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any

from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.relation import Relation
from discreet.query.ast import (
    Apply,
    Case,
    Choose,
    Combine,
    End,
    Field,
    Filter,
    Join,
    JoinKind,
    Key,
    KeyValue,
    Limit,
    Literal,
    Measure,
    Named,
    Operator,
    Order,
    OutputColumn,
    PerUnit,
    Project,
    Query,
    ReleasedMeasure,
    RowOrder,
    Side,
    Statistic,
    Table,
    TableColumn,
    UnionAll,
    UnitKey,
    UnitStatistic,
    UnitTotal,
    UnitWindow,
    WithinUnit,
)
from discreet.query.plan.draft import Bundle, Noising, NumberNoise
from discreet.query.plan.residuals import GroupTree, ResidualNoise, SharedNoise
from discreet.schema.columns import ExpressionFacts, Kind
from discreet.stored_names import StoredName, stored_names

__all__ = ["canonical", "fingerprint"]

_FORMAT = "discreet plan 1"  # Another one where the meaning of a plan or of its answer changes.
_LONG = 32  # Items; a longer list is written once, and named by its digest where it stands.
# These names are hashed into the fingerprints of paid answers, and never change: see discreet.stored_names.
_NAMES = stored_names(
    {
        Query: "Question: source keys measures outputs having order limit",
        Key: "Key: name expression domain",
        Measure: "Measure: statistic argument quantile sample called weight? among? other?",
        OutputColumn: "Output: name value",
        Order: "Order: value descending",
        Limit: "Limit: count offset",
        ReleasedMeasure: "Answer: measure",
        End: "End: measure side",
        KeyValue: "KeyValue: key",
        Combine: "Combine: operator arguments",
        Choose: "Choose: branches otherwise",
        Table: "Table: table private columns unit",
        TableColumn: "TableColumn: column field missing format? unit_key? of_unit?",
        UnitKey: "UnitKey: columns window time kind format outer? zone?",
        Filter: "Filter: source condition",
        Project: "Project: source columns unit",
        Named: "Named: field expression",
        Join: "Join: left right kind pairs",
        PerUnit: "PerUnit: source unit keys totals",
        UnitTotal: "UnitTotal: field statistic argument step",
        RowOrder: "RowOrder: value descending",
        UnitWindow: "UnitWindow: total order ties running",
        WithinUnit: "WithinUnit: source columns",
        UnionAll: "UnionAll: sources columns unit",
        Field: "Field: name facts",
        Literal: "Literal: value facts",
        Apply: "Apply: operator arguments facts",
        Case: "Case: branches otherwise facts",
        ExpressionFacts: "Facts: kind low high step members nullable",
        Noising: "Noising: gaussian numbers bundles selection max_groups common? shared?",
        SharedNoise: "SharedNoise: family residuals table scales variances aim",
        ResidualNoise: "ResidualNoise: trees tables shares",
        GroupTree: "GroupTree: parents",
        NumberNoise: "NumberNoise: law change unit spread? exchange?",
        Bundle: "Bundle: noises",
        DiscreteLaplaceLaw: "DiscreteLaplaceLaw: scale",
        RoundedGaussianLaw: "RoundedGaussianLaw: variance",
        LaplaceNoise: "LaplaceNoise: epsilon",
        GaussianNoise: "GaussianNoise: squared_multiplier delta",
        Relation: "Relation: ADD_REMOVE REPLACE_ONE",
        Kind: "Kind: BOOLEAN INTEGER REAL TEXT DATE TIMESTAMP UNDECLARED IDENTITY",
        JoinKind: "JoinKind: INNER LEFT",
        Side: "Side: LOW HIGH",
        Statistic: (
            "Statistic: ROWS UNITS COUNT DISTINCT SUM MEAN VARIANCE DEVIATION QUANTILE MODE COVARIANCE CORRELATION"
        ),
        UnitStatistic: "UnitStatistic: ROWS COUNT DISTINCT SUM MEAN LEAST GREATEST FIRST LAST PLACE",
        Operator: (
            "Operator: ADD SUBTRACT MULTIPLY DIVIDE FLOOR_DIVIDE MODULO NEGATE ABSOLUTE SIGN FLOOR CEILING "
            "ROUND SQUARE_ROOT LOGARITHM EXPONENTIAL POWER LEAST GREATEST EQUAL NOT_EQUAL LESS LESS_OR_EQUAL "
            "GREATER GREATER_OR_EQUAL IS_NULL IN AND OR NOT COALESCE LOWER UPPER LENGTH TRIM SUBSTRING "
            "CONCAT LIKE LIKE_ANY_CASE STARTS_WITH REPLACE YEAR QUARTER MONTH WEEK DAY WEEKDAY DAY_OF_YEAR "
            "HOUR MINUTE SECOND TRUNCATE_TIME ADD_DAYS ADD_MONTHS DAYS_BETWEEN TO_INTEGER TO_REAL TO_TEXT "
            "TO_DATE TO_TIMESTAMP TO_BOOLEAN RIGHT"
        ),
    }
)


def fingerprint(*parts: Any) -> str:
    """Digest public values. A query that nests too deep to be written is refused here, before it is charged."""
    try:
        return _digest("\n".join((_FORMAT, canonical(parts))))
    except RecursionError:
        raise Refused(
            "this query nests too deep",
            reason="it costs time before anything is paid",
            way_out="split it, or put long lists into a public table",
        ) from None


def _digest(written: str) -> str:
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: Any) -> str:
    """Write a public value so that different ones differ: every part with its type, texts with their length."""
    return _written(value, {})


def _written(value: Any, known: dict[int, str]) -> str:
    """Write a value; `known` are long lists by identity: they live as long as the whole."""
    name = _name_of(value)
    if name is not None and isinstance(value, Enum):
        return f"{name.tag}.{name.member(value)}"
    if name is not None:  # Not in a function of its own: a query may nest as deep as Python's stack goes.
        return f"{name.tag}({','.join(f'{part}={_written(held, known)}' for part, held in name.values(value))})"
    if isinstance(value, Enum) and isinstance(value, (str, int)):
        return f"{type(value).__name__}.{value.name}"  # A member of a domain; the class is that of whoever declared it.
    if isinstance(value, str):
        return f"s{len(value)}:{value}"
    if value is None or isinstance(value, (bool, int, float, Fraction, date)):
        return f"{type(value).__name__}:{value!r}"  # Python's own classes, or those of whoever declared a domain.
    if isinstance(value, tuple):
        return _listed(value, known)
    raise InvalidParameter(f"a plan cannot hold a {type(value).__name__}")


def _name_of(value: Any) -> StoredName | None:
    name = _NAMES.get(type(value))
    return _of_selection().get(type(value)) if name is None and is_dataclass(value) else name


@cache
def _of_selection() -> Mapping[type[Any], StoredName]:
    """The rest of the names, for plans that choose groups."""
    from discreet.adaptive.truncated_histogram import TruncatedHistogram  # It brings all of that floor along.

    return stored_names({TruncatedHistogram: "TruncatedHistogram: noise delta relation bins_per_unit contribution"})


def _listed(values: tuple[Any, ...], known: dict[int, str]) -> str:
    if id(values) not in known:
        written = f"[{','.join(_written(value, known) for value in values)}]"
        known[id(values)] = f"#{_digest(written)}" if len(values) > _LONG else written
    return known[id(values)]
