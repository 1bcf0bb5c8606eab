"""The lab: what ε means, and attacks on people who do not exist. Nothing that is served is read for it."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Route

from discreet.formatting import chance_up, percent
from discreet.lab.attacks.success_rates import Success
from discreet.pages.kit import bar_table
from discreet.pages.svg import Scale, strip
from discreet.privacy.meaning import best_guess, deployments
from discreet.server.app import Server
from discreet.server.pages.lab_results import ATTACKED_AT, MEANINGS, LabAttack, lab_attacks, meaning_table
from discreet.server.pages.visit import Visit, visited

__all__ = ["lab_routes"]

_USUAL = "1"


def _chosen(visit: Visit, listed: tuple[str, ...]) -> int:
    """Return the place of the ε that was chosen, by its place on the slider or by itself."""
    said, place = visit.request.query_params.get("epsilon"), visit.request.query_params.get("place", "")
    if said in listed:
        return listed.index(said)
    return int(place) if place in map(str, range(len(listed))) else listed.index(_USUAL)


def _epsilon(visit: Visit) -> Response:
    place = _chosen(visit, MEANINGS)
    table = meaning_table()
    bars = [
        {"words": bar.words, "before": bar.before, "after": bar.after, "text": chance_up(bar.after)}
        for bar in table[MEANINGS[place]]
    ]
    # What the script shows as the slider moves: the same numbers, as text and as a share.
    steps = [
        {"epsilon": epsilon, "bars": [[bar.after, chance_up(bar.after)] for bar in table[epsilon]]} for epsilon in table
    ]
    known = [
        {
            "who": one.who,
            "what": one.what,
            "epsilon": f"{float(one.epsilon):g}",
            "guess": chance_up(best_guess(one.event)),
        }
        for one in deployments()
    ]
    told: dict[str, Any] = {"place": place, "last": len(MEANINGS) - 1, "epsilon": MEANINGS[place], "bars": bars}
    return visit.page("lab.html", **told, steps=json.dumps(steps), deployments=known)


def _attacks(visit: Visit) -> Response:
    place = _chosen(visit, ATTACKED_AT)
    found = [{"attack": one, "chart": _chart(one)} for one in lab_attacks(ATTACKED_AT[place])]
    told: dict[str, Any] = {"place": place, "last": len(ATTACKED_AT) - 1, "epsilon": ATTACKED_AT[place]}
    told |= {"listed": ATTACKED_AT, "steps": json.dumps([{"epsilon": one} for one in ATTACKED_AT])}
    return visit.page("lab_attacks.html", **told, found=found)


def _chart(one: LabAttack) -> Markup:
    """Draw what the attack gets right, in per cent, with limits, and the ceiling as a mark on private answers."""
    scale = Scale(0.0, 100.0)
    rows = [
        ("exact answers", one.exact, True, None),
        ("counts below 5 hidden", one.hidden, True, None),
        ("private answers", one.private, True, one.ceiling),
        ("without any answer", Success(round(1000 * one.by_guessing), 1000), False, None),
    ]
    drawn = []
    for name, success, accent, ceiling in rows:
        low, high = (100 * end for end in success.interval()) if accent else (None, None)
        mark = None if ceiling is None else 100 * ceiling
        picture = strip(scale, 100 * success.share, low=low, high=high, accent=accent, mark=mark)
        drawn.append((name, picture, percent(success.share)))
    return Markup(bar_table("Right, in per cent", drawn, scale))


def lab_routes(server: Server) -> list[Route]:
    """Return the routes of the lab."""
    return [
        Route("/lab", visited(server, "me", _epsilon), methods=["GET"]),
        Route("/lab/attacks", visited(server, "me", _attacks), methods=["GET"]),
    ]
