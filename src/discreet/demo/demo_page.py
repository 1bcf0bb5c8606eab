"""Both attacks as one page with pictures. It shows exact facts, so it is no part of what is published."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.attacks import Success
from discreet.demo.narration import DemoResult, Person, count_words, difference_words, guess_words, per_cent
from discreet.plots import Scale, ruler, strip
from discreet.release.report.page_style import STYLE, paragraph, policy_for, section, words

__all__ = ["attack_page"]

_MOST = 12  # People who are listed.
_LOOKS = f"{STYLE}.drawn{{width:52%}}td,th{{vertical-align:top}}.chart td,.chart th{{vertical-align:middle}}\n"


def attack_page(found: DemoResult) -> str:
    """Write the whole page."""
    parts = (_linked(found), _differences(found), _people(found), _meaning(found))
    return f"{_head()}<body>{_opening(found)}<main>{''.join(parts)}</main>{_foot()}</body></html>\n"


def _head() -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy_for(_LOOKS)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>Two attacks</title><style>{_LOOKS}</style></head>"
    )


def _opening(found: DemoResult) -> str:
    exact, private = found.exact, found.private
    cards = (
        (f"{found.linkage.named.hits:,}", f"of {found.linkage.named.of:,} stays without names get a name"),
        (f"{exact.named.hits} of {exact.named.of}", "people are given away by exact tables of counts"),
        (
            f"{private.named.hits} of {private.named.of}",
            f"are guessed right from private tables; {private.without.hits} of {private.without.of} without their row",
        ),
    )
    listed = "".join(f'<div class="card"><b>{words(big)}</b><span>{words(text)}</span></div>' for big, text in cards)
    return (
        '<header><p class="kicker">Northmere, a county that does not exist</p><h1>Two attacks</h1>'
        '<p class="dummy">Not to be published. This page shows exact facts about people; here they are made up.</p>'
        f'<div class="cards">{listed}</div></header>'
    )


def _linked(found: DemoResult) -> str:
    linked = found.linkage
    rows = [("fit exactly one voter", linked.named.hits, True), ("would fit by luck alone", linked.by_chance, False)]
    named = "".join(
        f"<tr><th scope='row'>{words(row['name'])}</th><td>{words(row['admitted'])}</td>"
        f"<td>{words(row['diagnosis'])}</td></tr>"
        for row in linked.sample
    )
    parts = (
        paragraph(
            f"The hospitals give away {linked.named.of:,} stays without names. ZIP code, birth date and sex are left "
            "in. The list of voters has the same three, and names. Joining them takes one line of SQL."
        ),
        _counts(f"Stays, of {linked.named.of:,}", rows, linked.named.of),
        paragraph(
            f"{per_cent(linked.listed.share)} of all voters share their ZIP code, birth date and sex with nobody else "
            f"on the list. So about {per_cent(linked.right)} of the names are right."
        ),
        "<table><thead><tr><th>name</th><th>admitted</th><th>diagnosis</th></tr></thead>"
        + f"<tbody>{named}</tbody></table>",
    )
    return section("linkage", "A list without names gets its names back", parts)


def _differences(found: DemoResult) -> str:
    exact, private = found.exact, found.private
    rows = [
        ("exact tables", exact.named, True),
        ("… without their row", exact.without, False),
        ("by the plan", private.named, True),
        ("… without their row", private.without, False),
    ]
    parts = [
        paragraph(
            f"The same {found.tables} tables, published exactly and by the plan. In the exact ones every number from 1 "
            "to 4 is hidden, as many offices do. Two tables that differ by a few patients are subtracted; where one "
            f"patient is left, the diagnosis is read off. That happens to {exact.named.of} people."
        ),
        _shares("Whose diagnosis is guessed right", rows),
        paragraph(
            "“Without their row” is the same attacker on the same tables, made as if that one person had never been a "
            "patient: all that is right there is known about people in general. The lines show where the true share "
            "lies, 95 times in 100.",
            kind="note",
        ),
        *_anew(found),
    ]
    return section("differencing", "Tables are subtracted until one person is left", parts)


def _anew(found: DemoResult) -> list[str]:
    drawn, without, ceiling = found.private.fresh, found.private.fresh_without, found.private.ceiling
    if drawn is None or without is None or ceiling is None:
        return []
    rows = [("with their row", drawn, True), ("without their row", without, False)]
    return [
        paragraph(
            f"One set of tables could be luck. So the noise was drawn anew {drawn.of:,} times. The triangle is what no "
            f"attacker can exceed, whoever they are and whatever they know: {per_cent(ceiling, 1)}, by the proof "
            "behind ε."
        ),
        _shares("Right guesses on tables drawn anew", rows, mark=ceiling),
    ]


def _people(found: DemoResult) -> str:
    listed = "".join(_row(person) for person in found.people[:_MOST])
    head = "<tr><th>who</th><th>exact tables</th><th>by the plan</th></tr>"
    parts = [
        paragraph(difference_words(found.example)),
        f"<table><caption><b>Who is given away</b> (the first {min(_MOST, len(found.people))} of {len(found.people)})"
        f"</caption><thead>{head}</thead><tbody>{listed}</tbody></table>",
        paragraph("Private counts may fall below zero; the tidy ones beside them in the bundle do not.", kind="note"),
    ]
    return section("people", "How it is done", parts)


def _row(person: Person) -> str:
    exact, private = (_subtracted(*counts) for counts in (person.exact, person.private))
    who = person.name or "Somebody who is not on the list of voters"
    return (
        f"<tr><th scope='row'>{words(who)}, who {words(person.facts)}</th>"
        f"<td>{words(exact)}<br>{words(person.diagnosis)}</td><td>{words(private)}</td></tr>"
    )


def _subtracted(more: float, fewer: float) -> str:
    return f"{count_words(more)} − {count_words(fewer)} = {count_words(more - fewer)}"


def _meaning(found: DemoResult) -> str:
    return section(
        "meaning",
        "Why the private tables keep quiet",
        [
            paragraph(
                "Every published number has noise in it that is larger than any one person. The tables still tell how "
                "many patients a district has; they do not tell whether you are among them. ε says how much one person "
                f"can matter to everything that is published: here ε = {found.epsilon:.2f}. Whoever guesses whether "
                f"somebody is in the data, at even odds before, is right at most {guess_words(found.priced)} % of "
                "the time after."
            )
        ],
    )


def _counts(caption: str, rows: Sequence[tuple[str, int, bool]], most: int) -> str:
    scale = Scale(0.0, float(most))
    drawn = [(name, strip(scale, float(count), accent=accent), f"{count:,}") for name, count, accent in rows]
    return _chart(caption, drawn, scale)


def _shares(caption: str, rows: Sequence[tuple[str, Success, bool]], *, mark: float | None = None) -> str:
    scale = Scale(0.0, 100.0)
    drawn = []
    for name, success, accent in rows:
        low, high = (100 * end for end in success.interval())
        picture = strip(
            scale,
            100 * success.share,
            low=low,
            high=high,
            accent=accent,
            mark=None if mark is None else 100 * mark,
        )
        drawn.append((name, picture, per_cent(success.share)))
    return _chart(f"{caption}, in per cent", drawn, scale)


def _chart(caption: str, rows: Sequence[tuple[str, str, str]], scale: Scale) -> str:
    body = "".join(
        f'<tr><th class="key" scope="row">{words(name)}</th><td class="drawn">{picture}</td>'
        f'<td class="number">{words(number)}</td></tr>'
        for name, picture, number in rows
    )
    last = f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td><td></td></tr>'
    return f'<table class="chart"><caption><b>{words(caption)}</b></caption><tbody>{body}{last}</tbody></table>'


def _foot() -> str:
    return "<footer><p>Made with Discreet, by its attack lab. This page loads nothing and runs nothing.</p></footer>"
