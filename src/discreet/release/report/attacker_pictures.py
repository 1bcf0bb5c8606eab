"""What the best attacker can gain, as pictures."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from discreet.plots import caught, hundred
from discreet.privacy import Relation
from discreet.privacy.curves import deltas
from discreet.privacy.events import ApproxDP, Event, PureDP
from discreet.privacy.guarantee import curve
from discreet.release.bundle.claims import StatedGuarantee, best_guess, percent_up
from discreet.release.bundle.wording import factor_words, guess_words, noun
from discreet.release.published import Published
from discreet.release.report.page_style import paragraph, section, words

__all__ = ["attacker_part", "best_tests"]

_LEVELS, _RATES = 40, 60
_OUTWARDS = 1e-9  # Floats of a picture, moved to the attacker's side.


def attacker_part(published: Published, claim: StatedGuarantee) -> str:
    """Write the section of the attacker."""
    after = min(100, math.ceil(Fraction(claim.guess) * 100))
    alarms, found = best_tests(claim.event, published.relation)
    tenth = found[alarms.index(0.1)]
    guesses = (
        f"<figure>{hundred(after, name='guesses')}<figcaption>A hundred guesses whether one {words(noun(claim))} is "
        f"in the data. Grey: right by tossing a coin. Orange: at most {after - 50} more with these tables. Empty: "
        "wrong.</figcaption></figure>"
    )
    tests = (
        f"<figure>{caught(alarms, found, name='tests')}<figcaption>Every test that anybody could run. One with 10 % "
        f"false alarms finds at most {percent_up(tenth)} of those who are in the data; blind guessing finds 10 %."
        "</figcaption></figure>"
    )
    parts = [
        paragraph(guess_words(claim)),
        paragraph(factor_words(claim)),
        f'<div class="pictures">{guesses}{tests}</div>',
        *([paragraph(told, kind="note")] if (told := _pair_words(claim, published.relation)) else []),
        paragraph(
            "This is not a test of known attacks: it is proven for all of them, those of tomorrow included, by the "
            "noise that was added.",
            kind="note",
        ),
    ]
    return section("attacker", "What the best attacker can gain", parts)


def _pair_words(claim: StatedGuarantee, relation: Relation) -> str:
    """Say why `discreet explain-epsilon` tells more for the same ε and δ; nothing where it does not."""
    level = Fraction(claim.epsilon)
    pair = best_guess(ApproxDP(level, claim.delta) if claim.delta else PureDP(level), relation)
    if percent_up(pair) == percent_up(claim.guess):
        return ""
    at = f", δ = {claim.delta_text}" if claim.delta else ""
    return (
        f"Of the pair ε = {claim.epsilon_text}{at} alone, which is what discreet explain-epsilon explains, only "
        f"{percent_up(pair)} follows. The smaller bound above is for the noise that was really added, of which more is "
        "known than one ε."
    )


@lru_cache(maxsize=16)
def best_tests(event: Event, relation: Relation) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return rates of false alarms, and for each a bound on the share of units that any test finds.

    Theorem     found <= e^epsilon * alarms + delta, and 1 - found >= e^-epsilon (1 - delta - alarms), for every
                (epsilon, delta) that holds. [WZ10, KOV15]
    """
    known = curve(event, relation)
    reach = min(known.upper(Fraction(1, 1000)), 50.0)
    levels = [Fraction(reach * number / _LEVELS) for number in range(_LEVELS + 1)]
    pairs = [(math.exp(level), delta) for level, delta in zip(levels, deltas(known, levels), strict=True)]
    alarms = tuple(number / _RATES for number in range(_RATES + 1))
    return alarms, tuple(_found(rate, pairs) for rate in alarms)


def _found(rate: float, pairs: list[tuple[float, float]]) -> float:
    bounds = (min(factor * rate + delta, 1 - (1 - delta - rate) / factor) for factor, delta in pairs)
    return min(1.0, max(rate, min(bounds) + _OUTWARDS))
