"""A domain as JSON, both ways; what is read is checked like what somebody declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidParameter
from discreet.mechanisms.parameters import settle
from discreet.synth.domain.category import Category
from discreet.synth.domain.domain import Declared, Domain, Impossible
from discreet.synth.domain.images import Images
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.value_forms import day_of

__all__ = ["domain_document", "domain_restored"]

_BROKEN = "this is no domain of a table or of pictures"


def domain_document(domain: Domain | Images) -> dict[str, Any]:
    """Return a domain as JSON."""
    if isinstance(domain, Images):
        return {"height": domain.height, "width": domain.width, "classes": list(domain.classes)}
    return {
        "columns": [{"name": name, **_column(column)} for name, column in domain.columns.items()],
        "impossible": [
            {"columns": list(rule.columns), "cells": [list(cells) for cells in rule.cells]}
            for rule in domain.impossible
        ],
    }


def domain_restored(document: Any) -> Domain | Images:
    """Read a domain again, or refuse."""
    try:
        if "height" in document:
            return Images(document["height"], document["width"], classes=document["classes"])
        columns = {one["name"]: _read_column(one) for one in document["columns"]}
        if len(columns) != len(document["columns"]):
            raise InvalidParameter("two columns have one name")
        domain = Domain(columns)
        rules = tuple(_rule(rule, domain) for rule in document["impossible"])
    except (KeyError, TypeError, AttributeError):
        raise InvalidParameter(_BROKEN) from None
    if not domain.is_settled:
        raise InvalidParameter(_BROKEN)
    settle(domain, impossible=rules)
    return domain


def _column(column: Declared) -> dict[str, Any]:
    if isinstance(column, Category):
        return {"kind": "category", "values": list(column.values), "other": column.other, "null": column.null}
    return {
        "kind": "date" if column.is_date else "numeric",
        "low": str(column.low),
        "high": str(column.high),
        "whole": column.whole,
        "bins": [str(edge) for edge in column.bins] if isinstance(column.bins, tuple) else column.bins,
        "null": column.null,
    }


def _read_column(one: Mapping[str, Any]) -> Declared:
    if one["kind"] == "category":
        return Category(one["values"], other=one["other"], null=one["null"])
    if one["kind"] in ("numeric", "date"):
        made = Numeric(one["low"], one["high"], whole=one["whole"], bins=one["bins"], null=one["null"])
        return made if one["kind"] == "numeric" else _dates(made)
    raise InvalidParameter(_BROKEN)


def _dates(column: Numeric) -> Numeric:
    """Take days that were written as numbers as dates again; those that no calendar has are refused."""
    try:
        made = Numeric.dates(day_of(int(column.low)), day_of(int(column.high)), null=column.null)
    except (ValueError, OverflowError):
        raise InvalidParameter(_BROKEN) from None
    settle(made, bins=column.bins)
    return made


def _rule(rule: Mapping[str, Any], domain: Domain) -> Impossible:
    columns, cells = tuple(rule["columns"]), tuple(tuple(codes) for codes in rule["cells"])
    known = len(columns) == len(cells) > 0 and all(_is_below(place, len(domain.names)) for place in columns)
    if not known or list(columns) != sorted(set(columns)):
        raise InvalidParameter(_BROKEN)
    for place, codes in zip(columns, cells, strict=True):
        if not codes or not all(_is_below(code, domain.sizes[place]) for code in codes):
            raise InvalidParameter(_BROKEN)
    return Impossible(columns, cells)


def _is_below(value: object, limit: int) -> bool:
    return type(value) is int and 0 <= value < limit
