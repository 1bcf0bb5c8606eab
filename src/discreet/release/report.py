"""The report of a release: one page that opens anywhere, loads nothing and runs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from fractions import Fraction
from typing import Any, final

from discreet.formatting import decimal, percent_up, places_for, plain, significant_up
from discreet.pages.kit import (
    bar_row,
    bar_table,
    bullets,
    cards,
    code,
    document,
    figure,
    guess_figure,
    opening,
    paragraph,
    pictures,
    ruler_row,
    section,
)
from discreet.pages.svg import Scale, box, caught, course, key, scale_for, span_of, strip, words
from discreet.query import ReleaseTable
from discreet.query.answer_columns import AnswerColumn, shown
from discreet.query.release_table import summaries_of, summary_at
from discreet.release.bundle.claims import StatedGuarantee, best_tests
from discreet.release.bundle.dictionary import ColumnMeaning, meanings_of
from discreet.release.bundle.manifest import DUMMY, sha256, table_file, verify_command
from discreet.release.bundle.wording import (
    bounded_words,
    counted_words,
    factor_words,
    guess_words,
    interval_words,
    invariant_words,
    kept_words,
    lifetime_words,
    pair_words,
    period_words,
    series_words,
    signer_words,
    unprotected,
    who_words,
)
from discreet.release.published import Published, PublishedTable, RunningRelease
from discreet.release.tidy.tidying import too_few

__all__ = [
    "about_part",
    "attacker_part",
    "budget_part",
    "head_part",
    "hidden_part",
    "limits_part",
    "report_page",
    "series_part",
    "tables_part",
    "verify_part",
]

# --- table_pictures: Every table with its picture: one row a group, a bar, an interval, and the tidy value. ---


_MOST = 20  # Rows of a picture; the files have all of them.
_MOST_COLUMNS = 4  # Measured columns of a table that are drawn.


def tables_part(published: Published) -> str:
    """Write the section of all tables."""
    listed = "".join(
        f'<li><a href="#table-{number}">{words(table.plan.title)}</a></li>'
        for number, table in enumerate(published.tables, 1)
    )
    contents = f'<nav aria-label="Tables"><ul>{listed}</ul></nav>' if len(published.tables) > 1 else ""
    each = (_table(published, table, number) for number, table in enumerate(published.tables, 1))
    return section("tables", "The tables", [contents, _legend(published), *each])


def _legend(published: Published) -> str:
    """Explain the picture once."""
    scale = Scale(0.0, 10.0)
    samples = [
        (strip(scale, 7.0, grid=False), "released value"),
        (strip(scale, 0.0, low=2.5, high=8.5, grid=False), interval_words(published)),
    ]
    if published.plan.output.tidy and any(table.tidy is not None for table in published.tables):
        samples.append((strip(scale, 0.0, mark=5.0, grid=False), "tidy value"))
    return key((drawn.replace('width="100%"', 'width="44"', 1), told) for drawn, told in samples)


def _table(published: Published, table: PublishedTable, number: int) -> str:
    meanings = meanings_of(published.plan, table.plan)
    raw = _labelled(table.raw, meanings)
    summaries = summaries_of(raw)
    boxed = {column.name for five in summaries.values() for column in five}
    measured = [column for column in raw.columns if column.measured and column.name not in boxed][:_MOST_COLUMNS]
    tidy = table.tidy if published.plan.output.tidy else None
    drawn = [_column(raw, tidy, column, meanings.get(column.name), too_few(table, column.name)) for column in measured]
    drawn += [_boxes(raw, name, five) for name, five in list(summaries.items())[:_MOST_COLUMNS]]
    hidden = [paragraph(f"Hidden groups: {table.threshold}.", kind="note")] if table.threshold else []
    kept = [paragraph(f"{said[:1].upper()}{said[1:]}.", kind="note") for said in kept_words(published, table)]
    parts = [*drawn, *kept, *hidden, _where(published, table)]
    return f'<article id="table-{number}"><h3>{words(table.plan.title)}</h3>{"".join(parts)}</article>'


def _labelled(table: ReleaseTable, meanings: Mapping[str, ColumnMeaning]) -> ReleaseTable:
    """Put labels beside keys, as the plan has them: the tables of a bundle keep codes alone."""
    labels = {name: meaning.labels for name, meaning in meanings.items()}
    return replace(table, columns=tuple(replace(one, labels=labels.get(one.name)) for one in table.columns))


def _where(published: Published, table: PublishedTable) -> str:
    """Say in which files the whole table is."""
    dummy, form = published.ledger is None, published.plan.output.formats[0]
    raw = table_file(table.plan.name, form, tidy=False, dummy=dummy)
    files = [f'raw values <a href="{words(raw)}">{words(raw)}</a>']
    if published.plan.output.tidy and table.tidy is not None:
        tidy = table_file(table.plan.name, form, tidy=True, dummy=dummy)
        files.append(f'tidy values <a href="{words(tidy)}">{words(tidy)}</a>')
    rows = "The row is" if len(table.raw) == 1 else f"All {len(table.raw):,} rows are"
    more = f"The first {_MOST} rows are shown; the rest is in the files. " if len(table.raw) > _MOST else ""
    return f'<p class="note">{more}{rows} in: {", ".join(files)}. Table {code(table.plan.name)}.</p>'


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportRow:
    first: Any  # the first of several keys, by which rows are grouped
    group: str
    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    tidy: float | None = None
    text: str
    tidy_text: str = ""
    picture: str = ""  # a box plot, instead of a bar


def _column(
    table: ReleaseTable,
    tidy: ReleaseTable | None,
    column: AnswerColumn,
    meaning: ColumnMeaning | None,
    few: frozenset[int],
) -> str:
    """Draw one measured column; rows of which it tells nothing have no bar."""
    rows = [_row(table, tidy, column, row, few=row in few) for row in range(min(len(table), _MOST))]
    numbers = [n for row in rows for n in (row.value, row.low, row.high, row.tidy) if n is not None]
    scale = scale_for(numbers) if numbers else None
    means = "" if meaning is None or meaning.words == column.name else f": {words(meaning.words)}"
    why = f" No interval: {words(column.no_interval)}." if column.no_interval else ""
    caption = f"<caption><b>{words(column.name)}</b>{means}.{why}</caption>"
    last = '<th class="number tidy">tidy</th>' if tidy is not None else ""
    head = (
        f'<thead><tr><th class="key">{words(_keys(table))}</th><th class="drawn"></th>'
        f'<th class="number">released</th>{last}</tr></thead>'
    )
    body = "".join(_rows(rows, scale, tidy=tidy is not None))
    return f'<table class="chart">{caption}{head}<tbody>{body}</tbody></table>'


def _boxes(table: ReleaseTable, name: str, five: tuple[AnswerColumn, ...]) -> str:
    """Draw a five-number summary: a box plot for each row, and its median with the middle half."""
    found = [summary_at(five, row) for row in range(min(len(table), _MOST))]
    scale = span_of(number for one in found if one is not None for number in one) if any(found) else None
    why = f" No interval: {words(five[0].no_interval)}." if five[0].no_interval else ""
    caption = (
        f"<caption><b>{words(name)}</b>: box plots of 5, 25, 50, 75 and 95 %; a line holds nine in ten of the counted "
        f"rows, a box the middle half, and the median lies across it. A least and a largest value are one person's own "
        f"and are not released.{why}</caption>"
    )
    head = (
        f'<thead><tr><th class="key">{words(_keys(table))}</th><th class="drawn"></th>'
        '<th class="number">median (25 to 75 %)</th></tr></thead>'
    )
    rows = [
        _ReportRow(
            first=_first(table, row),
            group=_group(table, row),
            label=_label(table, row),
            picture="" if one is None or scale is None else box(scale, one),
            text="too few rows to tell" if one is None else _box_text(five, row),
        )
        for row, one in enumerate(found)
    ]
    body = "".join(_rows(rows, scale, tidy=False))
    return f'<table class="chart">{caption}{head}<tbody>{body}</tbody></table>'


def _box_text(five: tuple[AnswerColumn, ...], row: int) -> str:
    left, middle, right = (plain(five[place][row].value) for place in (1, 2, 3))
    return f"{middle} ({left} to {right})"


def _first(table: ReleaseTable, row: int) -> Any:
    return next((key[row].value for key in table.columns if not key.measured), None)


def _group(table: ReleaseTable, row: int) -> str:
    """Name what several rows stand under: the first of several keys."""
    keys = [key for key in table.columns if not key.measured]
    return shown(keys[0], row) if len(keys) > 1 else ""


def _label(table: ReleaseTable, row: int) -> str:
    keys = [shown(key, row) for key in table.columns if not key.measured]
    return ", ".join(keys[1:] if len(keys) > 1 else keys) or "all rows"


def _keys(table: ReleaseTable) -> str:
    return ", ".join(column.name for column in table.columns if not column.measured)


def _row(table: ReleaseTable, tidy: ReleaseTable | None, column: AnswerColumn, row: int, *, few: bool) -> _ReportRow:
    cell, tidied = column[row], None if tidy is None else tidy.column(column.name)
    return _ReportRow(
        first=_first(table, row),
        group=_group(table, row),
        label=_label(table, row),
        value=None if few else _number(cell.value),
        low=None if few else _number(cell.low),
        high=None if few else _number(cell.high),
        tidy=None if few or tidied is None else _number(tidied[row].value),
        text="too few rows to tell" if few else shown(column, row),
        tidy_text="" if few or tidied is None else _plain(tidied, row, cell.plus_minus),
    )


def _plain(column: AnswerColumn, row: int, error: Fraction | None) -> str:
    """Write a tidy value with as many decimals as the raw one beside it."""
    value = column[row].value
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        return shown(column, row)
    return plain(value) if error is None else decimal(value, places_for(error, Fraction(value)))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else None


def _rows(rows: list[_ReportRow], scale: Scale | None, *, tidy: bool) -> Iterator[str]:
    before: Any = object()  # Nothing is equal to it, not even a missing key.
    for row in rows:
        if row.group and row.first != before:
            yield f'<tr><th class="group" colspan="4" scope="rowgroup">{words(row.group)}</th></tr>'
        before = row.first
        last = f'<td class="number tidy">{words(row.tidy_text)}</td>' if tidy else ""
        yield bar_row(words(row.label), row.picture or _strip(row, scale), words(row.text), last)
    if scale is not None:
        yield ruler_row(scale)


def _strip(row: _ReportRow, scale: Scale | None) -> str:
    if row.value is None or scale is None:
        return ""
    return strip(scale, row.value, low=row.low, high=row.high, mark=row.tidy)


# --- page: The report: one page that opens anywhere, loads nothing and runs nothing. ---


def report_page(published: Published, claim: StatedGuarantee) -> str:
    """Write the whole page."""
    main = (
        about_part(published, claim),
        tables_part(published),
        series_part(published),
        budget_part(published, claim),
        hidden_part(published),
        attacker_part(published, claim),
        limits_part(published, claim),
        verify_part(published),
    )
    plan = published.plan
    by = " · ".join(part for part in (plan.publisher, plan.contact) if part)
    title = plan.title if published.ledger is not None else f"{DUMMY}: {plan.title}"
    return document(title, head_part(published, claim), main, foot=[by])


# --- opening: The head of the page: what this is, for whom, and the three things to know. ---


def head_part(published: Published, claim: StatedGuarantee) -> str:
    """Write the head."""
    plan, mark = published.plan, published.ledger
    by = [plan.publisher, period_words(published)]
    if mark is not None:
        moment = mark.time if mark.time.tzinfo is None else mark.time.astimezone(UTC)
        by.append(f"released {moment.date().isoformat()}")
    dummy = f"{DUMMY}: made of invented rows to show the shape of a release. No number on this page is about anybody."
    parts = [
        f'<p class="by">{words(" · ".join(part for part in by if part))}</p>',
        f'<p class="dummy" role="note">{words(dummy)}</p>' if mark is None else "",
        cards(_cards(claim)),
    ]
    return opening("Statistics with a privacy guarantee", plan.title, parts)


def _cards(claim: StatedGuarantee) -> list[tuple[str, str, str]]:
    # Two δ stand here: that of what is told, and that of the budget. Each says whose it is.
    own = f"in this bundle, at δ = {claim.delta_text}" if claim.delta else "in this bundle"
    whole = "" if claim.lifetime_guess is None else "The lifetime budget of the data set: "
    return [
        (
            "Protected",
            claim.protected,
            f"with all rows in all tables{_but(claim)}" if not claim.is_row else "by itself",
        ),
        (
            "A guess is right",
            f"at most {percent_up(claim.guess)}",
            f"{claim.secret.replace('one certain', 'one')}{_but(claim)}; a coin: 50 %{_of_inner(claim, guess=True)}",
        ),
        ("Spent", f"ε = {claim.epsilon_text}", f"{own}{_of_inner(claim)}. {whole}{claim.budget.describe()}"),
    ]


def _of_inner(claim: StatedGuarantee, *, guess: bool = False) -> str:
    """Say whose number a card has where two units are protected, and that of the other one."""
    inner = claim.within
    if inner is None:
        return ""
    if guess:
        return f". For one {inner.noun}: at most {percent_up(inner.guess)}"
    return f", for one {claim.noun}; for one {inner.noun} ε = {inner.epsilon_text}"


def _but(claim: StatedGuarantee) -> str:
    excepted = [*claim.apart, *(["what was read from the data for the plan"] if claim.from_data else [])]
    return f", but for {' and '.join(excepted)}" if excepted else ""


def about_part(published: Published, claim: StatedGuarantee) -> str:
    """Write what this is and how to read it."""
    tidied = published.plan.output.tidy and any(table.tidy is not None for table in published.tables)
    parts = [
        paragraph(
            "These tables were computed from private data. Random noise was added to every number before it left. So "
            "there is a proven limit to what anybody can find out about one person from them, whatever else they know. "
            "What the tables say about groups stays useful: a number comes with how far off it may be, or the "
            "dictionary says why not."
        ),
        paragraph(
            "The plan itself holds facts that were read from the data without noise. That limit does not cover them; "
            "they are listed under Limits and notes."
        )
        if claim.from_data
        else "",
        paragraph(who_words(claim)),
        paragraph(
            f"The released (raw) values are what the noise left: counts and sums are right on average "
            f"{counted_words(published)}, and can be negative or fractional. Compute with these."
            + (
                " Tidy values are made from them to be whole, not negative, and to add up. Print these; their small "
                "errors no longer cancel out."
                if tidied
                else ""
            )
        ),
    ]
    return section("about", "What this is", parts)


# --- closing: The end of the page: hidden groups, what is not protected, notes, and how to check all of it. ---


def hidden_part(published: Published) -> str:
    """Write which groups stay hidden; nothing if all are listed."""
    hidden = [table for table in published.tables if table.threshold]
    if not hidden:
        return ""
    told = paragraph(
        "Where nobody listed the groups in advance, even the name of a small group could give somebody away. Such a "
        "group appears only if enough people are in it, counted with noise of its own. How many are hidden is not told."
    )
    return section(
        "hidden", "Groups that stay hidden", [told, bullets(f"{t.plan.title}: {t.threshold}" for t in hidden)]
    )


def limits_part(published: Published, claim: StatedGuarantee) -> str:
    """Write what the promise does not cover, and the notes of all tables, each once."""
    invariants = [invariant_words(each) for each in published.plan.invariants]
    notes = dict.fromkeys(note for table in published.tables for note in table.raw.notes)
    parts = [
        "<h3>Not protected</h3>",
        bullets(unprotected(published, claim)),
        *(["<h3>Exact numbers</h3>", _typed(), bullets(invariants)] if invariants else []),
        "<h3>What to know when you use the numbers</h3>",
        paragraph(bounded_words(published)),
        bullets(notes),
    ]
    return section("limits", "Limits and notes", parts)


def _typed() -> str:
    return paragraph("These were typed into the plan, never read from the data, and tidy values respect them:")


def verify_part(published: Published) -> str:
    """Write how anybody checks the bundle, and how the holder of the ledger does."""
    mark = published.ledger
    parts = [
        paragraph(
            "Beside this page are the tables, the plan, the guarantee in formulas, and the hash of every file. Run:"
        ),
        f"<pre><code>{words(verify_command(published))}</code></pre>",
        paragraph(
            "It finds every file that was changed, added or lost, and every number that differs between files. Whoever "
            "holds the ledger adds --ledger FILE: then each raw number is compared with what was stored, to the last "
            "digit, the price with what was paid, and every file with the digest that was recorded."
        ),
        paragraph(signer_words(published)),
    ]
    if mark is not None:
        facts = [f"charge {mark.charge} of data set {mark.dataset}", f"hash {mark.hash}"]
        parts.append(f'<p class="note">Ledger: {code(", ".join(facts))}</p>')
    parts.append(f'<p class="note">Plan: {code(f"SHA-256 {sha256(published.plan.written.encode())}")}</p>')
    return section("verify", "How to check it", parts)


# --- budget ---
# The budget: what each table spends alone, what the release spends, and what the data set may ever spend.


_MANY = 30  # Tables of which each gets a bar.


def budget_part(published: Published, claim: StatedGuarantee) -> str:
    """Write the section of the budget."""
    titles = {table.plan.name: table.plan.title for table in published.tables}
    titles |= {running.plan.name: f"{running.plan.title or running.plan.name} (once)" for running in published.running}
    alone = [(titles[name], level) for name, level in claim.alone if math.isfinite(level)][:_MANY]
    spent = [
        (name, level, f"ε = {significant_up(level)}") for name, level in [*alone, (_together(claim), claim.epsilon)]
    ]
    parts = [
        paragraph(
            "Privacy is spent like money: every table that is published tells a little about everybody in it. ε "
            "(epsilon) measures how much; smaller is safer. A ledger writes every expense down before the data are "
            "read."
        ),
        _bars("What is spent, as ε", spent, strong={spent[-1][0]}),
        paragraph(
            "Each table is shown as if it were alone, at the same δ. What they spend together is worked out as a "
            "whole.",
            kind="note",
        )
        if len(alone) > 1
        else "",
        *_lifetime(claim),
        paragraph(lifetime_words(claim)),
    ]
    return section("budget", "The budget", parts)


def _lifetime(claim: StatedGuarantee) -> list[str]:
    """Draw what is left of the budget as the ledger counts it, or else this release beside the whole of it."""
    if claim.left is not None and claim.budget.kind != "unlimited":
        left = math.floor(1000 * claim.left.share) / 10
        rows = [("used so far", 100 - left, f"{100 - left:.1f} %"), ("left", left, f"{left:.1f} %")]
        return [
            _bars("The lifetime budget after this release, in per cent", rows, strong={"used so far"}),
            *_rule(claim),
        ]
    whole = claim.budget.epsilon
    if whole is None:
        return []
    levels = [("everything here", claim.epsilon), ("the whole lifetime of the data", float(whole))]
    rows = [(name, level, f"ε = {significant_up(level)}") for name, level in levels]
    return [_bars("Everything here, and the lifetime budget, as ε", rows, strong={"everything here"})]


def _rule(claim: StatedGuarantee) -> list[str]:
    """Say why the share of the budget that is used is not the share of its ε."""
    told = (
        "Shares are counted by the rule of the ledger, under which many small expenses add up more slowly than their ε."
    )
    return [paragraph(told, kind="note")] if claim.budget.kind == "approximate" else []


def _together(claim: StatedGuarantee) -> str:
    """Name the whole; a series that protects single days is beside it."""
    return f"everything here together{', without ' + ' and '.join(claim.apart) if claim.apart else ''}"


def _bars(caption: str, rows: Sequence[tuple[str, float, str]], *, strong: set[str]) -> str:
    scale = scale_for(length for _, length, _ in rows)
    drawn = [(name, strip(scale, length, accent=name in strong), told) for name, length, told in rows]
    return bar_table(caption, drawn, scale, kind="chart wide")


# --- series: Totals so far: a picture of each series, its last days in numbers, and what all its days cost. ---


_LAST = 5  # Days in numbers.


def series_part(published: Published) -> str:
    """Write the section of all series; nothing if there are none."""
    if not published.running:
        return ""
    told = paragraph(
        "A running total is published day after day. All its days were paid for once, before the first, and share "
        "their noise, so that the line can be followed without paying for each point of it."
    )
    each = (_series(published, running, number) for number, running in enumerate(published.running, 1))
    return section("running", "Totals so far", [told, *each])


def _series(published: Published, running: RunningRelease, number: int) -> str:
    table = running.table
    days, total = table.column("day"), table.column("total")
    cells = [total[row] for row in range(len(table))]
    drawn = course(
        [shown(days, row) for row in range(len(table))],
        [float(cell.value) for cell in cells],
        [float(cell.low or 0) for cell in cells],
        [float(cell.high or 0) for cell in cells],
        name=f"series-{number}",
    )
    rows = "".join(
        f'<tr><th class="key" scope="row">{words(shown(days, row))}</th>'
        f'<td class="number">{words(shown(total, row))}</td></tr>'
        for row in range(max(0, len(table) - _LAST), len(table))
    )
    path = table_file(running.plan.name, published.plan.output.formats[0], tidy=False, dummy=published.ledger is None)
    where = f'<p class="note">All {len(table):,} days are in <a href="{words(path)}">{words(path)}</a>.</p>'
    told = paragraph(series_words(published, running))
    return (
        f"<article><h3>{words(running.plan.title or running.plan.name)}</h3>{told}{drawn}"
        f"<table><caption><b>The last days</b></caption><tbody>{rows}</tbody></table>{where}</article>"
    )


# --- attacker: What the best attacker can gain, in words and pictures. ---


def attacker_part(published: Published, claim: StatedGuarantee) -> str:
    """Write the section of the attacker."""
    alarms, found = best_tests(claim.event, published.relation)
    tenth = found[alarms.index(0.1)]
    told = (
        f"Every test that anybody could run. One with 10 % false alarms finds at most {percent_up(tenth)} of those who "
        "are in the data; blind guessing finds 10 %."
    )
    secret = claim.secret.replace("one certain", "one")
    drawn = [guess_figure(claim.guess, secret, "these tables"), figure(caught(alarms, found, name="tests"), told)]
    parts = [
        paragraph(guess_words(claim)),
        paragraph(factor_words(claim)),
        pictures(drawn),
        *([paragraph(told, kind="note")] if (told := pair_words(claim)) else []),
        paragraph(
            "This is not a test of known attacks: it is proven for all of them, those of tomorrow included, by the "
            "noise that was added.",
            kind="note",
        ),
    ]
    return section("attacker", "What the best attacker can gain", parts)
