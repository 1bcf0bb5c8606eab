"""A domain as a TOML file, both ways; every error names its line and a way out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter
from discreet.formatting import plain
from discreet.mechanisms.parameters import settle
from discreet.schema.toml_document import Document
from discreet.synth.domain.category import Category
from discreet.synth.domain.domain import Domain, DomainColumn, Impossible
from discreet.synth.domain.images import Images
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.value_forms import day_of

if TYPE_CHECKING:
    from discreet.synth.domain.domain_model import DomainColumnModel

__all__ = ["domain_document", "domain_restored", "domain_text", "names_text", "read_domain"]

# --- domain_json: A domain as JSON, both ways; what is read is checked like what somebody declares. ---


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


def _column(column: DomainColumn) -> dict[str, Any]:
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


def _read_column(one: Mapping[str, Any]) -> DomainColumn:
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


_HEAD = """\
# What is publicly known of the table. Nothing here may be looked up in the data: take it from a code book, a form or
# a law. Values that are not listed are never shown; numbers outside of low and high are moved to the nearest of them.
"""
_HOW = """\
# Say of each column either its values, or low and high:
#     values = ["yes", "no"]    other = true (a cell for all values that are not listed)
#     unlisted = 64 (at most so many values are found in the data, privately, which is paid for)
#     low = 0    high = 100    whole = true    bins = 20, or edges = [18, 30, 65], or bins = "quantiles"
#     low = 2025-01-01    high = 2025-12-31 (dates)
#     null = true (a cell for missing values)
# Leave a column out to leave it out of the synthetic table: names, numbers of files, free text.
"""
_OF_CATEGORIES = {"values", "other", "null"}
_OF_NUMBERS = {"low", "high", "whole", "bins", "edges", "null"}
_UNSAID = "say values = […] for a category, or low and high for numbers"


def read_domain(path: str | Path) -> Domain:
    """Read a domain file, or raise an error that names the line, what is wrong, and what to write instead.

    Args:
        path: The TOML file.

    Returns:
        The domain.

    Raises:
        InvalidParameter: If something in the file is wrong or not known.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("domain.toml").write_text('''
        ... [columns]
        ... age = { low = 0, high = 100, bins = 4 }
        ... sex = { values = ["f", "m"] }
        ... ''')
        >>> dp.synth.read_domain("domain.toml").sizes
        (4, 2)
    """
    from discreet.synth.domain.domain_model import DomainModel

    document = Document.open(path, DomainModel, manual="docs/synth/index.md")
    model = document.checked()
    columns = {name: document.at(("columns", name), _declared, column) for name, column in model.columns.items()}
    for place, rule in enumerate(model.impossible):
        document.at(("impossible", place), Domain, columns, impossible=[rule])
    return Domain(columns, impossible=model.impossible)


def _declared(column: DomainColumnModel) -> DomainColumn:
    said = column.model_fields_set
    if "values" in said:
        _check(said, _OF_CATEGORIES, "a category")
        return Category(column.values or (), other=column.other, null=column.null)
    if column.unlisted is not None:
        _check(said, {"unlisted", "null"}, "a category that is to be found")
        return Category.unlisted(most=column.unlisted, null=column.null)
    if {"low", "high"} <= said:
        _check(said, _OF_NUMBERS, "numbers")
        if "bins" in said and "edges" in said:
            raise InvalidParameter("say bins or edges, not both")
        bins: Any = column.edges if column.edges is not None else column.bins or 32
        if isinstance(column.low, date):
            _check(said, _OF_NUMBERS - {"whole"}, "dates")
            return Numeric.dates(column.low, column.high, bins=bins, null=column.null)  # type: ignore[arg-type]
        return Numeric(column.low, column.high, whole=column.whole, bins=bins, null=column.null)  # type: ignore[arg-type]
    raise InvalidParameter(_UNSAID)


def _check(said: set[str], known: set[str], what: str) -> None:
    if not said <= known:
        raise InvalidParameter(f"{', '.join(sorted(said - known))} is nothing that {what} can have")


def domain_text(domain: Domain) -> str:
    """Write a domain as a file that `read_domain` reads; rules of impossible combinations are not written."""
    return _HEAD + "".join(
        f"\n[columns.{json.dumps(name, ensure_ascii=False)}]\n{_lines(one)}" for name, one in domain.columns.items()
    )


def names_text(names: Sequence[str]) -> str:
    """Write a file for people to finish: the names of columns, and what can be said of each."""
    return f"{_HEAD}{_HOW}" + "".join(f"\n[columns.{json.dumps(name, ensure_ascii=False)}]\n" for name in names)


def _lines(column: DomainColumn) -> str:
    pairs = _category(column) if isinstance(column, Category) else _numeric(column)
    return "".join(f"{name} = {text}\n" for name, text in pairs)


def _category(column: Category) -> Iterator[tuple[str, str]]:
    if column.most is None:
        yield "values", json.dumps(list(column.values), ensure_ascii=False)
    else:
        yield "unlisted", str(column.most)
    if column.other and column.most is None:
        yield "other", "true"
    if column.null:
        yield "null", "true"


def _numeric(column: Numeric) -> Iterator[tuple[str, str]]:
    written = _day if column.is_date else _number
    yield "low", written(column.low)
    yield "high", written(column.high)
    if column.whole and not column.is_date:
        yield "whole", "true"
    if isinstance(column.bins, tuple):
        yield "edges", f"[{', '.join(written(edge) for edge in column.bins)}]"
    else:
        yield "bins", json.dumps(column.bins)
    if column.null:
        yield "null", "true"


def _day(value: Any) -> str:
    return day_of(int(value)).isoformat()


def _number(value: Any) -> str:
    short = plain(value).replace(",", "")
    return short if type(value)(short) == value else json.dumps(str(value))
