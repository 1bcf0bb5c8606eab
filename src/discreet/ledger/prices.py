"""What an event costs in each account that a filter keeps."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.ledger.budget import EventPrice, on_grid, units_up
from discreet.ledger.delta_shares import Shares
from discreet.privacy.basic_account import basic, point, reveal
from discreet.privacy.convert import bounded_range_to_zcdp, pure_to_zcdp, pure_to_zcdp_simple
from discreet.privacy.curves import PrivacyCurve
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.event_tree import Choice, Spent, has_sample, spent
from discreet.privacy.events import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    DiscreteGaussian,
    Event,
    Gaussian,
    PureDP,
)
from discreet.privacy.guarantee import renyi
from discreet.privacy.relation import Relation
from discreet.privacy.renyi_bounds import log_moment_of, renyi_curve
from discreet.privacy.tradeoffs import mu_squared

__all__ = ["concentrated_price", "mixed_price", "own_price", "plain_price", "pure_price", "split_price"]

_LARGEST_SAMPLED_ORDER = 1024  # The moment of a sample is a sum of that many terms.


@lru_cache(maxsize=4096)
def pure_price(event: Event, relation: Relation) -> EventPrice:
    """Return the exact epsilon of an event; refuse one that has none, or a delta beside it."""
    simple = basic(spent(event, relation))
    if simple is None or simple.at > 0:
        raise UnsupportedEvent(
            "a pure ledger adds exact epsilons: this event has a delta or no epsilon of its own; "
            "open the data set with Budget(epsilon=…, delta=…), or use Laplace noise and known keys"
        )
    return EventPrice(on_grid(simple.epsilon), Fraction(0))


@lru_cache(maxsize=4096)
def plain_price(event: Event, relation: Relation) -> EventPrice:
    """Return epsilon and delta where they are known: for a sum that nothing depends on."""
    try:
        simple = basic(spent(event, relation))
    except UnsupportedEvent:
        simple = None
    return EventPrice(None, Fraction(0)) if simple is None else EventPrice(on_grid(simple.epsilon), on_grid(simple.at))


@lru_cache(maxsize=4096)
def concentrated_price(event: Event, relation: Relation) -> EventPrice:
    """Return a rho of an event; refuse one that has none."""
    total = spent(event, relation)
    simple = basic(total)
    known = simple.epsilon if simple is not None and simple.at == 0 else None
    return EventPrice(None if known is None else on_grid(known), Fraction(0), rho=on_grid(_rho(total)))


def _rho(total: Spent) -> Fraction:
    """Add up rho; among cells that a unit may touch, the largest ones. [BS16]"""
    sure = sum((count * _leaf_rho(event) for event, count in total.sure), Fraction(0))
    return sure + sum((_worst_cells(choice) for choice in total.choices), Fraction(0))


def _worst_cells(choice: Choice) -> Fraction:
    cells = sorted((_rho(cell) for cell in choice.cells), reverse=True)
    return choice.times * sum(cells[: choice.touched], Fraction(0))


def _leaf_rho(event: Event) -> Fraction:
    match event:
        case ZCDP() | DiscreteGaussian():
            return event.rho
        case GDP() | Gaussian():
            return event.mu_squared / 2
        case BoundedRange():
            return bounded_range_to_zcdp(event.epsilon)
        case _:
            return _pure_rho(event)


def _pure_rho(event: Event) -> Fraction:
    known = point(event)
    if known is None or known.at > 0:
        raise UnsupportedEvent(
            f"no zero-concentrated bound is proven for {type(event).__name__}: a rho ledger refuses it; "
            "open the data set with Budget(epsilon=…, delta=…) instead"
        )
    tight = pure_to_zcdp(known.epsilon)
    simple = pure_to_zcdp_simple(known.epsilon)
    return min(simple, Fraction(tight)) if math.isfinite(tight) else simple


def mixed_price(event: Event, relation: Relation, shares: Shares) -> EventPrice:
    """Return epsilon, delta, mu^2 and the divergences of an event, as far as the account keeps them.

    An (epsilon, delta) part is split once, into one that reveals all with chance delta and one that is purely
    private [KOV15]; epsilon, mu^2 and the divergences are all those of the second part, so that one split serves every
    sum.
    """
    try:
        price = _mixed(spent(event, relation), shares)
    except UnsupportedEvent:
        # Groups of a size for which only divergences are known; what is unknown altogether has none of them.
        divergences = tuple(_of_groups(event, relation, order) for order, _ in shares.orders)
        price = EventPrice(None, Fraction(0), kept=(None,) * bool(shares.gaussian) + divergences)
    if price.epsilon is None and all(value is None for value in price.kept):
        raise UnsupportedEvent(f"no bound is proven for this {type(event).__name__} in any account of this ledger")
    return price


def split_price(epsilon: Fraction, delta: Fraction, shares: Shares) -> EventPrice:
    """Return the price of whatever is (epsilon, delta)-private: the purely private part of its split, nothing better.

    What else is known of the event, such as its divergences, is known of the event and not of that part.
    """
    pure = Spent(frozenset({(PureDP(epsilon), 1)}))
    return EventPrice(on_grid(epsilon), on_grid(delta), kept=_kept(pure, shares))


def own_price(known: PrivacyCurve, epsilon: Fraction, delta: Fraction, shares: Shares) -> EventPrice | None:
    """Return the price of an event by its own curve at a delta; None if its epsilon there is above the one given."""
    level = known.upper(delta)
    return split_price(Fraction(level), delta, shares) if level <= epsilon else None


def _mixed(total: Spent, shares: Shares) -> EventPrice:
    simple, curve = basic(total), renyi_curve(_whole_cells(total))
    epsilon = None if simple is None else on_grid(simple.epsilon)
    return EventPrice(epsilon, on_grid(reveal(curve.revealed)), kept=_kept(curve.rest, shares))


def _whole_cells(total: Spent) -> Spent:
    """Take a partition with a delta in a cell for one event each time: which cell a unit is in decides the delta."""
    sure, choices = total.events, []
    for choice in total.choices:
        once = basic(Spent(frozenset(), (Choice(choice.cells, choice.touched, 1),)))
        if once is None or once.at == 0:
            choices.append(choice)
        else:
            sure[ApproxDP(once.epsilon, once.at)] += choice.times
    return Spent(frozenset(sure.items()), tuple(choices))


def _kept(rest: Spent, shares: Shares) -> tuple[int | None, ...]:
    divergences = tuple(_divergence(rest, order) for order, _ in shares.orders)
    if not shares.gaussian:
        return divergences
    return (units_up(max(0.0, float_up(enclose(lambda: mu_squared(rest))))), *divergences)


def _divergence(rest: Spent, order: Fraction) -> int | None:
    if order > _LARGEST_SAMPLED_ORDER and has_sample(rest):
        return None
    value = float_up(enclose(lambda: log_moment_of(rest, order) / ball(order - 1)))
    return units_up(max(0.0, value))


def _of_groups(event: Event, relation: Relation, order: Fraction) -> int | None:
    try:
        return units_up(renyi(event, order, relation=relation))
    except UnsupportedEvent:
        return None
