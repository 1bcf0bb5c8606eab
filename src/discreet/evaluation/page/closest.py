"""The distance to the closest record, with what it does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.evaluation.closeness import Closeness, ClosestDistances
from discreet.evaluation.page.marks import listing, paragraph, section, words
from discreet.evaluation.words import percent
from discreet.plots import page_lines

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["closest_part"]


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
