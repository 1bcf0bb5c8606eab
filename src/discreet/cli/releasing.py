"""A release on the command line: which period, for which price, agreed to by whom."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

from discreet.cli.output import note
from discreet.cli.policies import asker, with_progress
from discreet.cli.spending import Price, agree, limit_of
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.text import significant_up
from discreet.release import Period, PricedRelease, ReleasePlan, Series, price, publish, read_release_plan, series

__all__ = ["period_of", "released", "standing"]

_SHOWN = 6


def released(file: Path, label: str | None, *, max_epsilon: str | None, principal: str | None) -> Path:
    """Publish one period of a plan, or write again what was published, and return its bundle."""
    plan = read_release_plan(file)
    stands = series(plan, today=_today(), principal=asker(principal))
    period = period_of(plan, label) or _due(stands)
    if period.label in {one.label for one in (*stands.released, *stands.unfinished)}:
        note(f"{plan.name} {period.label} is paid already: it is written again, for nothing")
    else:
        agree(_price(price(plan, period)), limit=limit_of(max_epsilon), what=f"{plan.name} {period.label}")
    timed = replace(plan, policy=with_progress(plan.policy))
    bundle = publish(timed, principal=asker(principal), period=period, today=_today(), on_step=_tell)
    others = [one.label for one in stands.due if one != period]
    if others:
        note(f"also due: {', '.join(others[:_SHOWN])}{' …' if len(others) > _SHOWN else ''}")
    return bundle


def standing(file: Path) -> Series:
    """Tell where a plan stands today."""
    plan = read_release_plan(file)
    return series(plan, today=_today(), event=price(plan).event)


def period_of(plan: ReleasePlan, label: str | None) -> Period | None:
    """Find a period that has begun, by its label."""
    if label is None:
        return None
    schedule, today = plan.schedule, _today()
    begun = list(schedule.until(today))
    if schedule.first is not None and today >= schedule.first:
        begun.append(schedule.containing(today))
    for period in begun:
        if period.label == label:
            return period
    known = ", ".join(period.label for period in begun[-_SHOWN:])
    raise InvalidParameter(f"there is no period {label!r} until today; the last ones are {known or 'none'}")


def _due(stands: Series) -> Period:
    if stands.due:
        return stands.due[0]
    begins = f"; {stands.next.label} ends on {stands.next.end}" if stands.next is not None else ""
    raise Refused(f"nothing is due: all periods that have ended are released{begins}")


def _price(priced: PricedRelease) -> Price:
    at = f" at δ = {significant_up(priced.delta)}" if priced.delta else ""
    return Price(words=f"ε = {significant_up(Fraction(priced.epsilon))}{at}", epsilon=priced.epsilon)


def _tell(step: str) -> None:
    if sys.stderr.isatty():
        note(f"… {step}")


def _today() -> date:
    return datetime.now(UTC).date()
