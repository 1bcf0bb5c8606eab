"""What attackers found: who is in the data, and what their secrets are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.evaluation.membership_search import MembershipSearch, SecretGuesses
from discreet.evaluation.page.page_style import bars, listing, paragraph, section, words
from discreet.evaluation.promised_limits import level_text, percent
from discreet.plots import Scale, page_lines, strip
from discreet.privacy import Relation
from discreet.privacy.events import Grouped
from discreet.release.report.attacker_pictures import best_tests

if TYPE_CHECKING:
    from discreet.attacks import Attacker, Success
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["attacks_part"]

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
    yield bars(f"People found at {percent(_SHOWN)} false alarms, in per cent", rows, scale)
    yield _legend(search)
    yield f'<div class="pictures"><figure class="wide">{_curves(search)}</figure></div>'
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
    level, claimed = level_text(search.level), level_text(search.promise.epsilon)
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
    table = listing(("attacker", "found", "no attacker exceeds", "AUC"), rows)
    return f"<details><summary>all figures</summary>{table}</details>"


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
    yield bars(f"{guessed.secret} guessed right, in per cent", rows, scale)


def _share(success: Success, scale: Scale, mark: float | None, *, accent: bool = False) -> str:
    low, high = (100 * end for end in success.interval())
    return strip(scale, 100 * success.share, low=low, high=high, mark=mark, accent=accent)
