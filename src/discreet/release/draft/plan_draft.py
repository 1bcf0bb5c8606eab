"""A draft of a plan: proposals that the custodian walks through, and the text of the plan once they are confirmed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, positive
from discreet.formatting import percent, printable
from discreet.ledger.budget import Budget, readable
from discreet.pages.progress import working
from discreet.privacy.not_private import NotPrivate
from discreet.query.session.catalogue_builder import nearest
from discreet.release.draft.custodian_look import (
    FEWEST,
    FileLook,
    Proposal,
    SeenColumn,
    SeenUnit,
    by_name,
    declaration,
    limit,
    looking,
    names_amount,
    names_code,
    shows_rows,
    shows_same_rows,
    unit_why,
)
from discreet.schema.columns import Kind
from discreet.schema.csv_file import CsvFile

__all__ = ["Draft", "draft_plan", "first_groupings", "first_measures", "plan_text", "toml_value"]

# --- plan_text: The text of a confirmed plan, with comments that say what is public now and what should be checked. ---


_WARNING = """\
# A release plan. Everything in this file is public, and is part of what is published.
#
# What is listed in from_data was read from the rows. It is public now, one person can be visible in it, and no budget
# accounts for that: every bundle says so. Replace it by facts that are known without the data where you can, such as an
# age from 0 to 120 or the official list of districts, or find it for a price (discreet profile); then take it off the
# list.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_WHOM = 'whom to protect; name = "household" makes every text call one of them so'
Spending = tuple[Fraction, Fraction | None]


def plan_text(
    said: Mapping[str, Any],
    *,
    table: str,
    source: str,
    once: Spending,
    ever: Spending,
    seen: Sequence[str] = (),
    csv: CsvFile | None = None,
) -> str:
    """Write the plan; `seen` are the fields whose values were read from the rows."""
    parts = (
        _WARNING,
        _lines(**{name: said[name] for name in ("name", "title", "dataset", "ledger")}),
        _marks(said, table, seen),
        _section("unit", _WHOM, _unit(said)),
        _section("budget", "what may be spent on these data, ever", _budget(ever)),
        _section(f"tables.{_key(table)}", "", {"source": source}),
        "" if csv is None else _section(f"tables.{_key(table)}.csv", "how the file is written", _written(csv)),
        _columns(said, table, seen),
        _section("release", "what one release of all tables may spend together", _budget(once) | {"split": "even"}),
        _schedule(said),
        _section("output", "", {"folder": "published"}),
        _publish(said, table),
    )
    return "\n".join(part for part in parts if part)


def _written(file: CsvFile) -> dict[str, Any]:
    """Return what a file is said to be, as far as it is not the usual."""
    usual = CsvFile(path=file.path)
    names = ("delimiter", "quote", "encoding", "decimal", "thousands", "line_breaks")
    found = {name: getattr(file, name) for name in names if getattr(file, name) != getattr(usual, name)}
    dates = file.dates if isinstance(file.dates, str) else dict(file.dates)
    return found | ({"dates": dates} if dates else {})


def _marks(said: Mapping[str, Any], table: str, seen: Sequence[str]) -> str:
    """List what was read from the rows, by its place in the plan."""
    once = said["schedule.every"] == "once"
    fields = [field for field in seen if not (once and field.startswith("schedule."))]
    places = [f"tables.{table}.{field}" if field.startswith("columns.") else field for field in fields]
    if any(field.startswith("columns.") for field in said):
        places.append(f"tables.{table}.columns")  # Which of them are declared at all was decided by their values too.
    return f"from_data = [\n{''.join(f'  {toml_value(place)},{chr(10)}' for place in places)}]\n" if places else ""


def _unit(said: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: said.get(f"unit.{name}") for name in ("max_groups", "max_rows_per_group")}
    return {"column": said["unit.column"]} | {name: value for name, value in limits.items() if value is not None}


def _budget(spending: Spending) -> dict[str, Any]:
    epsilon, delta = spending
    return {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})


def _columns(said: Mapping[str, Any], table: str, seen: Sequence[str]) -> str:
    columns = {field.removeprefix("columns."): value for field, value in said.items() if field.startswith("columns.")}
    declared = {name: value for name, value in columns.items() if value is not None}
    left = [name for name, value in columns.items() if value is None]
    comment = f"# Left out, so nothing can be told of them: {', '.join(map(printable, left))}\n" if left else ""
    if not declared:
        return comment
    return (
        comment
        + _list_comment(declared, seen)
        + _code_comment(declared)
        + _section(f"tables.{_key(table)}.columns", "what lies outside is clamped, or in no group", declared)
    )


def _list_comment(declared: Mapping[str, Any], seen: Sequence[str]) -> str:
    """Say that lists from the rows may lack values. How many they lack would tell of one person, so it is not said."""
    listed = [name for name, one in declared.items() if isinstance(one, dict) and "categories" in one]
    names = [printable(name) for name in listed if f"columns.{name}" in seen]
    if not names:
        return ""
    return (
        f"# Lists may not be complete: values that fewer than {FEWEST} units have are left out, and rows with other\n"
        f"# values are not counted. Add what the official list has: {', '.join(names)}\n"
    )


def _code_comment(declared: Mapping[str, Any]) -> str:
    """Say how codes get labels, and what to write for amounts with few values; it tells no more than these codes do."""
    listed = {
        name: said["categories"] for name, said in declared.items() if isinstance(said, dict) and said.get("categories")
    }
    codes = {name: list(map(int, values)) for name, values in listed.items() if isinstance(values[0], int)}
    if not codes:
        return ""
    first = min(codes, key=lambda name: (len(codes[name]) < 2, len(codes[name])))
    labels = {"categories": codes[first], "labels": {str(codes[first][0]): "what it means"}}
    amounts = [f"#   {_lines(**{name: _amount(values)})}" for name, values in codes.items() if len(values) > 2]
    return (
        "# Few whole numbers are taken for codes, which are counted and never added up. Reports show labels:\n"
        f"#   {_lines(**{first: labels})}"
        + "".join(
            ["# Those that are amounts, such as a number of rooms, are declared by bounds instead:\n"] * bool(amounts)
        )
        + "".join(amounts)
    )


def _amount(values: Sequence[int]) -> dict[str, Any]:
    return {"low": min(values), "high": max(values), "whole": True}


def _schedule(said: Mapping[str, Any]) -> str:
    if said["schedule.every"] == "once":
        return ""
    entries = {name: said[f"schedule.{name}"] for name in ("every", "first", "column")}
    return _section("schedule", "", {name: value for name, value in entries.items() if value is not None})


def _publish(said: Mapping[str, Any], table: str) -> str:
    entries = {
        "name": said["name"],
        "title": said["title"],
        "from": table,
        "groupings": said["publish.groupings"],
        "measures": said["publish.measures"],
    }
    return f"[[publish]]  # tables of the same rows, which add up\n{_lines(**entries)}"


def _section(name: str, comment: str, entries: Mapping[str, Any]) -> str:
    return f"[{name}]{f'  # {comment}' if comment else ''}\n{_lines(**entries)}"


def _lines(**entries: Any) -> str:
    return "".join(f"{_key(name)} = {toml_value(value)}\n" for name, value in entries.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def toml_value(value: Any) -> str:
    """Write a value as TOML has it; a fraction as an exact decimal."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case datetime():
            return value.isoformat(timespec="seconds")
        case date():
            return value.isoformat()
        case Fraction():
            return _fraction(value)
        case Decimal():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {toml_value(one)}" for name, one in value.items()) + " }"
    return repr(value)


def _fraction(value: Fraction) -> str:
    """Write a number that can be read back exactly; one that is no short decimal is written as a text."""
    short = readable(value)
    return short if Fraction(short) == value and "/" not in short else _text(str(value))


def _text(text: str) -> str:
    """TOML's basic strings are those of JSON, but for DEL and lone surrogates, which no name should have."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


_MOST_CANDIDATES = 5
_SOME = 0.01  # The part of rows that must differ in a column for it to tell units apart.
_SAY_LIFETIME = (
    "with a delta, say the lifetime epsilon too, above that of one release: a ledger keeps a part of such a budget for "
    "questions that are chosen later"
)
_SAID = "as you said"
_ROW = "each row is protected by itself: right only if nobody has more than one"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Draft:
    """What a plan could say of a file. It was seen in the data: show it to the custodian only.

    `confirmed` writes the plan. From then on everything in it is public.
    """

    path: Path
    table: str
    proposals: tuple[Proposal, ...]
    csv: CsvFile | None = None  # how the file is written, where that was said

    def __getitem__(self, field: str) -> Proposal:
        found = next((one for one in self.proposals if one.field == field), None)
        if found is None:
            raise InvalidParameter(f"there is no {field!r}. {nearest(field, [one.field for one in self.proposals])}")
        return found

    def answered(self, field: str, value: Any) -> Draft:
        """Return the draft with another answer. Another unit means another look, after which other answers stay."""
        known = self[field]
        if value == known.value:
            return self
        if field == "unit.column":
            return self._looked_again(value)
        if field == "schedule.every" and value not in known.choices:
            raise InvalidParameter(f"{field} must be one of {', '.join(known.choices)}")
        # What is offered beside a proposal was read from the rows as well, even where nothing is proposed.
        offered = shows_rows(value) and any(shows_same_rows(value, one) for one in known.choices)
        read = known.read or ((known.value,) if known.from_data else ())
        seen = offered or any(value == one or (shows_rows(value) and shows_same_rows(value, one)) for one in read)
        return self._with(known, replace(known, value=value, why=_SAID, from_data=seen, read=read))

    def _with(self, known: Proposal, changed: Proposal) -> Draft:
        return replace(self, proposals=tuple(changed if one is known else one for one in self.proposals))

    def _looked_again(self, unit: str) -> Draft:
        draft = draft_plan(self.csv or self.path, unit=unit, table=self.table).value
        fields = {one.field for one in draft.proposals}
        for one in self.proposals:
            if one.why == _SAID and one.field in fields:
                draft = draft.answered(one.field, one.value)
                again = draft[one.field]  # What was offered in an earlier look may not be offered now.
                seen = again.from_data or one.from_data
                draft = draft._with(again, replace(again, from_data=seen, read=again.read + one.read))
        return draft

    @property
    def said(self) -> Mapping[str, Any]:
        """All answers by their fields."""
        return {one.field: one.value for one in self.proposals}

    def confirmed(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        lifetime_epsilon: Number | None = None,
        lifetime_delta: Number | None = None,
        folder: str | Path | None = None,
    ) -> str:
        """Return the text of the plan: what one release spends, and what may ever be spent, has no default.

        Without a lifetime budget a plan of pure epsilon can release once. `folder` is where the file will be; without
        one it is beside the data. The text is public: whoever calls this has looked at every bound and category in it.
        """
        once = (positive(epsilon, name="epsilon"), exact_or_none(delta, name="delta"))
        if once[1] is not None and lifetime_epsilon is None:
            raise InvalidParameter(_SAY_LIFETIME)
        ever = (
            once[0] if lifetime_epsilon is None else positive(lifetime_epsilon, name="lifetime_epsilon"),
            once[1] if lifetime_delta is None else exact_or_none(lifetime_delta, name="lifetime_delta"),
        )
        for amount in (once, ever):
            Budget(*amount)  # It refuses what no ledger keeps, such as an epsilon of 1e5000.
        where = self.path.parent if folder is None else Path(folder)
        source = _from(where, self.path)
        return plan_text(self.said, table=self.table, source=source, once=once, ever=ever, seen=self.seen, csv=self.csv)

    @property
    def seen(self) -> tuple[str, ...]:
        """The fields whose values were read from the rows: the plan marks them, and the bundle tells them."""
        return tuple(one.field for one in self.proposals if one.from_data and one.value is not None)

    def __str__(self) -> str:
        lines = [f"{one.field} = {one.value!r}\n    {one.why}" for one in self.proposals]
        return "\n".join([f"draft of a plan for {self.path.name}", *lines])

    __repr__ = __str__


def _untold(stage: str) -> None:
    """Tell nobody what is done."""


@working("drafting", terminal=False)
def draft_plan(
    path: str | Path | CsvFile,
    *,
    unit: str | None = None,
    table: str | None = None,
    on_progress: Callable[[str], None] = _untold,
) -> NotPrivate[Draft]:
    """Look at a file exactly, and propose what a plan could say of it. Only the custodian may see this.

    `unit` is the column whose values tell people apart, or "row"; without one the likeliest is proposed. No epsilon
    and no delta is proposed: how much protection is given up is for people to say.

    Args:
        path: The private file: CSV (as `dp.csv` says, if it is written in another way) or Parquet.
        unit: The column whose values tell people apart, or "row".
        table: The name of the table in the plan; that of the file if not said.
        on_progress: A function that is told what is read now, for the custodian's terminal.

    Returns:
        The draft, marked as not private: `answered` changes an answer, `confirmed` writes the plan.

    Raises:
        InvalidParameter: If the file cannot be read, or has no such column.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> draft = dp.release.draft_plan("visits.csv", unit="patient").value
        >>> draft = draft.answered("title", "Visits to five clinics")
        >>> _ = Path("plan.toml").write_text(draft.confirmed(epsilon=1))
        >>> dp.release.read_release_plan("plan.toml").title
        'Visits to five clinics'
    """
    written = path if isinstance(path, CsvFile) else None
    file = Path(path.path if isinstance(path, CsvFile) else path)
    name = _table_name(file) if table is None else table
    with looking(written or file, name, on_progress) as look:
        units = _candidates(look)
        owner = _owner(look, units, unit)
        seen = [look.column(column, owner) for column in look.types if column != owner]
        proposals = (
            *_heading(file, name),
            *_chosen_unit(look, units, owner, seen, said=unit is not None),
            *_chosen_columns(seen),
            *_publishing(seen),
        )
    return NotPrivate(Draft(path=file, table=name, proposals=proposals, csv=written))


def _table_name(file: Path) -> str:
    stem = file.name.split(".")[0]
    return stem if re.fullmatch(r"[A-Za-z_]\w*", stem, re.ASCII) else "data"


def _safe(text: str) -> str:
    """Return a name that can be that of a file."""
    found = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:60]
    return found if found[:1].isalpha() else f"t_{found}"


def _heading(file: Path, table: str) -> tuple[Proposal, ...]:
    name = _safe(table)
    return (
        Proposal(field="name", value=name, why="the name of the file; releases and folders are called so"),
        Proposal(field="title", value=f"Figures about {table}", why="what people will read first"),
        Proposal(field="dataset", value=name, why="under this name the ledger keeps the budget, for ever"),
        Proposal(field="ledger", value=f"{name}.ledger", why="where everything that is spent is recorded"),
    )


def _candidates(look: FileLook) -> list[SeenUnit]:
    """Find columns that could tell people apart: those with a telling name first, then those with most values."""
    from discreet.query.engines.clamped_columns import kind_of

    rows = look.rows
    kinds = {name: kind_of(sql) for name, sql in look.types.items()}
    found = [name for name, kind in kinds.items() if kind in (Kind.INTEGER, Kind.TEXT) and _differs(look, name, rows)]
    found.sort(key=lambda name: not by_name(name))
    return [look.unit(name) for name in found[:_MOST_CANDIDATES]]


def _differs(look: FileLook, name: str, rows: int) -> bool:
    distinct, _ = look.distinct(name)
    return distinct >= max(2, _SOME * rows) and (by_name(name) or distinct >= 0.2 * rows)


def _owner(look: FileLook, units: list[SeenUnit], said: str | None) -> str:
    if said == "row":
        return said
    if said is not None:
        found = next((name for name in look.types if name.casefold() == said.casefold()), None)
        if found is None:
            raise InvalidParameter(f"there is no column {said!r}. {nearest(said, look.types)}")
        return found
    return next((one.column for one in units if by_name(one.column)), "row")


def _chosen_unit(
    look: FileLook, units: list[SeenUnit], owner: str, seen: list[SeenColumn], *, said: bool
) -> tuple[Proposal, ...]:
    choices = tuple(dict.fromkeys([owner, *(one.column for one in units), "row"]))
    why = _ROW if owner == "row" else unit_why(look.unit(owner))
    whom = Proposal(field="unit.column", value=owner, why=why, choices=choices, from_data=not said)
    return (
        (whom,)
        if owner == "row"
        else (whom, *_chosen_limits(look, owner, _likely_keys(seen), is_family=len(first_groupings(seen)) > 1))
    )


def _likely_keys(seen: list[SeenColumn]) -> list[list[str]]:
    """Return by what is grouped first; where nothing is listed, texts that are few enough to be found privately."""
    groupings = first_groupings(seen)
    if len(groupings) > 1:
        return groupings
    texts = [one for one in seen if one.kind is Kind.TEXT and 1 < one.distinct <= _MOST_FOUND and not by_name(one.name)]
    return [*groupings, *([one.name] for one in sorted(texts, key=lambda one: one.distinct)[:_MOST_KEYS])]


def _chosen_limits(
    look: FileLook, owner: str, groupings: list[list[str]], *, is_family: bool
) -> tuple[Proposal, Proposal]:
    """Propose the limits that leave most units whole in every table: the widest one decides."""
    shares = {tuple(keys): look.shares(owner, keys) for keys in groupings}
    widest, longest = max(shares, key=lambda keys: shares[keys][0]), max(shares, key=lambda keys: shares[keys][1])
    limits = limit(shares[widest][0]), limit(shares[longest][1])
    # Tables of listed keys are a family, which counts the rows that its total does; others choose for themselves.
    apart = {(): 0} if is_family else {(): 0, widest: 0}
    told = "; ".join(f"{_by(keys)} {percent(look.counted(owner, keys, limits))}" for keys in apart)
    told += ", and in every table of the family" if is_family else ""
    counted = "more counts more of each and needs more noise"
    return (
        Proposal(
            field="unit.max_groups",
            value=limits[0],
            why=f"{_by(widest)}, most are in no more than {shares[widest][0]} groups; {counted}",
            from_data=True,
        ),
        Proposal(
            field="unit.max_rows_per_group",
            value=limits[1],
            why=f"{_by(longest)}, most have no more than {shares[longest][1]} rows in a group; {counted}. Of the rows "
            f"are counted: {told}",
            from_data=True,
        ),
    )


def _by(keys: Sequence[str]) -> str:
    return f"by {' and '.join(keys)}" if keys else "in total"


def _chosen_columns(seen: list[SeenColumn]) -> tuple[Proposal, ...]:
    return tuple(declaration(one) for one in seen)


def _publishing(seen: list[SeenColumn]) -> tuple[Proposal, ...]:
    # Of several dates the one that begins last is likely when something happened, rather than a date of birth.
    times = sorted((one for one in seen if one.kind.is_time and one.bounds), key=_begins, reverse=True)
    days = tuple(one.name for one in times)
    first = _begins(times[0]) if times else None
    return (
        Proposal(
            field="publish.groupings",
            value=first_groupings(seen),
            why="the total, and tables by the columns with few values; they add up",
            from_data=True,
        ),
        Proposal(
            field="publish.measures",
            value=first_measures(seen),
            why="what is told of every group, as in SQL",
            from_data=True,
        ),
        Proposal(
            field="schedule.every",
            value="once",
            why="how often it is published",
            choices=("once", "day", "week", "month", "quarter", "year"),
        ),
        Proposal(
            field="schedule.column",
            value=None,
            why="a release is about the rows of its period, by this column; none: about all rows",
            choices=(*days, None),
        ),
        Proposal(
            field="schedule.first",
            value=None if first is None else date(first.year, 1, 1),
            why="the first day of the first period, if it is published more than once",
            from_data=True,
        ),
    )


def _begins(seen: SeenColumn) -> date:
    assert seen.bounds is not None
    first = seen.bounds[0]
    assert isinstance(first, date)
    return first.date() if isinstance(first, datetime) else first


def _from(folder: Path, file: Path) -> str:
    """Return the path of the data as seen from the plan."""
    import os

    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


# --- tables: A first set of tables: the total, by each of a few columns, and by two of them together. ---


_ORDERED = re.compile(r"order($|_)|(^|_)(seq|sequence|index|idx|line|rank)($|_)", re.IGNORECASE)  # places in a list
_LOGARITHM = re.compile(r"^(ln|log)", re.IGNORECASE)
_MOST_KEYS = 8
_MOST_PAIRS = 200  # groups of a table by two columns
_MOST_GROUPS = 100  # of a table by one column
_MOST_FOUND = 1_000  # values of a text by which somebody may group


def first_groupings(seen: Sequence[SeenColumn]) -> list[list[str]]:
    """Group by each of the columns with the fewest public values, and by two of them together.

    Tables of a family are about the rows that have a listed value of every key: a key that many rows lack is left out.
    """
    grouped = (one for one in seen if one.covers and not _ORDERED.search(one.name))
    sizes = {one.name: size for one in grouped if (size := _size(one)) is not None and 1 < size <= _MOST_GROUPS}
    keys = sorted(sizes, key=lambda name: (sizes[name], name))[:_MOST_KEYS]
    pair = [keys[:2]] if len(keys) > 1 and sizes[keys[0]] * sizes[keys[1]] <= _MOST_PAIRS else []
    return [[], *([key] for key in keys), *pair]


def _size(seen: SeenColumn) -> int | None:
    said = declaration(seen).value
    if said == {"kind": "boolean"}:
        return 2
    return len(said["categories"]) if said and "categories" in said else None


def first_measures(seen: Sequence[SeenColumn]) -> dict[str, str]:
    """Count rows, and add up the first number that is surely an amount: codes and names of rows are whole numbers."""
    numbers = sorted((one for one in seen if _is_amount(one)), key=lambda one: one.kind is not Kind.REAL)
    return {"n": "COUNT(*)"} | {_alias(one.name): f"SUM({_quoted(one.name)})" for one in numbers[:1]}


def _alias(name: str) -> str:
    return re.sub(r"\W+", "_", f"total_{name}", flags=re.ASCII).lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_amount(seen: SeenColumn) -> bool:
    said = declaration(seen).value
    if not seen.kind.is_number or not said or "low" not in said or names_code(seen.name) or seen.is_sequence:
        return False
    if _LOGARITHM.search(seen.name):
        return False  # A sum of logarithms is one of a product, which nobody asks for.
    return seen.kind is Kind.REAL or names_amount(seen.name)
