"""Sections of the evaluation page: what attackers found, and how like the real table the synthetic one is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.formatting import percent, significant_up
from discreet.lab.evaluation.likeness import Associations, Overlay, Way, pairs_matrix
from discreet.lab.evaluation.membership_search import MembershipSearch, SecretGuesses
from discreet.lab.evaluation.promised_limits import columns_text
from discreet.pages.kit import bar_row, bar_table, figure, paragraph, pictures, section, table
from discreet.pages.svg import (
    Scale,
    heatmap,
    overlaid_bars,
    overlaid_key,
    overlaid_steps,
    page_lines,
    scale_for,
    strip,
    words,
)
from discreet.privacy import Relation
from discreet.privacy.events import Grouped
from discreet.release.bundle.claims import best_tests

if TYPE_CHECKING:
    from discreet.lab.attacks.success_rates import Attacker, Success
    from discreet.lab.evaluation.evaluation import Evaluation

__all__ = ["attacks_part", "columns_part", "likeness_part", "links_part"]

_SHOWN = 0.1  # The rate of false alarms that is drawn.
_POINTS = 120
_WAYS = {
    "closest row": "takes those for members to whom a synthetic row is closest",
    "closest row, compared": "asks how much closer it is than in tables that were made without that person",
    "commoner than elsewhere": "takes those whose pairs of values are commoner in the synthetic table than elsewhere",
}


def attacks_part(evaluation: Evaluation) -> str:
    """Write the section; nothing where attacks were not run because the page may be published."""
    attacked = evaluation.attacked
    if attacked is None:
        return ""
    if not attacked.searches and not attacked.guessed:
        told = (
            "To see whether attackers can tell who is in the data, one needs people who are not. Keep some rows out "
            "of the synthesis, drawn at random, and give them as holdout; or give a function that makes the table "
            "anew, as refit."
        )
        return section("attacks", "What attackers found", [paragraph(told)])
    parts = [part for search in attacked.searches for part in _search(search)]
    parts += [part for guessed in attacked.guessed for part in _guessed(guessed)]
    return section("attacks", "What attackers found", parts)


def _search(search: MembershipSearch) -> Iterator[str]:
    yield f"<h3>{'Who is in tables made anew' if search.refitted else 'Who is in the data'}</h3>"
    yield paragraph(_setting(search))
    scale = Scale(0.0, 100.0)
    rows = [_found_row(search, one, scale) for one in search.attackers]
    rows.append(("whoever guesses", strip(scale, 100 * _SHOWN), percent(_SHOWN)))
    yield bar_table(f"People found at {percent(_SHOWN)} false alarms, in per cent", rows, scale)
    yield _legend(search)
    yield pictures([figure(_curves(search))])
    if search.level is not None:
        yield paragraph(_level_words(search))
    yield _details(search)


def _setting(search: MembershipSearch) -> str:
    if search.refitted:
        return (
            f"{search.tables} tables were made anew, each from a random half of the rows, by the same method and with "
            "the same promise. A coin decided for everybody, so the truth is known. Each attacker saw a table and "
            "said who was in its half; the other tables served for comparison."
        )
    return (
        f"Attackers saw the synthetic table and were shown {search.people:,} people who are in the real one and "
        f"{search.others:,} who were held out, without being told who is who."
    )


def _found_row(search: MembershipSearch, attacker: Attacker, scale: Scale) -> tuple[str, str, str]:
    found = attacker.at(_SHOWN)
    low, high = (100 * end for end in found.members.interval())
    ceiling = search.ceiling(found)
    share = 100 * found.members.share
    mark = None if ceiling is None else 100 * ceiling
    alarming = ceiling is not None and found.members.interval(1e-3)[0] > ceiling
    return attacker.name, strip(scale, share, low=low, high=high, mark=mark, accent=alarming), percent(share / 100)


def _legend(search: MembershipSearch) -> str:
    told = "The line shows where the true share lies, 95 times in 100."
    if search.promise is not None:
        told += " The triangle is what no attacker whatever can exceed, by the promise."
        if search.swapped and search.promise.relation is Relation.ADD_REMOVE:
            told += " (Here one person is there instead of another, so a promise about one person counts twice.)"
    listed = "; ".join(f"“{name}” {_WAYS[name]}" for name in (one.name for one in search.attackers))
    return paragraph(f"{told} {listed}.", kind="note")


def _curves(search: MembershipSearch) -> str:
    """Draw people found against false alarms, with the ceiling and guessing."""
    best = search.best[0]
    step = max(1, len(best.alarms) // _POINTS)
    curves = {best.name: ([*best.alarms[::step].tolist(), 1.0], [*best.hits[::step].tolist(), 1.0])}
    if search.promise is not None:
        twice = search.swapped and search.promise.relation is Relation.ADD_REMOVE
        event = Grouped(search.promise.event, 2) if twice else search.promise.event
        rates, most = best_tests(event, search.promise.relation)
        curves["no attacker exceeds"] = list(rates), list(most)
    curves["guessing"] = [0.0, 1.0], [0.0, 1.0]
    where = "anew" if search.refitted else "once"
    return page_lines(curves, across="false alarms (share of the others)", up="people found", name=f"found-{where}")


def _level_words(search: MembershipSearch) -> str:
    assert search.promise is not None
    if not search.level:
        return (
            "From what attackers guessed about these tables nothing follows about ε: it could be as small as one likes."
        )
    level, claimed = significant_up(search.level), significant_up(search.promise.epsilon)
    compared = "more than" if search.level > search.promise.epsilon else "within"
    return f"So many right guesses prove that ε is at least {level}: that is {compared} the promised {claimed}."


def _details(search: MembershipSearch) -> str:
    rows = []
    for attacker in search.attackers:
        for found in attacker.found:
            ceiling = search.ceiling(found)
            rows.append(
                (
                    words(f"{attacker.name}, {percent(found.rate)} false alarms"),
                    words(_hits(found.members)),
                    "–" if ceiling is None else words(percent(ceiling, 1)),
                    words(f"{attacker.auc:.3f}"),
                )
            )
    listed = table(("attacker", "found", "no attacker exceeds", "AUC"), rows)
    return f"<details><summary>all figures</summary>{listed}</details>"


def _hits(success: Success) -> str:
    return f"{success.hits:,} of {success.of:,} ({percent(success.share, 1)})"


def _guessed(guessed: SecretGuesses) -> Iterator[str]:
    where = "tables made anew" if guessed.refitted else "the synthetic table"
    yield f"<h3>{words(guessed.secret)}, guessed from {where}</h3>"
    yield paragraph(
        f"An attacker knows everything about a person but {guessed.secret}, and takes that of the closest synthetic "
        "rows. To be right proves nothing: what is common is guessed of anybody. Only if it is easier for people who "
        "are in the data, their own rows tell on them."
    )
    scale, ceiling = Scale(0.0, 100.0), guessed.ceiling()
    mark = None if ceiling is None else 100 * ceiling
    rows = [
        ("people in the data", _share(guessed.inside, scale, mark, accent=True), percent(guessed.inside.share)),
        ("people who are not", _share(guessed.outside, scale, None), percent(guessed.outside.share)),
        ("naming the commonest", _share(guessed.commonest, scale, None), percent(guessed.commonest.share)),
    ]
    yield bar_table(f"{guessed.secret} guessed right, in per cent", rows, scale)


def _share(success: Success, scale: Scale, mark: float | None, *, accent: bool = False) -> str:
    low, high = (100 * end for end in success.interval())
    return strip(scale, 100 * success.share, low=low, high=high, mark=mark, accent=accent)


# --- likeness_parts ---
# How like the real table it is: counts of one, two and three columns, every column, and what goes together.


_NUMBERS = {1: "one column", 2: "two columns", 3: "three columns"}
_WORST = 8  # Tables that are listed.
_MAPPED = 30  # Columns of a map; more would be too small to see.


def likeness_part(evaluation: Evaluation) -> str:
    """Write the section of distances."""
    fidelity = evaluation.likeness.fidelity
    if fidelity is None:
        return ""
    compared = evaluation.compared
    parts = [
        paragraph(
            f"Count the rows of every combination of values, in the synthetic table and in {compared}, and move rows "
            "until both agree: the share of rows that must move is the distance. 0 % is the same, 100 % nothing in "
            "common."
        ),
        *(part for way in fidelity.ways for part in _way(way, evaluation)),
    ]
    pairs = fidelity.way(2)
    if pairs is not None:
        parts.append(_pairs_map(evaluation, pairs))
    return section("likeness", f"How like {compared} it is", parts)


def _way(way: Way, evaluation: Evaluation) -> Iterator[str]:
    shown = {
        "the synthetic table": way.found.mean,
        "another sample of the same people": way.fresh,
        "columns drawn one by one": way.apart,
    }
    if way.columns == 1:
        del shown["columns drawn one by one"]
    scale = scale_for(100 * value for value in shown.values())
    rows = [
        (name, strip(scale, 100 * value, accent=name == "the synthetic table"), percent(value, 1))
        for name, value in shown.items()
    ]
    yield f"<h3>Counts of {_NUMBERS[way.columns]}</h3>"
    yield bar_table(f"Mean distance of {len(way.found.by_clique):,} tables of counts, in per cent", rows, scale)
    worst = sorted(way.found.by_clique.items(), key=lambda item: -item[1])[:_WORST]
    listed = [(words(columns_text([evaluation.columns[at] for at in one])), words(percent(v, 1))) for one, v in worst]
    more = f"; {way.left_out:,} more were left out" if way.left_out else ""
    yield (
        f"<details><summary>the worst of them{words(more)}</summary>"
        f"{table(('table of counts', 'distance'), listed)}</details>"
    )


def _pairs_map(evaluation: Evaluation, pairs: Way) -> str:
    names = evaluation.columns[:_MAPPED]
    values = [list(row[: len(names)]) for row in pairs_matrix(len(evaluation.columns), pairs.found)[: len(names)]]
    most = max((value for row in values for value in row if value), default=1.0)
    told = f"Distances of all pairs of columns; the strongest colour is {percent(most, 1)}."
    drawn = heatmap(values, names, name="pairs-map", told=told, most=most)
    return pictures([figure(drawn, f"Which two columns together are worst: {told}")], kind="pictures maps")


def columns_part(evaluation: Evaluation) -> str:
    """Write the section of single columns."""
    overlays = evaluation.likeness.overlays
    if not overlays:
        return ""
    key = overlaid_key(evaluation.compared, "the synthetic table")
    each = "".join(_column(one) for one in overlays)
    return section("columns", "Column by column", [key, f'<div class="columns">{each}</div>'])


def _column(overlay: Overlay) -> str:
    head = f"<h3>{words(overlay.name)} <span>{words(percent(overlay.distance, 1))} apart</span></h3>"
    if overlay.lost > 0:
        told = f"{percent(overlay.lost, 1)} of rows have a value that the synthetic table does not: nobody declared it."
        head += paragraph(told, kind="note")
    return f"<article>{head}{_ordered(overlay) if overlay.ordered else _values(overlay)}</article>"


def _ordered(overlay: Overlay) -> str:
    labels = overlay.labels
    ends = [labels[0], labels[len(labels) // 2], labels[-1]] if len(labels) > 2 else list(labels)
    axis = "".join(f"<span>{words(label)}</span>" for label in ends)
    return f'{overlaid_steps(overlay.real, overlay.synthetic)}<div class="axis" aria-hidden="true">{axis}</div>'


def _values(overlay: Overlay) -> str:
    most = max(*overlay.real, *overlay.synthetic, 1e-9)
    rows = "".join(
        bar_row(words(label), overlaid_bars(true, made, most), words(percent(made)))
        for label, true, made in zip(overlay.labels, overlay.real, overlay.synthetic, strict=True)
    )
    return f"<table><tbody>{rows}</tbody></table>"


def links_part(evaluation: Evaluation) -> str:
    """Write the section of what goes together."""
    links = evaluation.likeness.associations
    if links is None or len(evaluation.columns) < 2:
        return ""
    few = "" if len(evaluation.columns) <= _MAPPED else f" The first {_MAPPED} columns are shown."
    parts = [
        paragraph(
            "How strongly two columns go together, by Cramér's V: the stronger the colour, the more one tells. "
            f"On the third map blue links are stronger in the synthetic table, and orange ones weaker.{few}"
        ),
        pictures(_maps(evaluation, links), kind="pictures maps"),
        paragraph(f"The largest change of any link is {links.largest:.2f}.", kind="note"),
        *_correlated(evaluation),
    ]
    return section("links", "What goes together", parts)


def _correlated(evaluation: Evaluation) -> Iterator[str]:
    """List the correlations of numbers, those that changed most first."""
    numbers = evaluation.likeness.correlations
    if numbers is None or not (changes := numbers.changes):
        return
    listed = [
        (words(columns_text(list(pair))), words(f"{real:.2f}"), words(f"{made:.2f}"))
        for pair, real, made in changes[:_WORST]
    ]
    yield "<h3>Correlations of numbers</h3>"
    yield paragraph("Pearson's correlation of the values themselves, not of their bins; the largest changes first.")
    yield table(("columns", evaluation.compared, "the synthetic table"), listed)


def _maps(evaluation: Evaluation, links: Associations) -> Iterator[str]:
    names = evaluation.columns[:_MAPPED]
    squares = {
        evaluation.compared: (links.real, 1.0, "real"),
        "the synthetic table": (links.synthetic, 1.0, "made"),
        "the difference": (links.difference, max(0.05, links.largest), "change"),
    }
    for title, (square, most, word) in squares.items():
        values = [list(row[: len(names)]) for row in square[: len(names)]]
        told = f"Links between columns of {title}."
        drawn = heatmap(values, names, name=f"links-{word}", told=told, most=most)
        yield figure(drawn, title)
