"""The report of an evaluation: one page, verdicts first; it loads nothing and runs nothing."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.lab.evaluation.closest_records import Closeness, ClosestDistances
from discreet.lab.evaluation.noisy_distances import NoisyWay
from discreet.lab.evaluation.page.attack_parts import attacks_part, columns_part, likeness_part, links_part
from discreet.lab.evaluation.page.page_style import bars, listing, paragraph, prose, style
from discreet.lab.evaluation.promised_limits import columns_text, guess_of, number, percent, promise_text
from discreet.lab.evaluation.usefulness import WorkloadTable
from discreet.plots import Scale, hundred, page_lines, scale_for, strip
from discreet.privacy.not_private import HEADING
from discreet.release.bundle.claims import percent_up
from discreet.release.report.page_style import bullets, policy_for, section, words

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
    return (
        f'<div class="mark{"" if private else " fine"}" role="note">{words(mark)}</div>'
        '<header><p class="kicker">Synthetic data, evaluated</p>'
        f'<h1>{words(evaluation.title)}</h1><p class="by">{words(size)}</p>'
        f'<p class="{"dummy" if private else "note"}">{words(banner)}</p>'
        f'<div class="cards">{"".join(_cards(evaluation))}</div></header>'
    )


def _cards(evaluation: Evaluation) -> Iterator[str]:
    promise, likeness, priced = evaluation.promise, evaluation.likeness, evaluation.priced
    if promise is None:
        yield _card("Promised", "nothing", "no limit to what attackers can find")
    else:
        limit = f"a guess is right at most {percent_up(guess_of(promise))}"
        yield _card("Promised", promise_text(promise), "but attackers found more" if evaluation.alarming else limit)
    if evaluation.attacked is not None:
        yield _card("Attacks", *_attacks(evaluation))
    kept = None if likeness.fidelity is None else likeness.fidelity.kept
    if kept is not None:
        yield _card("Links kept", percent(kept), "between any two columns")
    down = likeness.downstream
    if down is not None:
        shown = [f"{one:.2f}" if down.number else percent(one) for one in (down.synthetic, down.real)]
        yield _card("Models trained on it", shown[0], f"trained on real rows: {shown[1]}")
    if priced is not None:
        way = priced.ways[-1]
        error = f"± {percent(way.mean_error, 1)}, counts of {way.columns} columns"
        yield _card("Differs by", percent(max(0.0, way.mean), 1), error)


def _attacks(evaluation: Evaluation) -> tuple[str, str]:
    attacked = evaluation.attacked
    if evaluation.alarming:
        return "give people away", "do not publish"
    if attacked is None or not attacked.searches:
        return "not run", "they need rows that were held out"
    better = any(one.finds(evaluation.error) for one in attacked.searches)
    return ("found a little", "within the promise") if better else ("found nobody", "more often than guessing")


def _card(name: str, value: str, more: str) -> str:
    return f'<div class="card"><span>{words(name)}</span><b>{prose(value)}</b><span>{prose(more)}</span></div>'


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
    after = min(100, math.ceil(Fraction(guess_of(promise)) * 100))
    picture = (
        f"<figure>{hundred(after, name='guesses')}<figcaption>A hundred guesses whether one {words(promise.unit)} is "
        f"in the data. Grey: right by tossing a coin. Orange: at most {after - 50} more with the synthetic table, "
        "whoever guesses and however. Empty: wrong.</figcaption></figure>"
    )
    note = (
        "The promise follows from the noise that was added, and holds against attacks that nobody has thought of yet."
    )
    if evaluation.attacked is not None:
        note += " The attacks below are known ones. They can show that a promise is broken, not that one is kept."
    broken = "This is what was claimed. Attackers found more than it allows, so it does not hold."
    parts = [
        paragraph(broken, kind="dummy") if evaluation.alarming else "",
        paragraph(str(promise)),
        f'<div class="pictures">{picture}</div>',
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
    figures = "".join(_figure(title, picture) for title, picture in shown)
    told = f"Classes, from top to bottom: {', '.join(sheets.classes)}."
    return section("pictures", "Sample sheets", [paragraph(told), f'<div class="pictures maps">{figures}</div>'])


def _figure(title: str, picture: NDArray[np.uint8]) -> str:
    data = base64.b64encode(png(picture)).decode()
    height, width = picture.shape
    zoom = max(1, round(460 / width))
    return (
        f'<figure><img class="sheet" alt="{words(title)}" width="{zoom * width}" height="{zoom * height}" '
        f'src="data:image/png;base64,{data}"><figcaption>{words(title)}</figcaption></figure>'
    )


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
    return bars(f"Counts of {which}{largest}, in per cent", rows, scale)


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
        bars(f"{down.label}: {measure}", rows, scale),
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
    parts = [paragraph(told), listing(heads, [_row(one) for one in asked.asked], kind="questions")]
    return section("questions", "Questions, asked both ways", parts)


def _row(asked: WorkloadTable) -> tuple[str, ...]:
    first = (words(columns_text(asked.columns)), words(f"{asked.cells:,}"), words(f"± {number(asked.synthetic)}"))
    if asked.alone is None or asked.shared is None:
        return first
    return (*first, _direct(asked.alone, asked.better_alone), _direct(asked.shared, asked.better_shared))


def _direct(error: float, better: bool) -> str:
    told = words(f"± {number(error)}")
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
        f'<div class="pictures"><figure class="wide">{_curves(near)}</figure></div>',
        listing(("closest row", "equal", "half are within"), _rows(near)),
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
    return (
        f'<div class="pitfall"><h3>What this does not show</h3><ul>{"".join(f"<li>{words(t)}</li>" for t in told)}'
        "</ul></div>"
    )


# --- page: The whole page. It loads nothing and runs nothing; pictures are inside it. ---


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
    main = "".join(part(evaluation) for part in _PARTS)
    return (
        f"{_head(evaluation)}<body>{opening(evaluation)}<main>{main}{_measured(evaluation)}</main>"
        "<footer><p>Made with Discreet. This page loads nothing and runs nothing; it works offline.</p></footer>"
        "</body></html>\n"
    )


def _head(evaluation: Evaluation) -> str:
    looks = style(evaluation.heading)
    policy = policy_for(looks).replace("default-src 'none';", "default-src 'none'; img-src data:;")
    title = evaluation.title if evaluation.standing != "custodian" else f"NOT PRIVATE: {evaluation.title}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{words(title)}</title><style>{looks}</style></head>"
    )


def _measured(evaluation: Evaluation) -> str:
    return section("measured", "How it was measured", [bullets(evaluation.notes)])
