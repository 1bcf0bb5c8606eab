"""The data dictionary: what every column of every file is, for programs and for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, final

import numpy as np

from discreet.formatting import labelled, plain, quantile_label
from discreet.query import ReleaseTable
from discreet.query.answer_columns import AnswerColumn, ExactNumbers
from discreet.query.plan.kept_share import ALL_ROWS, COUNTED, OTHERS, WHOLE, total_of
from discreet.query.policy import Unit, counted_rows
from discreet.release.bundle.manifest import DUMMY, table_file
from discreet.release.bundle.wording import (
    DRAWN,
    code,
    kept_words,
    line,
    paragraphs,
    series_unit,
    series_words,
    table_of,
    unbiased_words,
)
from discreet.release.plan import Level, ReleasePlan, TablePlan
from discreet.release.published import Published, PublishedTable, RunningRelease
from discreet.schema.columns import Declared, Kind, time_at

__all__ = [
    "ColumnMeaning",
    "Deviations",
    "FileColumn",
    "Role",
    "dictionary_of",
    "dictionary_page",
    "fields_of",
    "meanings_of",
    "outline_of",
]

_TIDY = "tidy: made from the raw values to be whole, not negative and to add up; biased"
_MOST_LISTED = 40  # Public values of a key that a page lists; the JSON file has all of them.


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


_LISTED = "none: every listed group is shown, empty ones too; rows with other values are not counted"


def _table(published: Published, table: PublishedTable) -> dict[str, Any]:
    meanings = meanings_of(published.plan, table.plan)
    files = [_file(published, table, meanings, tidy=False)]
    if published.plan.output.tidy and table.tidy is not None:
        files.append(_file(published, table, meanings, tidy=True))
    return {
        "name": table.plan.name,
        "title": table.plan.title,
        "sql": table.plan.sql if table.plan.kept_of is None else f"-- what is counted of\n{table.plan.sql}",
        "rows": len(table.raw),
        "confidence": str(table.raw.confidence),
        "hidden_groups": table.threshold or _LISTED,
        "notes": [*kept_words(published, table), *table.raw.notes],
        "files": files,
    }


def _series(published: Published, running: RunningRelease) -> dict[str, Any]:
    """Describe a series of totals so far as a table: one row a day."""
    name, formats, dummy = running.plan.name, published.plan.output.formats, published.ledger is None
    fields = outline_of(running.table, {"total": running.deviations})
    sure = _sure(published, running.table)
    columns = [_column(field, None, f"the exact {field.of.name}{sure}", tidy=False) for field in fields]
    for column in columns:
        column["unit"] = None if column["role"] == "key" else series_unit(published, running)
    return {
        "name": name,
        "title": running.plan.title or name,
        "sql": None,
        "series": series_words(published, running),
        "rows": len(running.table),
        "confidence": str(running.table.confidence),
        "hidden_groups": "none: every day is listed",
        "notes": list(running.table.notes),
        "files": [
            {
                "paths": [table_file(name, form, tidy=False, dummy=dummy) for form in formats],
                "values": _raw(published),
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
        "values": _TIDY if tidy else _raw(published),
        "columns": [
            _column(field, meanings.get(field.of.name), _inside(published, table, field, meanings), tidy=tidy)
            for field in fields
        ],
    }


def _raw(published: Published) -> str:
    return f"raw: noisy values as they were released; {unbiased_words(published.plan.policy.unit)}"


def _sure(published: Published, table: ReleaseTable) -> str:
    """Say of which rows confidence intervals are, and how sure."""
    unit = published.plan.policy.unit
    rows = "" if unit.is_row else f" of {counted_rows(unit)}"
    return f"{rows} with {plain(table.confidence * 100)} % confidence"


def _inside(
    published: Published, table: PublishedTable, field: FileColumn, meanings: Mapping[str, ColumnMeaning]
) -> str:
    """Say what a confidence interval of a column holds, and how sure."""
    name, meaning = field.of.name, meanings.get(field.of.name)
    held, sure = _held(name, meaning), _sure(published, table.raw)
    if not table.plan.population or not (meaning is None or _ABOUT_A_LAW.search(meaning.expression)):
        return f"the exact {held}{sure}"
    confidence = f", with {plain(table.raw.confidence * 100)} % confidence"
    if meaning is not None and (meaning.words != meaning.expression or _OF_LIST.fullmatch(name)):
        return f"the {held} of {DRAWN}{confidence}"
    # It may be computed from a count as well, which is one of the rows themselves.
    return f"the {held.removesuffix(',')}, its means and quantiles being those of {DRAWN}{confidence}"


def _column(field: FileColumn, meaning: ColumnMeaning | None, inside: str, *, tidy: bool) -> dict[str, Any]:
    known = field.role is Role.VALUE or field.role is Role.KEY
    return {
        "name": field.name,
        "role": field.role.value,
        "meaning": _meaning(field, meaning, inside, tidy=tidy),
        "expression": meaning.expression if meaning is not None and known else None,
        "kind": field.kind.value,
        "bounds": _bounds(field, meaning) if known else None,
        "unit": _unit(field, meaning),
        "missing": _missing(field, meaning) if known else None,
    }


def _meaning(field: FileColumn, meaning: ColumnMeaning | None, inside: str, *, tidy: bool) -> str:
    of = field.of.name
    match field.role:
        case Role.KEY:
            return f"group: {of}" if meaning is None else f"group: {meaning.words}"
        case Role.VALUE:
            words = of if meaning is None else meaning.words
            return f"{words}, {'tidy' if tidy else 'with noise'}{_why_none(field.of)}"
        case Role.LOW | Role.HIGH:
            which = "lower" if field.role is Role.LOW else "upper"
            return f"{which} end of the confidence interval, which holds {inside}"
        case Role.NOISE:
            return f"standard deviation of the noise in {of}, rounded up"


def _held(name: str, meaning: ColumnMeaning | None) -> str:
    """Say what an interval holds: of a smallest or largest value, the quantile near it that was chosen."""
    ends = [] if meaning is None else sorted({end.upper() for end in _EXTREME.findall(meaning.expression)})
    if meaning is None or not ends:
        # Of a list, columns are named after it; in words they are what they are of.
        return name if meaning is None or not _OF_LIST.fullmatch(name) else meaning.words
    alone = _ALONE.fullmatch(meaning.expression.strip())
    if alone is not None:
        return f"{_NEAR[ends[0]]} quantile of {alone['x']}"
    return f"{name} with {' and '.join(f'the {_NEAR[end]} quantile as {end}' for end in ends)},"


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
    labels = {"labels": {str(value): label for value, label in known.labels}} if known.labels else {}
    about = {"kind": facts.kind.value, "clamped_to": [low, high], "values": members, "missing_as": _text(known.missing)}
    return about | labels


def _bound(number: Fraction | None, kind: Kind) -> str | None:
    """Write a declared bound: days and microseconds since 1970 as dates."""
    if number is None:
        return None
    return str(time_at(kind, number) if kind.is_time else number)


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _unit(field: FileColumn, meaning: ColumnMeaning | None) -> str | None:
    """Name what is counted: rows, or whatever the columns that are read are measured in."""
    if field.role is Role.KEY:
        return None
    reads = [] if meaning is None else list(meaning.reads)
    counts = meaning is not None and meaning.words.startswith("number of")
    if meaning is not None and counts:
        counted = meaning.words.removeprefix("number of ")
        return "rows" if counted.startswith("rows") else counted
    return f"as in {', '.join(reads)}" if reads else None


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
        f"with ({unbiased_words(published.plan.policy.unit)}); **tidy** values are whole, not negative and add up, "
        "and are the ones to print. Raw files are `tables/NAME.csv`, tidy ones `tables/NAME.tidy.csv`; "
        "Parquet files hold the same columns. `tables.json` has every number as an exact fraction.",
        "In CSV files an empty field is a missing value. A text that begins like a formula (`= + - @`) or with an "
        "apostrophe has one apostrophe put in front, so that no spreadsheet runs it; Parquet has it as it is.",
    ]
    shared = _shared_notes(known["tables"])
    if shared:
        said = "\n".join(f"- {of}: {line(note)}" for note, of in shared.items())
        head += ["## Notes on several tables", said]
    return paragraphs([*head, *(part for table in known["tables"] for part in _page_of(table, shared))])


def _shared_notes(tables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the notes that several tables have, each once, and which tables these are."""
    having: dict[str, list[str]] = {}
    for table in tables:
        for note in dict.fromkeys(table["notes"]):
            having.setdefault(note, []).append(f"`{table['name']}`")
    return {
        note: "all tables" if len(names) == len(tables) else ", ".join(names)
        for note, names in having.items()
        if len(names) > 1
    }


def _page_of(table: Mapping[str, Any], shared: Mapping[str, str]) -> Iterator[str]:
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
    own = [note for note in table["notes"] if note not in shared]
    yield "\n".join(f"- {line(note)}" for note in own) or "There is nothing more to know of this table alone."


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
        return f"{name} is one of {_listed([labelled(one, known.get('labels', {})) for one in known['values']])}"
    low, high = known["clamped_to"]
    return f"{name} is clamped to {low} … {high}" if low is not None else f"{name} is {known['kind']}"


def _listed(values: list[str]) -> str:
    more = [f"and {len(values) - _MOST_LISTED:,} more"] if len(values) > _MOST_LISTED else []
    return ", ".join([*values[:_MOST_LISTED], *more])


# --- meanings: What a column of a table means, in words, from the plan alone. ---


_PLAIN = (
    (re.compile(r"COUNT\(\*\)", re.I), "number of rows"),
    (re.compile(r"COUNT\(DISTINCT (?P<x>.+)\)", re.I), "number of different values of {x}"),
    (re.compile(r"COUNT\((?P<x>.+)\)", re.I), "number of rows that have a value of {x}"),
    (re.compile(r"SUM\((?P<x>.+)\)", re.I), "sum of {x}"),
    (re.compile(r"AVG\((?P<x>.+)\)", re.I), "mean of {x}"),
    (re.compile(r"MEDIAN\((?P<x>.+)\)", re.I), "median of {x}"),
    (re.compile(r"MIN\((?P<x>.+)\)", re.I), "a low value of {x}, near its smallest"),
    (re.compile(r"MAX\((?P<x>.+)\)", re.I), "a high value of {x}, near its largest"),
    (re.compile(r"(STDDEV|STDDEV_SAMP|STDDEV_POP)\((?P<x>.+)\)", re.I), "standard deviation of {x}"),
    (re.compile(r"(VARIANCE|VAR_SAMP|VAR_POP)\((?P<x>.+)\)", re.I), "variance of {x}"),
    (re.compile(r"CORR\((?P<x>[^(),]+), (?P<y>[^(),]+)\)", re.I), "correlation of {x} and {y}"),
    (re.compile(r"(COVAR_SAMP|COVAR_POP)\((?P<x>[^(),]+), (?P<y>[^(),]+)\)", re.I), "covariance of {x} and {y}"),
    (re.compile(r"MODE\((?P<x>.+)\)", re.I), "a frequent value of {x}"),
)


_FIVE = re.compile(r"FIVE_NUMBERS\((?P<x>.+?)\)(?: FILTER\s?\(WHERE (?P<where>.*)\))?", re.I)
_MANY = re.compile(
    r"\w+\((?P<x>.+), \[(?P<levels>[0-9., ]+)\](?: ORDER BY .+?)?\)(?: FILTER\s?\(WHERE (?P<where>.*)\))?", re.I
)
_EXTREME = re.compile(r"\b(MIN|MAX)\(", re.I)
# What is said of the law that rows were drawn from, where a table asks for it: means and quantiles.
_ABOUT_A_LAW = re.compile(r"\b(AVG|MEAN|MEDIAN|MIN|MAX|FIVE_NUMBERS|\w*QUANTILE\w*|\w*PERCENTILE\w*)\s*\(", re.I)
_ALONE = re.compile(r"(MIN|MAX)\((?P<x>[^()]+)\)", re.I)  # With brackets inside it may be a computation.
_OF_LIST = re.compile(r".+_q[0-9]{2,3}(_[0-9]+)?")
_NEAR = {"MIN": "0.01", "MAX": "0.99"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMeaning:
    """What is known of a column: how it is computed, in SQL and in words, and which declared columns it reads."""

    expression: str
    words: str
    reads: Mapping[str, Declared]
    level: Level | None = None

    @property
    def labels(self) -> Mapping[Any, str]:
        """What values of a key mean, if it is a declared column as it is."""
        name = self.expression.strip().removeprefix('"').removesuffix('"')
        return {} if self.level is not None or name not in self.reads else dict(self.reads[name].labels)


def meanings_of(plan: ReleasePlan, table: TablePlan) -> dict[str, ColumnMeaning]:
    """Return the meaning of each column of a table by its name."""
    if table.kept_of is not None:
        return _kept_meanings(table, plan.policy.unit)
    expressions = {**_selected(table.sql), **table.measures, **{name: name for name in table.by}}
    levels = {level.name: level for level in plan.levels}
    declared = {name: known for source in plan.policy.tables.values() for name, known in source.columns.items()}
    known = {name: _meanings_meaning(name, said, levels, declared, plan) for name, said in expressions.items()}
    return {one: said for name, meaning in known.items() for one, said in _columns_of(name, meaning).items()}


def _columns_of(name: str, meaning: ColumnMeaning) -> dict[str, ColumnMeaning]:
    """Return the columns of what is selected: a list of quantiles is several."""
    found = _quantiles_of(meaning.expression)
    if found is None:
        return {name: meaning}
    of, levels = found
    return {f"{name}_{quantile_label(one)}": replace(meaning, words=f"{plain(one)} quantile of {of}") for one in levels}


def _quantiles_of(expression: str) -> tuple[str, list[Fraction]] | None:
    """Return of what a list of quantiles is, and which they are; None of any other expression."""
    five = _FIVE.fullmatch(expression.strip())
    if five is not None:
        return _with_condition(five), [Fraction(percent, 100) for percent in (5, 25, 50, 75, 95)]
    found = _MANY.fullmatch(expression.strip())
    if found is None:
        return None
    return _with_condition(found), [Fraction(level) for level in re.findall(r"[0-9.]+", found["levels"])]


def _with_condition(found: re.Match[str]) -> str:
    return found["x"] if found["where"] is None else f"{found['x']} where {found['where']}"


def _kept_meanings(table: TablePlan, unit: Unit) -> dict[str, ColumnMeaning]:
    """Say what the columns of a kept share are; those of totals are called after columns of its table."""
    most = f"at most {unit.rows_at_most} of each {unit.noun}"
    totals = {total_of(name): f"{said}, of all rows ({most})" for name, said in _selected(table.sql).items()}
    words = totals | {
        WHOLE: f"number of {unit.nouns} that are counted with all their rows",
        OTHERS: f"number of {unit.nouns} that are not",
        ALL_ROWS: f"number of rows, counted or not ({most})",
        COUNTED: f"number of rows that are counted, on average over the choice of groups ({most})",
    }
    return {name: ColumnMeaning(expression=said, words=said, reads={}) for name, said in words.items()}


def _meanings_meaning(
    name: str, expression: str, levels: Mapping[str, Level], declared: Mapping[str, Declared], plan: ReleasePlan
) -> ColumnMeaning:
    level = levels.get(name)
    said = name if level is not None else expression
    words = set(re.findall(r"[A-Za-z_]\w*", level.of if level is not None else said))
    reads = {column: known for column, known in declared.items() if column in words}
    return ColumnMeaning(expression=said, words=_in_words(said, level, plan.policy.unit), reads=reads, level=level)


def _in_words(expression: str, level: Level | None, unit: Unit) -> str:
    if level is not None:
        return f"level {level.name}: groups of {level.of}"
    named = unit.name is not None and len(unit.columns) == 1 and unit.window is None
    if named and expression.strip().casefold() == f"count(distinct {unit.columns[0]})".casefold():
        return f"number of {unit.nouns}"
    for form, words in _PLAIN:
        found = form.fullmatch(expression.strip())
        if found is not None:
            return words.format(**found.groupdict())
    return expression


@lru_cache(maxsize=256)
def _selected(sql: str) -> Mapping[str, str]:
    """Return what each column is selected as; nothing for a text that only our own reader understands."""
    import sqlglot
    from sqlglot import exp

    try:
        query = sqlglot.parse_one(sql, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return {}
    if not isinstance(query, exp.Select):
        return {}
    return {each.alias_or_name: each.unalias().sql(dialect="duckdb") for each in query.expressions}


# --- layout: What the columns of a published file are: keys, then each measured column with its ends and its noise. ---
#
# CSV, Parquet and the dictionary all follow this one list. Kinds follow from the question, never from the values.


Deviations: TypeAlias = Mapping[str, Fraction | tuple[Fraction, ...]]  # of each column: of all rows, or row by row


@final
class Role(Enum):
    """What a column of a file is for."""

    KEY = "key"
    VALUE = "value"
    LOW = "low"
    HIGH = "high"
    NOISE = "noise_sd"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """One column of a file: its name there, which column of the table it tells about, and its exact values."""

    name: str
    role: Role
    of: AnswerColumn
    kind: Kind
    values: Sequence[Any]


def fields_of(table: ReleaseTable, deviations: Deviations) -> tuple[FileColumn, ...]:
    """List the columns of the file of a table. Without deviations, as for tidy tables, no noise is told."""
    taken = set(table.names)
    return tuple(field for column in table.columns for field in _fields(column, deviations, taken))


def outline_of(table: ReleaseTable, deviations: Deviations) -> tuple[FileColumn, ...]:
    """List the same columns without their values."""
    none = np.empty(0, dtype=np.int64)
    head = replace(table, columns=tuple(column.take(none) for column in table.columns), rows_shown=0)
    return fields_of(head, {name: () if isinstance(told, tuple) else told for name, told in deviations.items()})


def _fields(column: AnswerColumn, deviations: Deviations, taken: set[str]) -> Iterator[FileColumn]:
    cells = [column[row] for row in range(len(column))]
    role = Role.VALUE if column.measured else Role.KEY
    yield FileColumn(name=column.name, role=role, of=column, kind=column.kind, values=[cell.value for cell in cells])
    if column.measured and column.has_interval:
        for end, values in ((Role.LOW, [cell.low for cell in cells]), (Role.HIGH, [cell.high for cell in cells])):
            yield FileColumn(
                name=_unused(column, end, taken), role=end, of=column, kind=_kind_of_ends(column), values=values
            )
    if column.measured and column.name in deviations:
        told = deviations[column.name]
        noise = list(told) if isinstance(told, tuple) else [told] * len(column)
        yield FileColumn(
            name=_unused(column, Role.NOISE, taken), role=Role.NOISE, of=column, kind=Kind.REAL, values=noise
        )


def _unused(column: AnswerColumn, role: Role, taken: set[str]) -> str:
    """Name an added column; a question may have called one of its own the same."""
    name = f"{column.name}_{role.value}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _kind_of_ends(column: AnswerColumn) -> Kind:
    whole = all(isinstance(part, ExactNumbers) and part.is_whole for part in (column.low, column.high))
    return Kind.INTEGER if column.kind is Kind.INTEGER and whole else Kind.REAL
