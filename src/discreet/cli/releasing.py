"""A release on the command line: which period, for which price, agreed to by whom."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

from discreet.cli.output import note
from discreet.cli.policies import asker, with_progress
from discreet.cli.signing import signing_key
from discreet.cli.spending import PriceTag, agree, limit_of
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.text import significant_up
from discreet.release import Period, ReleasePlan, Series, next_charge, price, publish, read_release_plan, series
from discreet.release.running.charging import NextCharge

__all__ = ["period_of", "released", "standing"]

_SHOWN = 6


def released(
    file: Path, label: str | None, *, max_epsilon: str | None, principal: str | None, key: Path | None = None
) -> Path:
    """Publish one period of a plan, or write again what was published, and return its bundle."""
    plan = read_release_plan(file)
    signing = signing_key(plan, key)
    stands = series(plan, today=_today(), principal=asker(principal))
    period = period_of(plan, label) or _due(plan, stands)
    unpaid, what = next_charge(plan, period), f"{plan.name} {period.label}"
    if unpaid.parts:
        agree(_price(unpaid), limit=limit_of(max_epsilon), what=what)
    else:
        note(f"{what} is paid already: it is written again, for nothing")
    timed = replace(plan, policy=with_progress(plan.policy))
    bundle = publish(timed, principal=asker(principal), period=period, today=_today(), on_step=_tell, key=signing)
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


def _due(plan: ReleasePlan, stands: Series) -> Period:
    """Return the oldest period that is due; if there is none, the newest that was released, which costs nothing."""
    begins = f"; {stands.next.label} ends on {stands.next.end}" if stands.next is not None else ""
    if stands.due:
        return stands.due[0]
    if not stands.released:
        raise Refused(f"nothing is due: no period of {plan.name} has ended yet{begins}")
    note(f"nothing is due: all periods that have ended are released{begins}")
    newest = period_of(plan, stands.released[-1].label)
    assert newest is not None
    return newest


def _price(unpaid: NextCharge) -> PriceTag:
    at = f" at δ = {significant_up(unpaid.delta)}" if unpaid.delta else ""
    begin = [name for name in unpaid.parts if name != "release"]
    series = f", with {' and '.join(begin)}, paid once for all days" if begin else ""
    return PriceTag(words=f"ε = {significant_up(Fraction(unpaid.epsilon))}{at}{series}", epsilon=unpaid.epsilon)


def _tell(step: str) -> None:
    if sys.stderr.isatty():
        note(f"… {step}")


def _today() -> date:
    return datetime.now(UTC).date()
