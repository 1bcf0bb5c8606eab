"""The head of the page: whose eyes it is for, the verdicts, and what is promised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.evaluation.page.marks import paragraph, prose, section, words
from discreet.evaluation.promised import guess_of, promise_text
from discreet.evaluation.words import percent
from discreet.plots import hundred
from discreet.privacy.notprivate import HEADING
from discreet.release.bundle.claims import percent_up

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["opening", "promise_part", "verdicts_part"]

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
