"""The report of an evaluation: one page, verdicts first; it loads nothing and runs nothing."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.formatting import percent, percent_up, rounded
from discreet.lab.evaluation.closest_records import Closeness, ClosestDistances
from discreet.lab.evaluation.noisy_distances import NoisyWay
from discreet.lab.evaluation.page_sections import attacks_part, columns_part, likeness_part, links_part
from discreet.lab.evaluation.promised_limits import columns_text, guess_of, promise_text
from discreet.lab.evaluation.usefulness import WorkloadTable
from discreet.pages import kit
from discreet.pages.kit import bar_table, bullets, figure, guess_figure, paragraph, pictures, prose, section, table
from discreet.pages.svg import Scale, page_lines, scale_for, strip, words
from discreet.privacy.not_private import HEADING
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.lab.evaluation.evaluation import Evaluation

__all__ = [
    "closest_part",
    "models_part",
    "opening",
    "page",
    "pictures_part",
    "png",
    "priced_part",
    "promise_part",
    "questions_part",
    "verdicts_part",
]

# --- opening: The head of the page: whose eyes it is for, the verdicts, and what is promised. ---


_STANDINGS = {
    "custodian": (
        f"{HEADING}. This page compares with the real table and shows exact facts about the people in it. Keep it "
        "where the table is kept. What may be published are the synthetic table, if nothing below speaks against it, "
        "and reports against public rows or with noise."
    ),
    "public": (
        "This page may be published. The private table was not read for it: all comparisons are with rows that are "
        "public."
    ),
    "charged": (
        "This page may be published. Every number on it that depends on the private table has noise in it, and was "
        "paid for before the table was read."
    ),
}


def opening(evaluation: Evaluation) -> str:
    """Write the head."""
    private = evaluation.standing == "custodian"
    mark = HEADING if private else "May be published"
    banner = _STANDINGS[evaluation.standing]
    pictures = evaluation.likeness.sheets is not None
    what = "synthetic pictures" if pictures else f"synthetic rows, {len(evaluation.columns)} columns"
    size = f"{evaluation.rows:,} {what}, compared with {evaluation.compared}"
    parts = [
        f'<p class="by">{words(size)}</p><p class="{"dummy" if private else "note"}">{words(banner)}</p>',
        kit.cards(_cards(evaluation)),
    ]
    return f'<div class="mark{"" if private else " fine"}" role="note">{words(mark)}</div>' + kit.opening(
        "Synthetic data, evaluated", evaluation.title, parts
    )


def _cards(evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    promise, likeness, priced = evaluation.promise, evaluation.likeness, evaluation.priced
    if promise is None:
        yield "Promised", "nothing", "no limit to what attackers can find"
    else:
        limit = f"a guess is right at most {percent_up(guess_of(promise))}"
        yield "Promised", promise_text(promise), "but attackers found more" if evaluation.alarming else limit
    if evaluation.attacked is not None:
        yield "Attacks", *_attacks(evaluation)
    kept = None if likeness.fidelity is None else likeness.fidelity.kept
    if kept is not None:
        yield "Links kept", percent(kept), "between any two columns"
    down = likeness.downstream
    if down is not None:
        shown = [f"{one:.2f}" if down.number else percent(one) for one in (down.synthetic, down.real)]
        yield "Models trained on it", shown[0], f"trained on real rows: {shown[1]}"
    if priced is not None:
        way = priced.ways[-1]
        error = f"± {percent(way.mean_error, 1)}, counts of {way.columns} columns"
        yield "Differs by", percent(max(0.0, way.mean), 1), error


def _attacks(evaluation: Evaluation) -> tuple[str, str]:
    attacked = evaluation.attacked
    if evaluation.alarming:
        return "give people away", "do not publish"
    if attacked is None or not attacked.searches:
        return "not run", "they need a hold-out or refits"
    better = any(one.finds(evaluation.error) for one in attacked.searches)
    return ("found a little", "within the promise") if better else ("found nobody", "more often than guessing")


def verdicts_part(evaluation: Evaluation) -> str:
    """Write the verdicts, privacy first."""
    listed = "".join(
        f'<li><span class="badge {one.about} {one.kind}">{words(one.word)}</span><span>{prose(one.text)}</span></li>'
        for one in evaluation.verdicts
    )
    return section("short", "In short", [f'<ul class="verdicts">{listed}</ul>'])


def promise_part(evaluation: Evaluation) -> str:
    """Write what is promised, in words and in a picture."""
    promise = evaluation.promise
    if promise is None:
        told = (
            "Nothing is promised. A table that was made without a promise can give people away in ways that no test "
            "finds. Tables by dp.synthesize come with one."
        )
        return section("promise", "What is promised", [paragraph(told)])
    note = (
        "The promise follows from the noise that was added, and holds against attacks that nobody has thought of yet."
    )
    if evaluation.attacked is not None:
        note += " The attacks below are known ones. They can show that a promise is broken, not that one is kept."
    is_there = promise.relation is Relation.ADD_REMOVE
    secret = (
        f"whether one {promise.unit} is in the data" if is_there else f"which of two things one {promise.unit} says"
    )
    broken = "This is what was claimed. Attackers found more than it allows, so it does not hold."
    parts = [
        paragraph(broken, kind="dummy") if evaluation.alarming else "",
        paragraph(str(promise)),
        pictures([guess_figure(guess_of(promise), secret, "the synthetic table, whoever guesses and however")]),
        paragraph(note, kind="note"),
    ]
    return section("promise", "What is promised", parts)


# --- pictures: Sample sheets of pictures, inside the page. ---


def pictures_part(evaluation: Evaluation) -> str:
    """Write the section; nothing if the table is no pictures."""
    sheets = evaluation.likeness.sheets
    if sheets is None:
        return ""
    shown = [
        ("Synthetic pictures, one row a class", sheets.synthetic),
        ("Real pictures", sheets.real),
        ("The mean of each class: synthetic above, real below", sheets.means),
        ("Synthetic pictures, and below each the real one that is closest", sheets.closest),
    ]
    figures = [_figure(title, picture) for title, picture in shown]
    told = f"Classes, from top to bottom: {', '.join(sheets.classes)}."
    return section("pictures", "Sample sheets", [paragraph(told), pictures(figures, kind="pictures maps")])


def _figure(title: str, picture: NDArray[np.uint8]) -> str:
    data = base64.b64encode(png(picture)).decode()
    height, width = picture.shape
    zoom = max(1, round(460 / width))
    image = (
        f'<img class="sheet" alt="{words(title)}" width="{zoom * width}" height="{zoom * height}" '
        f'src="data:image/png;base64,{data}">'
    )
    return figure(image, title)


def png(picture: NDArray[Any]) -> bytes:
    """Write a grey picture of 0 to 255 as a PNG file."""
    height, width = picture.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), np.asarray(picture, np.uint8)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# --- priced: Noisy distances that were paid for. ---


_SHOWN = 15


def priced_part(evaluation: Evaluation) -> str:
    """Write the section."""
    priced = evaluation.priced
    if priced is None:
        return ""
    limit = f"about one {priced.spent.unit} no more than {promise_text(priced.spent)} allows"
    parts = [
        paragraph(
            "Count the rows of every combination of values, in the synthetic table and in the real one, and move rows "
            "until both agree: the share of rows that must move is the distance. Noise was added to every distance, so "
            f"that together they tell {limit}. The lines show where the exact distance lies, 95 times in 100; a noisy "
            "distance can fall below 0 %."
        ),
        *(_way(way, evaluation) for way in priced.ways),
    ]
    return section("distances", "How like the real table it is", parts)


def _way(way: NoisyWay, evaluation: Evaluation) -> str:
    named = [(f"mean of {len(way.by_clique)} tables", way.mean, way.mean_error)]
    named += [
        (columns_text([evaluation.columns[at] for at in one]), value, way.error) for one, value in way.ordered(_SHOWN)
    ]
    scale = scale_for(100 * end for _, value, error in named for end in (value - error, value + error))
    rows = []
    for place, (name, value, error) in enumerate(named):
        low, high = 100 * (value - error), 100 * (value + error)
        shown = f"{100 * value:.1f}".replace("-0.0", "0.0").replace("-", "−")
        told = f"{shown} ± {percent(error, 1)}"
        rows.append((name, strip(scale, 100 * value, low=low, high=high, accent=place == 0), told))
    which = "one column" if way.columns == 1 else f"{way.columns} columns"
    largest = "" if len(way.by_clique) <= _SHOWN else f", and the {_SHOWN} that seem largest"
    return bar_table(f"Counts of {which}{largest}, in per cent", rows, scale)


# --- uses: What the table is good for: models that are trained on it, and questions that it answers. ---


def models_part(evaluation: Evaluation) -> str:
    """Write the section of models."""
    down = evaluation.likeness.downstream
    if down is None:
        return ""
    scale = scale_for([one for each in down.models for one in (each.real, each.synthetic)]) if down.number else None
    scale = Scale(0.0, 100.0) if scale is None else scale
    times = 1.0 if down.number else 100.0
    rows = []
    for one in down.models:
        for kind, value in (("synthetic", one.synthetic), ("real", one.real)):
            told = f"{value:.2f}" if down.number else percent(value)
            drawn = strip(scale, times * value, accent=kind == "synthetic")
            rows.append((f"{one.name}, on {kind} {down.kind}", drawn, told))
    if not down.number:
        rows.append(("naming the commonest", strip(scale, 100 * down.naive), percent(down.naive)))
    measure = "R², where 1 is exact" if down.number else "right answers, in per cent"
    seen = (
        f" No {down.kind} were held out, so those of the test were among those that were synthesised: the figures may "
        "be a little too good."
        if down.seen
        else ""
    )
    parts = [
        paragraph(
            f"Models learn to tell {down.label} from everything else, once from synthetic {down.kind} and once from "
            f"real ones, and are tested on the same {down.tested:,} real {down.kind}.{seen}"
        ),
        bar_table(f"{down.label}: {measure}", rows, scale),
    ]
    return section("models", "Models trained on it", parts)


def questions_part(evaluation: Evaluation) -> str:
    """Write the section of questions."""
    asked = evaluation.likeness.workload
    if asked is None or not asked.asked:
        return ""
    promised = asked.asked[0].alone is not None
    told = (
        "Each row is a table of counts. “Synthetic” is the error within which 95 of 100 of its cells are, if they are "
        f"read off the synthetic table and scaled to the {asked.rows:,} rows of {evaluation.compared}."
    )
    if promised:
        told += (
            " “Asked directly” is the ± of a private answer to this one question that spends the same ε, and “all "
            "asked directly” if all these questions share it. Where a direct answer is more exact it is set in bold: "
            "then that question is better asked."
        )
    heads = ("table of counts", "cells", "synthetic", *(("asked directly", "all asked directly") if promised else ()))
    listed = table(heads, [_row(one) for one in asked.asked])
    parts = [paragraph(told), f'<div class="questions">{listed}</div>']
    return section("questions", "Questions, asked both ways", parts)


def _row(asked: WorkloadTable) -> tuple[str, ...]:
    first = (words(columns_text(asked.columns)), words(f"{asked.cells:,}"), words(f"± {rounded(asked.synthetic)}"))
    if asked.alone is None or asked.shared is None:
        return first
    return (*first, _direct(asked.alone, asked.better_alone), _direct(asked.shared, asked.better_shared))


def _direct(error: float, better: bool) -> str:
    told = words(f"± {rounded(error)}")
    return f'<b class="better">{told}</b>' if better else told


# --- closest: The distance to the closest record, with what it does not show. ---


def closest_part(evaluation: Evaluation) -> str:
    """Write the section."""
    near = None if evaluation.attacked is None else evaluation.attacked.closeness
    if near is None:
        return ""
    parts = [
        paragraph(
            "For each person, the closest row was looked for: 0 is a row that is equal in everything, 1 one that is as "
            "far as can be in every column. People often show this figure to argue that a table is safe. It is here "
            "because it is asked for, beside what it has to be compared with."
        ),
        pictures([figure(_curves(near))]),
        table(("closest row", "equal", "half are within"), _rows(near)),
        _pitfalls(near),
    ]
    return section("closest", "How close the closest rows are", parts)


def _named(near: Closeness) -> dict[str, ClosestDistances]:
    found = {"people in the data, to synthetic rows": near.members}
    if near.others is not None:
        found["people held out, to synthetic rows"] = near.others
    return {**found, "people in the data, to other real rows": near.real}


def _curves(near: Closeness) -> str:
    named = _named(near)
    shares = np.linspace(0, 1, len(near.members.curve)).tolist()
    # The few who are far from everybody would press all others into a corner.
    most = max(max(spread.quantiles) for spread in named.values()) * 1.15 or 1.0
    curves = {}
    for name, spread in named.items():
        inside = [(0.0, 0.0), *((d, s) for d, s in zip(spread.curve, shares, strict=True) if d <= most)]
        curves[name] = [d for d, _ in inside] + [most], [s for _, s in inside] + [inside[-1][1]]
    return page_lines(curves, across="distance to the closest row", up="people within it", name="closest-rows")


def _rows(near: Closeness) -> list[tuple[str, ...]]:
    return [
        (words(name), words(percent(spread.equal.share, 1)), words(f"{spread.middle:.3f}"))
        for name, spread in _named(near).items()
    ]


def _pitfalls(near: Closeness) -> str:
    told = [
        "It proves nothing. A table can be far from every person and still say who is in it, for example by a count "
        "that only one person could have made. Only the promise excludes that.",
        "A small distance is no leak. Where people are alike, an honest table has rows like theirs. What matters is "
        "whether people in the data are closer to it than people who were held out.",
        "It must not be used as a filter. To delete synthetic rows that are close to real ones makes a hole around "
        "each person that shows where they are, and breaks the promise.",
    ]
    if near.others is None:
        told.append(
            "No rows were held out here, so the comparison that matters is missing: other real rows are no stand-in, "
            "since honest tables may be smoother or rougher than the real one."
        )
    return f'<div class="pitfall"><h3>What this does not show</h3>{bullets(told)}</div>'


# --- page: The whole page. It loads nothing and runs nothing; pictures are inside it. ---


_STYLE = (
    kit.PAGE_STYLE
    + """\
.cards{grid-template-columns:repeat(auto-fit,minmax(15rem,1fr))}
.mark{position:sticky;top:0;z-index:1;background:var(--warn);color:var(--paper);text-align:center;font-weight:600;
font-size:.92rem;padding:.35rem 1rem}
.mark.fine{background:var(--bar);color:#fff}
.verdicts{list-style:none;padding:0;margin:1rem 0}
.verdicts li{display:grid;grid-template-columns:4.2rem 1fr;gap:0 .9rem;align-items:start;margin:.75rem 0}
.badge{display:inline-block;text-align:center;border-radius:.4rem;font-weight:600;font-size:.88rem;padding:.1rem 0;
margin-top:.2rem;border:2px solid var(--bar);color:var(--link)}
.badge.look{border-color:var(--accent);color:var(--accent)}
.badge.bad{border-color:var(--warn);color:var(--warn)}
.badge.privacy.bad{background:var(--warn);color:var(--paper)}
.chart td.number{white-space:nowrap}
.columns{columns:17rem;column-gap:1.8rem;margin:1rem 0}
.columns article{border-top:1px solid var(--grid);padding:.5rem 0 1.1rem;break-inside:avoid}
.columns h3{font-size:1rem;margin:0;display:flex;justify-content:space-between;gap:.8rem;font-family:inherit}
.columns h3 span{color:var(--quiet);font-weight:400;font-size:.88rem;white-space:nowrap}
.overlaid{display:block;width:100%;height:6rem;margin-top:.4rem}
.columns table{font-size:.88rem}
.columns .key{width:44%}
.columns td.drawn{width:38%}
.columns td,.columns th{padding-top:0;padding-bottom:0}
.sheet{image-rendering:pixelated;max-width:100%;height:auto;display:block;border-radius:.3rem}
.pitfall{background:var(--card);border-radius:.7rem;padding:.3rem 1.1rem .6rem;margin:1rem 0}
.pitfall h3{margin-top:.8rem}
.better{color:var(--accent);font-weight:600}
@media(max-width:34rem){
.verdicts li{grid-template-columns:1fr;gap:.15rem}
.badge{justify-self:start;padding:.1rem .7rem}
.mark{font-size:.78rem;padding:.35rem .4rem}
.questions td:nth-child(2),.questions th:nth-child(2){display:none}
}
@media print{
.mark{position:static}
}
"""
)

_PARTS = (
    verdicts_part,
    promise_part,
    attacks_part,
    closest_part,
    pictures_part,
    likeness_part,
    priced_part,
    columns_part,
    links_part,
    models_part,
    questions_part,
)


def page(evaluation: Evaluation) -> str:
    """Write the page."""
    main = [part(evaluation) for part in _PARTS]
    main.append(section("measured", "How it was measured", [bullets(evaluation.notes)]))
    title = evaluation.title if evaluation.standing != "custodian" else f"NOT PRIVATE: {evaluation.title}"
    return kit.document(title, opening(evaluation), main, style=_style(evaluation.heading), images=True)


def _style(heading: str) -> str:
    """Add the heading, one of our own texts, at the top of every printed sheet."""
    return f'{_STYLE}@page{{margin:20mm 15mm;@top-center{{content:"{heading}";font:600 9pt sans-serif}}}}\n'
