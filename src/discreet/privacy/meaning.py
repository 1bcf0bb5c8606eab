"""What an epsilon means: how far the best attacker gets, whatever they know, in numbers that need no formula.

All of it is read off the trade-off curve, and tight: for (epsilon, delta) some mechanism with that guarantee lets an
attacker get exactly as far. [KOV15, DRS22]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, final

from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, up
from discreet.formatting import chance_up, record, significant_up
from discreet.privacy.convert import read_delta
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.events import GDP, ZCDP, ApproxDP, Event, PureDP
from discreet.privacy.guarantee import delta as delta_of
from discreet.privacy.guarantee import epsilon as epsilon_of
from discreet.privacy.relation import Relation, read_relation_if_any
from discreet.privacy.tradeoffs import best_tpr, tradeoff

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "Belief",
    "Deployment",
    "FoundShare",
    "Meaning",
    "best_guess",
    "chance",
    "compared_rows",
    "deployments",
    "explain",
    "explain_epsilon",
    "sentences",
    "told",
]

# --- deployments: What others have said that their epsilon is, for comparison. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One line of a public list. What is protected differs from line to line: a question, a day, a person.

    Args:
        who: Who published the figure.
        what: For what it is.
        epsilon: The published epsilon.
        delta: The published delta, 0 where none is named.
        source: The address of the list.

    Examples:
        >>> dp.privacy.deployments()[0].who
        'LinkedIn'
    """

    who: str
    what: str
    epsilon: Fraction
    delta: Fraction  # 0 where the list names none
    source: str

    __repr__ = record

    @property
    def event(self) -> Event:
        """What the line says was spent."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


@cache
def deployments() -> tuple[Deployment, ...]:
    """Return what is publicly said about real deployments, from the smallest epsilon to the largest.

    Returns:
        The lines of the list that is bundled, by their epsilon.

    Examples:
        >>> [line.who for line in dp.privacy.deployments()][:2]
        ['LinkedIn', 'Facebook']
    """
    import tomllib
    from importlib.resources import files

    listed = tomllib.loads(files(__package__).joinpath("deployments.toml").read_text(encoding="utf-8"))
    lines = [_deployments_line(line, listed["source"]) for line in listed["deployment"]]
    return tuple(sorted(lines, key=lambda line: line.epsilon))


def _deployments_line(line: dict[str, str], source: str) -> Deployment:
    return Deployment(
        who=line["who"],
        what=line["what"],
        epsilon=exact(line["epsilon"], name="epsilon"),
        delta=exact(line["delta"], name="delta"),
        source=source,
    )


FALSE_ALARMS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20))
PRIORS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
_POINTS = 30  # Of a curve in the picture.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundShare:
    """How many of those who are in the data an attacker finds who wrongly accuses a share of the others.

    Args:
        false_alarms: The false positive rate: the share of people who are not in the data and are accused.
        found: The largest true positive rate: the share of those in the data who are found; rounded up.

    Examples:
        >>> share = dp.privacy.explain_epsilon(1).found[0]
        >>> share.false_alarms, round(share.found, 4)
        (Fraction(1, 1000), 0.0027)
    """

    false_alarms: Fraction
    found: float  # rounded up

    __repr__ = record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """How sure somebody may become who was this sure before.

    Args:
        before: The probability that an attacker gave to a statement before the release.
        after: The largest probability that they may give to it afterwards, rounded up.

    Examples:
        >>> belief = dp.privacy.explain_epsilon(1).beliefs[0]
        >>> belief.before, round(belief.after, 5)
        (Fraction(1, 1000), 0.00271)
    """

    before: Fraction
    after: float  # rounded up

    __repr__ = record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """How far the best attacker gets who wants to know one thing about one person: are they in the data?

    With a delta above 0 outcomes may be more telling than `beliefs` and `odds` say: `beyond` tells how likely they are.
    What is released is no more telling than a coin that reveals all with chance delta, and otherwise changes no odds by
    more than the factor e^epsilon; who sees less than the coin may still be surer than that, and oftener. [KOV15]

    Args:
        said: What is explained, as people say it.
        event: What was spent.
        relation: The neighbouring relation, where the event depends on it.
        epsilon: The epsilon at `delta`, rounded up; None if there is none.
        delta: The delta at which epsilon and beliefs hold.
        success: The largest share of right guesses of who is in the data, where a coin gets one half; rounded up.
        found: The largest true positive rate at some false positive rates.
        beliefs: How far beliefs may move; empty without an epsilon.
        compared: Public deployments, and the largest share of right guesses against each.
        noun: What one unit is called.
        uncovered: What no number here covers, as a sentence; empty if they cover everything.

    Examples:
        >>> meaning = dp.privacy.explain_epsilon(1)
        >>> round(meaning.success, 3), round(meaning.odds, 3)
        (0.731, 2.718)
    """

    said: str
    event: Event
    relation: Relation | None
    epsilon: float | None  # rounded up; None if there is none at this delta
    delta: float
    success: float  # share of right guesses where tossing a coin gets one half; rounded up
    found: tuple[FoundShare, ...]
    beliefs: tuple[Belief, ...]  # none without an epsilon
    compared: tuple[tuple[Deployment, float], ...]  # others, and the success against them
    noun: str = "person"
    uncovered: str = ""  # what no number here is about, as a sentence

    @property
    def odds(self) -> float | None:
        """By which factor odds may rise, but for outcomes that `beyond` tells of: e^epsilon, rounded up."""
        if self.epsilon is None:
            return None
        level = Fraction(self.epsilon)
        return float_up(enclose(lambda: ball(level).exp()))

    @property
    def beyond(self) -> tuple[float, float] | None:
        """A factor, and the largest chance with which odds rise by more; rounded up. None without an epsilon.

        The factor is `odds` where the noise is known. Epsilon and delta alone say nothing useful about that one, for
        the loss may then exceed epsilon a little nearly always; so it is twice as large, with a chance of 2 delta.
        """
        odds = self.odds
        if odds is None or self.epsilon is None:
            return None
        if not self.delta:
            return odds, 0.0
        if isinstance(self.event, ApproxDP):
            return 2 * odds, min(1.0, 2 * self.delta)
        return odds, _chance_beyond(self.event, Fraction(self.epsilon), self.relation)

    def __str__(self) -> str:
        return told(self)

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers and texts."""
        return {
            "said": self.said,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "success": self.success,
            "odds": self.odds,
            "found": [{"false_alarms": float(one.false_alarms), "found": one.found} for one in self.found],
            "beliefs": [{"before": float(one.before), "after": one.after} for one in self.beliefs],
            "deployments": [_line(line, success) for line, success in self.compared],
        }

    def plot(self) -> alt.LayerChart:
        """Draw the error rates of the best attacker, between those of three public deployments."""
        from discreet import plots

        others = [line for line in deployments() if line.who in ("LinkedIn", "Facebook", "US Census Bureau")]
        curves = {self.said: _curve(self.event, self.relation)}
        curves |= {f"{line.who}, ε = {float(line.epsilon):g}": _curve(line.event, None) for line in others}
        return plots.tradeoff(curves, title="Errors of the best attacker")


def _curve(event: Event, relation: Relation | None) -> tuple[list[float], list[float]]:
    """Return points of a trade-off curve, closer where it is steep; that of (epsilon, delta) is a polygon."""
    corner = 1 - Fraction(best_guess(event, relation=relation))
    match event:
        case PureDP():
            rates = [Fraction(0), corner, Fraction(1)]
        case ApproxDP():
            rates = [Fraction(0), corner, 1 - event.delta, Fraction(1)]
        case _:
            rates = [Fraction(i, _POINTS) ** 2 for i in range(_POINTS + 1)]
    return [float(x) for x in rates], [tradeoff(event, x, relation=relation) for x in rates]


def explain(
    event: Event, *, delta: Number = 0, relation: Relation | str | None = None, said: str | None = None
) -> Meaning:
    """Explain what an event means for one person: success of guesses, people found, beliefs, known deployments.

    Args:
        event: What was spent.
        delta: The delta at which epsilon and beliefs are told.
        relation: The neighbouring relation, where the meaning of the event depends on it.
        said: How the guarantee is called in the text; made from the event unless said.

    Returns:
        What an attacker can learn at most; it prints as a page of text.

    Raises:
        UnsupportedEvent: If no bound is proven for this event.

    Examples:
        >>> meaning = dp.privacy.explain(dp.privacy.Gaussian(4), delta=1e-5)
        >>> round(meaning.success, 3)
        0.55
    """
    relation = read_relation_if_any(relation)
    level = read_delta(delta)
    reached = epsilon_of(event, level, relation=relation)
    known = reached if math.isfinite(reached) else None
    return Meaning(
        said=said if said is not None else _said(known, level),
        event=event,
        relation=relation,
        epsilon=known,
        delta=up(level),
        success=best_guess(event, relation=relation),
        found=tuple(FoundShare(false_alarms=x, found=best_tpr(event, x, relation=relation)) for x in FALSE_ALARMS),
        beliefs=() if known is None else tuple(Belief(before=p, after=_after(p, known)) for p in PRIORS),
        compared=tuple((line, best_guess(line.event)) for line in deployments()),
    )


_LARGEST = 10**300


def explain_epsilon(
    epsilon: Number | None = None, *, delta: Number = 0, rho: Number | None = None, mu: Number | None = None
) -> Meaning:
    """Explain what an epsilon at a delta means; or a rho of zCDP, or a mu of Gaussian DP.

    Args:
        epsilon: The epsilon to explain; say exactly one of epsilon, rho and mu.
        delta: The delta that goes with it.
        rho: The parameter of zero-concentrated privacy.
        mu: The parameter of Gaussian privacy.

    Returns:
        What an attacker can learn at most; it prints as a page of text.

    Raises:
        InvalidParameter: If not exactly one of the three is said.

    Examples:
        >>> round(dp.privacy.explain_epsilon(1).success, 3)
        0.731
    """
    given = [name for name, value in (("ε", epsilon), ("ρ", rho), ("µ", mu)) if value is not None]
    if len(given) != 1:
        raise InvalidParameter("say exactly one of epsilon, rho and mu: what to explain")
    level = read_delta(delta)
    if rho is not None:
        return explain(ZCDP(rho), delta=level, said=f"ρ = {float(_explainable(rho, 'rho')):.6g}")
    if mu is not None:
        return explain(GDP(mu), delta=level, said=f"µ = {float(_explainable(mu, 'mu')):.6g}")
    amount = _explainable(epsilon if epsilon is not None else 0, "epsilon")
    event: Event = ApproxDP(amount, level) if level else PureDP(amount)
    return explain(event, delta=level, said=_said(float(amount), level))


def best_guess(event: Event, *, relation: Relation | str | None = None) -> float:
    """Return the largest share of right guesses where both answers are equally likely before; rounded up.

    Theorem     The best test is right in (1 + total variation) / 2 of cases, and total variation is the delta at
                epsilon 0. [WZ10]

    Args:
        event: What was spent.
        relation: The neighbouring relation, where the meaning of the event depends on it.

    Returns:
        The largest accuracy of a membership test with even odds, from 0.5 to 1.

    Raises:
        UnsupportedEvent: If no bound is proven for this event.

    Examples:
        >>> round(dp.privacy.best_guess(dp.privacy.PureDP(1)), 3)
        0.731
    """
    relation = read_relation_if_any(relation)
    return up((1 + Fraction(delta_of(event, 0, relation=relation))) / 2)


_GAPS = 24  # Points at which the bound below is tried; each of them holds.


def _chance_beyond(event: Event, level: Fraction, relation: Relation | None) -> float:
    """Return the largest probability of outcomes that are more than e^epsilon times as likely; rounded up.

    Theorem     Let L = ln p/q be the privacy loss under p. For all t below epsilon, P[L > epsilon] is at most
                delta(t) / (1 - e^(t - epsilon)), for delta(t) >= E[(1 - e^(t - L))+] (with L instead of epsilon, that
                is larger where L > epsilon). It needs delta alone, so it holds for whatever is computed from the
                outcomes too; for Gaussian noise itself P[L > epsilon] = Phi(mu/2 - epsilon/mu). [BW18]
    """
    found = 1.0
    for number in range(_GAPS):
        gap = level * Fraction(2) ** -(number // 2) * (Fraction(5, 7) if number % 2 else 1)
        found = min(found, _markov(Fraction(delta_of(event, level - gap, relation=relation)), gap))
    return found


def _markov(delta: Fraction, gap: Fraction) -> float:
    return float_up(enclose(lambda: ball(delta) / (ball(1) - ball(-gap).exp())))


def _after(before: Fraction, level: float) -> float:
    """Bayes: odds are multiplied by at most e^epsilon, so p becomes p / (p + (1 - p) e^-epsilon)."""
    reached = Fraction(level)
    return min(1.0, float_up(enclose(lambda: ball(before) / (ball(before) + ball(1 - before) * ball(-reached).exp()))))


def _said(level: float | None, delta: Fraction) -> str:
    name = "no ε" if level is None else f"ε = {level:.6g}"
    return f"{name}, δ = {float(delta):.3g}" if delta else name


def _explainable(value: Number, name: str) -> Fraction:
    amount = positive(value, name=name)
    if amount > _LARGEST:
        raise InvalidParameter(f"{name} must be at most 1e300: it protects nobody long before")
    return amount


def _line(line: Deployment, success: float) -> dict[str, Any]:
    return {
        "who": line.who,
        "what": line.what,
        "epsilon": float(line.epsilon),
        "delta": float(line.delta),
        "success": success,
        "source": line.source,
    }


# --- meaning_words: The meaning of an epsilon as people read it. What is said to be at most so much is rounded up. ---


_RARE = 0.1  # Below this people think in "1 in so many".


def told(meaning: Meaning) -> str:
    """Tell a meaning in words and small tables."""
    lines = [f"{meaning.said}: how far the best attacker gets, whatever else they know", "", *sentences(meaning), ""]
    found = [(f"{float(100 * one.false_alarms):g} %", chance_up(one.found)) for one in meaning.found]
    lines += _table(("wrongly accused", "people found, at most"), found)
    if meaning.beliefs:
        beliefs = [(chance(float(one.before)), chance(one.after)) for one in meaning.beliefs]
        lines += ["", *_of_beliefs(meaning), "", *_table(("belief before", "belief after, at most"), beliefs)]
    lines += ["", *_table(("who", "for what", "ε", "δ", "right guesses"), compared_rows(meaning))]
    source = meaning.compared[0][0].source
    public = f"Public figures: {source}. They protect different things; see there."
    return "\n".join([*lines, "", public, "Right guesses in this table are of ε and δ alone, whatever the noise."])


def sentences(meaning: Meaning) -> Iterator[str]:
    """Say the two things that matter most."""
    replaced = meaning.relation is Relation.REPLACE_ONE
    asked = (
        f"Which of two things does one {meaning.noun} say?"
        if replaced
        else f"Is one {meaning.noun} in the data or not?"
    )
    yield (
        f"{asked} Whoever tosses a coin is right in 50 % of cases; whoever also sees "
        f"what was released, in at most {chance_up(meaning.success)}."
    )
    if meaning.uncovered:
        yield meaning.uncovered
    yield from _reconciled(meaning)
    if meaning.odds is None:
        yield "There is no ε at this δ: say a δ above 0 to be told how far beliefs and odds may change."
        return
    if not meaning.delta:
        yield f"Odds change at most {_factor(meaning.odds)}-fold."
        rare, odds = meaning.beliefs[0], chance(float(meaning.beliefs[0].before))
        yield f"Who thought it was {odds} thinks afterwards that it is at most {chance(rare.after)}."
        return
    otherwise = f"had that {meaning.noun} said anything else" if replaced else f"without that {meaning.noun}"
    yield (
        f"Whatever somebody hopes to find, the chance to find it is at most {_factor(meaning.odds)} times what it "
        f"would be {otherwise}, plus {meaning.delta:.3g}."
    )


def _of_beliefs(meaning: Meaning) -> Iterator[str]:
    """Say what the table of beliefs is about: of the most telling outcome, and, with a δ, of which outcomes."""
    yield "A guess is right so often on average over all outcomes; a belief is that after the most telling one."
    if not meaning.delta or meaning.beyond is None or meaning.odds is None:
        return
    factor, rest = meaning.beyond
    if factor == meaning.odds:
        yield (
            f"Odds rise more than {_factor(factor)}-fold, and beliefs above these bounds, with a chance of at most "
            f"{_rounded_up(rest)}."
        )
        return
    yield (
        f"These bounds are of the most telling release that has this ε and δ: a coin that reveals all with chance "
        f"{meaning.delta:.3g}, and else changes odds at most {_factor(meaning.odds)}-fold. Others may exceed them "
        f"oftener; odds rise more than {_factor(factor)}-fold with a chance of at most {_rounded_up(rest)}."
    )


def _rounded_up(value: float) -> str:
    """Round up to two digits, but not for the last bits that were rounded up before."""
    return f"{float(significant_up(Fraction(value) * (1 - Fraction(1, 10**12)), 2)):.3g}"


def _reconciled(meaning: Meaning) -> Iterator[str]:
    """Say why one ε and δ have two such numbers: the pair alone allows what the worst noise that has it would."""
    if isinstance(meaning.event, (PureDP, ApproxDP)):
        yield (
            "This is for ε and δ alone, whatever the noise. A release whose noise is known may allow less for the same "
            "ε: its report, and discreet explain-epsilon --bundle, tell the bound of its own noise."
        )
    elif meaning.epsilon:
        pair = chance_up(_alone(meaning))
        if pair != chance_up(meaning.success):
            at = f", δ = {meaning.delta:.3g}" if meaning.delta else ""
            yield (
                f"This is for the noise that was added. Of ε = {meaning.epsilon:.6g}{at} alone, whatever the noise, a "
                f"bound of {pair} follows."
            )


def _alone(meaning: Meaning) -> float:
    """Return the success that ε and δ alone allow, as public figures of others are told; its own without an ε."""
    if not meaning.epsilon:
        return meaning.success
    level, delta = Fraction(meaning.epsilon), Fraction(meaning.delta)
    return best_guess(ApproxDP(level, delta) if delta else PureDP(level))


def compared_rows(meaning: Meaning) -> list[tuple[str, ...]]:
    """List public deployments with this one among them, from the strongest to the weakest promise."""
    reached = _alone(meaning)  # Of others nothing but ε and δ is known: the same kind of number for this one.
    own = ("this one", "", _number(meaning.epsilon), _number(meaning.delta), chance_up(reached))
    rows: list[tuple[float, tuple[str, ...]]] = [(reached, own)]
    for line, success in meaning.compared:
        told_delta = _number(float(line.delta))
        rows.append((success, (line.who, line.what, _number(float(line.epsilon)), told_delta, chance_up(success))))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def chance(share: float) -> str:
    """Write a small chance as 1 in so many, rounded up; another in per cent."""
    if not 0 < share < _RARE:
        return chance_up(share)
    return f"1 in {math.floor(1 / Fraction(share) + Fraction(1, 10**6)):,}"


def _factor(odds: float) -> str:
    digits = 2 if odds < 100 else 0 if odds < 1e6 else 1 - math.floor(math.log10(odds))
    rounded = Decimal(odds).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
    return f"{rounded:,f}" if odds < 1e6 else f"{rounded:.1e}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    return ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
