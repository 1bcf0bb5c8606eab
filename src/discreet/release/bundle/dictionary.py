"""The data dictionary: what every column of every file is, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from discreet.mechanisms.text import plain
from discreet.query import AnswerColumn, Declared, Kind
from discreet.release.bundle.layout import FileColumn, Role, outline_of
from discreet.release.bundle.meanings import ColumnMeaning, meanings_of
from discreet.release.bundle.naming import DUMMY, table_file
from discreet.release.bundle.prose import code, line, paragraphs, table_of
from discreet.release.bundle.telling import series_words
from discreet.release.published import Published, PublishedTable, RunningRelease

__all__ = ["dictionary_of", "dictionary_page"]

_RAW = "raw: noisy values as they were released; counts and sums are unbiased for the rows that are counted"
_TIDY = "tidy: made from the raw values to be whole, not negative and to add up; biased"
_MOST_LISTED = 40  # Public values of a key that a page lists; the JSON file has all of them.
_EPOCH = datetime(1970, 1, 1)


def dictionary_of(published: Published) -> dict[str, Any]:
    """Return the dictionary as JSON has it."""
    return {
        "format": 1,
        **({"warning": f"{DUMMY}: made of invented rows"} if published.ledger is None else {}),
        "name": published.plan.name,
        "period": published.period.label,
        "csv": {
            "encoding": "UTF-8",
            "missing": "an empty field without quotes",
            "apostrophe": "a text that begins like a formula, or with an apostrophe, has one apostrophe in front",
        },
        "tables": [
            *(_table(published, table) for table in published.tables),
            *(_series(published, running) for running in published.running),
        ],
    }


def _table(published: Published, table: PublishedTable) -> dict[str, Any]:
    meanings = meanings_of(published.plan, table.plan)
    files = [_file(published, table, meanings, tidy=False)]
    if published.plan.output.tidy and table.tidy is not None:
        files.append(_file(published, table, meanings, tidy=True))
    return {
        "name": table.plan.name,
        "title": table.plan.title,
        "sql": table.plan.sql,
        "rows": len(table.raw),
        "confidence": str(table.raw.confidence),
        "hidden_groups": table.threshold or "none: every group is listed, empty ones too",
        "notes": list(table.raw.notes),
        "files": files,
    }


def _series(published: Published, running: RunningRelease) -> dict[str, Any]:
    """Describe a series of totals so far as a table: one row a day."""
    name, formats, dummy = running.plan.name, published.plan.output.formats, published.ledger is None
    fields = outline_of(running.table, {"total": running.deviations})
    columns = [_column(field, None, running.table.confidence, tidy=False) for field in fields]
    for column in columns:
        column["unit"] = None if column["role"] == "key" else running.unit
    return {
        "name": name,
        "title": running.plan.title or name,
        "sql": None,
        "series": series_words(running),
        "rows": len(running.table),
        "confidence": str(running.table.confidence),
        "hidden_groups": "none: every day is listed",
        "notes": list(running.table.notes),
        "files": [
            {
                "paths": [table_file(name, form, tidy=False, dummy=dummy) for form in formats],
                "values": _RAW,
                "columns": columns,
            }
        ],
    }


def _file(
    published: Published, table: PublishedTable, meanings: Mapping[str, ColumnMeaning], *, tidy: bool
) -> dict[str, Any]:
    shown = table.tidy if tidy and table.tidy is not None else table.raw
    fields = outline_of(shown, {} if tidy else table.deviations)
    dummy = published.ledger is None
    return {
        "paths": [table_file(table.plan.name, form, tidy=tidy, dummy=dummy) for form in published.plan.output.formats],
        "values": _TIDY if tidy else _RAW,
        "columns": [_column(field, meanings.get(field.of.name), shown.confidence, tidy=tidy) for field in fields],
    }


def _column(field: FileColumn, meaning: ColumnMeaning | None, confidence: Fraction, *, tidy: bool) -> dict[str, Any]:
    known = field.role is Role.VALUE or field.role is Role.KEY
    return {
        "name": field.name,
        "role": field.role.value,
        "meaning": _meaning(field, meaning, confidence, tidy=tidy),
        "expression": meaning.expression if meaning is not None and known else None,
        "kind": field.kind.value,
        "bounds": _bounds(field, meaning) if known else None,
        "unit": _unit(field, meaning),
        "missing": _missing(field, meaning) if known else None,
    }


def _meaning(field: FileColumn, meaning: ColumnMeaning | None, confidence: Fraction, *, tidy: bool) -> str:
    of = field.of.name
    match field.role:
        case Role.KEY:
            return f"group: {of}" if meaning is None else f"group: {meaning.words}"
        case Role.VALUE:
            words = of if meaning is None else meaning.words
            return f"{words}, {'tidy' if tidy else 'with noise'}{_why_none(field.of)}"
        case Role.LOW | Role.HIGH:
            which = "lower" if field.role is Role.LOW else "upper"
            return f"{which} end of the interval that holds the exact {of} with {plain(confidence * 100)} % confidence"
        case Role.NOISE:
            return f"standard deviation of the noise in {of}, rounded up"


def _why_none(column: AnswerColumn) -> str:
    return f"; no interval: {column.no_interval}" if column.no_interval else ""


def _bounds(field: FileColumn, meaning: ColumnMeaning | None) -> dict[str, Any]:
    """Tell what is publicly known of values: of a key its values, of a measure its limits and what it reads."""
    found: dict[str, Any] = {}
    if field.role is Role.VALUE:
        low, high = field.of.limits
        found["exact_answer_at_least"], found["exact_answer_at_most"] = _text(low), _text(high)
        found["exact_answer_is_a_multiple_of"] = _text(field.of.grain)
    if meaning is not None and meaning.level is not None:
        found["level"] = {str(name): [str(part) for part in parts] for name, parts in meaning.level.members.items()}
    reads = {} if meaning is None else meaning.reads
    found["reads"] = {name: _declared(known) for name, known in reads.items()}
    return found


def _declared(known: Declared) -> dict[str, Any]:
    facts = known.facts
    members = None if facts.members is None else [str(member) for member in facts.members]
    low, high = _bound(facts.low, facts.kind), _bound(facts.high, facts.kind)
    return {"kind": facts.kind.value, "clamped_to": [low, high], "values": members, "missing_as": _text(known.missing)}


def _bound(number: Fraction | None, kind: Kind) -> str | None:
    """Write a declared bound: days and microseconds since 1970 as dates."""
    if number is None:
        return None
    match kind:
        case Kind.DATE:
            return date.fromordinal(_EPOCH.toordinal() + int(number)).isoformat()
        case Kind.TIMESTAMP:
            return (_EPOCH + timedelta(microseconds=int(number))).isoformat(sep=" ")
    return str(number)


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _unit(field: FileColumn, meaning: ColumnMeaning | None) -> str | None:
    """Name what is counted: rows, or whatever the columns that are read are measured in."""
    if field.role is Role.KEY:
        return None
    reads = [] if meaning is None else list(meaning.reads)
    counts = meaning is not None and meaning.words.startswith("number of")
    return "rows" if counts else f"as in {', '.join(reads)}" if reads else None


def _missing(field: FileColumn, meaning: ColumnMeaning | None) -> str:
    if field.role is Role.KEY:
        return "see the notes of the table"
    if meaning is not None and meaning.words == "number of rows":
        return "every row counts, whatever is missing in it"
    replaced = (
        {} if meaning is None else {name: m.missing for name, m in meaning.reads.items() if m.missing is not None}
    )
    if replaced:
        return "; ".join(f"a missing or unreadable {name} counts as {number}" for name, number in replaced.items())
    return "missing and unreadable values are left out"


def dictionary_page(published: Published, known: Mapping[str, Any]) -> str:
    """Return the dictionary as people read it."""
    head = [
        f"# Data dictionary: {line(published.plan.title)}",
        *([f"**{DUMMY}: all values here are made from invented rows.**"] if published.ledger is None else []),
        "Each table comes twice if it could be tidied: **raw** values have noise only, and are the ones to compute "
        "with (counts and sums are unbiased for the rows that are counted); **tidy** values are whole, not negative "
        "and add up, and are the ones to print. Raw files are `tables/NAME.csv`, tidy ones `tables/NAME.tidy.csv`; "
        "Parquet files hold the same columns. `tables.json` has every number as an exact fraction.",
        "In CSV files an empty field is a missing value. A text that begins like a formula (`= + - @`) or with an "
        "apostrophe has one apostrophe put in front, so that no spreadsheet runs it; Parquet has it as it is.",
    ]
    return paragraphs([*head, *(part for table in known["tables"] for part in _page_of(table))])


def _page_of(table: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {line(table['title'])} (`{table['name']}`)"
    if table["sql"] is None:
        yield line(table["series"])
    else:
        yield f"```sql\n{table['sql'].strip().replace('```', '` ` `')}\n```"
    rows = "1 row" if table["rows"] == 1 else f"{table['rows']:,} rows"
    yield f"{rows}. Hidden groups: {line(table['hidden_groups'])}."
    for file in table["files"]:
        yield f"**{' and '.join(f'`{path}`' for path in file['paths'])}** ({file['values']})"
        yield table_of(("column", "meaning", "kind", "bounds", "unit", "missing values"), map(_row, file["columns"]))
    yield "\n".join(f"- {line(note)}" for note in table["notes"]) or "There is nothing more to know about this table."


def _row(column: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        code(column["name"]),
        line(column["meaning"]),
        column["kind"],
        line(_bounds_text(column["bounds"] or {})),
        line(column["unit"] or ""),
        line(column["missing"] or ""),
    )


def _bounds_text(bounds: Mapping[str, Any]) -> str:
    parts = []
    if bounds.get("exact_answer_at_least") is not None:
        parts.append(f"exact answer at least {bounds['exact_answer_at_least']}")
    if bounds.get("exact_answer_at_most") is not None:
        parts.append(f"exact answer at most {bounds['exact_answer_at_most']}")
    for name, members in bounds.get("level", {}).items():
        parts.append(f"{name} = {_listed(members)}")
    parts += [_reads_text(name, known) for name, known in bounds.get("reads", {}).items()]
    return "; ".join(parts)


def _reads_text(name: str, known: Mapping[str, Any]) -> str:
    if known["values"] is not None:
        return f"{name} is one of {_listed(known['values'])}"
    low, high = known["clamped_to"]
    return f"{name} is clamped to {low} … {high}" if low is not None else f"{name} is {known['kind']}"


def _listed(values: list[str]) -> str:
    more = [f"and {len(values) - _MOST_LISTED:,} more"] if len(values) > _MOST_LISTED else []
    return ", ".join([*values[:_MOST_LISTED], *more])
