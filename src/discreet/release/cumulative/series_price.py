"""What a running total costs, once for all its days, and how exact every day will be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from math import fsum, sqrt
from typing import Any, final

import numpy as np

from discreet import noise
from discreet.errors import InvalidParameter, LedgerDamaged, Refused
from discreet.exact import positive_integer
from discreet.formatting import significant_up
from discreet.mechanisms.grid import compact
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import calibrate, epsilon
from discreet.privacy.events import Gaussian
from discreet.privacy.relation import Relation
from discreet.query import ReleaseTable
from discreet.query.answer_columns import AnswerColumn, ExactNumbers
from discreet.release.cumulative.strategies import (
    ONE,
    Strategy,
    best,
    dailies,
    largest_error,
    least_error,
    root_up,
    totals,
)
from discreet.release.plan import Allowance, ReleasePlan, RunningPlan, Wish
from discreet.schema.columns import Kind

__all__ = ["CONFIDENCE", "STEP", "PricedRunning", "measured_day", "price_running", "read_day", "table_of"]

# --- daily_measurement: From exact daily counts to what is told of a day, and from that to a table of totals. ---


def measured_day(priced: PricedRunning, counts: Sequence[int], token: str) -> str:
    """Measure what a day adds: whole weights of the exact counts so far, with fresh noise. Drawn once, then told."""
    exact = [sum(w * x for w, x in zip(row, counts, strict=True)) for row in priced.strategy.weights(len(counts) - 1)]
    drawn = noise.rounded_gaussian(size=len(exact), variance=priced.variance)
    told = [value + int(extra) for value, extra in zip(exact, drawn, strict=True)]
    return json.dumps({"day": priced.day(len(counts) - 1).isoformat(), "measured": told, "token": token})


def read_day(text: str) -> tuple[list[int], str]:
    """Return what was measured on a day, and its token."""
    try:
        told = json.loads(text)
        return [int(number) for number in told["measured"]], str(told["token"])
    except (ValueError, KeyError, TypeError):
        raise LedgerDamaged("a stored answer is no day of a running series") from None


def table_of(priced: PricedRunning, told: Sequence[str]) -> ReleaseTable:
    """Return the totals of the days that were told, each with its own error: a function of what was told."""
    totals = priced.strategy.totals([read_day(text)[0] for text in told])
    rounded = [round(total / STEP) for total in totals]
    errors = [-(-error // STEP) for error in priced.errors[: len(rounded)]]  # in steps, rounded up
    return ReleaseTable(
        columns=(_days(priced, len(rounded)), _totals(rounded, errors)),
        rows_shown=len(rounded),
        notes=_notes(priced),
        event=priced.event,
        relation=Relation.ADD_REMOVE,
        cost=priced.cost,
        confidence=CONFIDENCE,
    )


def _days(priced: PricedRunning, count: int) -> AnswerColumn:
    days = tuple(priced.day(number) for number in range(count))
    return AnswerColumn(name="day", kind=Kind.DATE, values=days, measured=False)


def _totals(rounded: Sequence[int], errors: Sequence[int]) -> AnswerColumn:
    return AnswerColumn(
        name="total",
        kind=Kind.REAL,
        values=_numbers(rounded),
        low=_numbers([value - error for value, error in zip(rounded, errors, strict=True)]),
        high=_numbers([value + error for value, error in zip(rounded, errors, strict=True)]),
        limits=(Fraction(0), None),
        grain=Fraction(1),
    )


def _numbers(steps: Sequence[int]) -> ExactNumbers:
    return ExactNumbers(compact(np.array(steps, dtype=object)), step=STEP)


def _notes(priced: PricedRunning) -> tuple[str, ...]:
    running = priced.running
    if running.person_day:
        counted = (
            "a unit counts on every day that it has a row on when that day is released; each is protected by itself"
        )
    elif priced.unit == "row":
        counted = (
            "a row counts on the day it is dated, if it is there when that day is released; one that is dated anew is "
            "another row"
        )
    else:
        days = "one day" if running.max_days == 1 else f"{running.max_days} days"
        counted = (
            f"one {priced.noun} is counted on {days} of the series at most, the first ones it has rows on; a row that "
            "comes late is counted later, and one that is taken away stays counted"
        )
    return (
        counted,
        "the whole series was paid for once, before its first day",
        "noise of one day is in those after it",
    )


CONFIDENCE = Fraction(95, 100)
STEP = Fraction(1, 100)  # Totals are published in whole multiples of it.
_ADD = Relation.ADD_REMOVE
_MOST_MU_SQUARED = Fraction(100)  # As much as any other question may spend: rho = 50.
_LEAST_MU_SQUARED = Fraction(1, 10**8)


@final
@dataclass(frozen=True)
class PricedRunning:
    """A series, how it will be measured, and what that spends. Everything in it is public.

    Guarantee   All measurements of all days together are Gaussian noise on a vector that one unit moves by
                `squared_sensitivity` at most: one event, charged before the first day is read.
    Theorem     Each measurement looks at days that have passed, and given all answers so far its noise is fresh. So
                the loss of the series is that of one Gaussian answer, also if people act on earlier totals and so
                change what is counted later. [DMRST22]
    """

    plan: str  # the name of the release plan
    running: RunningPlan
    unit: str  # whom the guarantee is about
    strategy: Strategy
    mu_squared: Fraction
    delta: Fraction | None  # at which epsilon is told
    called: str | None = None  # the name of the unit in texts, where one is declared; in no fingerprint

    @property
    def noun(self) -> str:
        """Whom the guarantee is about, as texts call them."""
        if self.called is None:
            return self.unit
        return f"{self.called} and day" if self.running.person_day else self.called

    @cached_property
    def squared_sensitivity(self) -> int:
        """The l2 norm, squared, of what one unit changes, in squared steps of a measurement."""
        return self.strategy.squared_sensitivity(self.counted_days)

    @property
    def counted_days(self) -> int:
        """On how many days one unit is counted at most."""
        return 1 if self.running.person_day else self.running.max_days

    @property
    def variance(self) -> Fraction:
        """The variance of the noise of every measurement, in squared steps, before it is rounded."""
        return self.squared_sensitivity / self.mu_squared

    @property
    def event(self) -> Gaussian:
        """What the whole series spends, once."""
        return Gaussian(variance=self.variance, squared_sensitivity=self.squared_sensitivity)

    @cached_property
    def deviations(self) -> tuple[Fraction, ...]:
        """The standard deviation of the noise in the total of each day, in persons, rounded up."""
        person = self.variance / ONE**2
        return tuple(root_up(person * one) for one in self.strategy.variances())

    @cached_property
    def errors(self) -> tuple[Fraction, ...]:
        """The ± of each day: it encloses the exact total of the bounded counts with probability 95 %.

        Noise of a measurement is rounded by half a step at most; what that moves in a total is added, and so is the
        rounding of the total itself.
        """
        times = _normal_up(CONFIDENCE)
        rounding = (reach / (2 * ONE) + STEP / 2 for reach in self.strategy.reaches())
        return tuple(times * sd + more for sd, more in zip(self.deviations, rounding, strict=True))

    @property
    def epsilon(self) -> float | None:
        """The epsilon of the whole series at `delta`; None if no delta is said."""
        return None if self.delta is None else epsilon(self.event, self.delta, relation=_ADD)

    @property
    def first(self) -> date:
        return date.fromisoformat(self.running.first)

    def day(self, number: int) -> date:
        """Return a day of the series by its number, the first being 0."""
        return self.first + timedelta(days=number)

    def ended(self, until: date) -> int:
        """Return how many days of the series have ended before a day."""
        return max(0, min(self.running.days, (until - self.first).days))

    @property
    def cost(self) -> str:
        """What the series spends, in a few words."""
        rho = f"ρ = {significant_up(self.mu_squared / 2)}"
        if self.delta is None:
            return rho
        return f"ε = {significant_up(self.epsilon or 0)}, δ = {significant_up(self.delta)} ({rho})"

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same series, price and way of measuring, and for no other."""
        running = self.running
        said = [running.name, running.source, running.day, running.first, running.days, running.where, running.max_days]
        facts = [self.plan, *said, running.person_day, self.unit, self.strategy.name, str(self.mu_squared), ONE]
        return hashlib.sha256(json.dumps(facts, ensure_ascii=True).encode()).hexdigest()

    @property
    def instead(self) -> dict[str, float]:
        """The largest standard deviation by other ways of the same price, and what none of them goes below."""
        days, most, mu = self.running.days, self.counted_days, sqrt(self.mu_squared)
        ways = {one.name: largest_error(one, most) / mu for one in (totals(days), dailies(days))}
        return ways | {"no way goes below": least_error(days, most) / mu}

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON has it."""
        return {
            "name": self.running.name,
            "first": self.running.first,
            "days": self.running.days,
            "unit": self.unit,
            "counted_days": self.counted_days,
            "strategy": self.strategy.name,
            "event": json.loads(self.event.to_json()),
            "rho": str(self.mu_squared / 2),
            "epsilon": self.epsilon,
            "delta": None if self.delta is None else str(self.delta),
            "deviations": [float(one) for one in self.deviations],
            "errors": [float(one) for one in self.errors],
            "instead": self.instead,
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<11}{text}" for name, text in self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[tuple[str, str]]:
        running, errors = self.running, [float(error) for error in self.errors]
        yield "series", f"{running.name}: total of {running.source} so far, {running.days} days from {running.first}"
        yield "price", f"{self.cost}, once for all days"
        yield "protects", _protects(self.noun, running)
        yield "measured", f"by {self.strategy.name}"
        typical = Fraction(sqrt(fsum(error**2 for error in errors) / len(errors)))
        told = [self.errors[0], max(self.errors), typical]
        first, most, mean = (significant_up(error, 3) for error in told)
        yield "error", f"± {first} on the first day, ± {most} at most, ± {mean} on average (95 %)"
        for name, deviation in self.instead.items():
            error = significant_up(_normal_up(CONFIDENCE) * Fraction(deviation), 3)
            yield "", f"{name}: ± {error}" + ("" if name.startswith("no way") else " at most, for the same price")


def _protects(unit: str, running: RunningPlan) -> str:
    if running.person_day:
        return f"one {unit}; somebody who is there on several days is protected less with each of them"
    days = "day" if running.max_days == 1 else "days"
    return f"one {unit}, counted on {running.max_days} {days} of the series at most"


def price_running(plan: ReleasePlan, running: RunningPlan) -> PricedRunning:
    """Price a running total from public facts: nothing is read.

    Its wish says what the whole series may spend: epsilon (at the delta of what one release may spend), rho, a share
    of what one release may spend, or the largest ± of any day. There is no default.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        running: The series, one of `plan.running`.

    Returns:
        What the series spends, and the ± of every day; it prints as a price list.

    Raises:
        InvalidParameter: If the series does not say what it may spend, or too little or too much.
        Refused: If the plan and the series do not fit together.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> with open("plan.toml", "a") as file:
        ...     _ = file.write('''
        ... [[running]]
        ... name = "so_far"
        ... from = "stays"
        ... day = "admitted"
        ... first = 2025-01-01
        ... days = 365
        ... epsilon = 1
        ... ''')
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> priced = dp.release.price_running(plan, plan.running[0])
        >>> priced.epsilon <= 1
        True
    """
    _check(plan, running)
    column = plan.policy.unit.account
    most = 1 if running.person_day else running.max_days
    strategy = best(running.days, most)
    spent = _mu_squared(running.wish, plan.allowance, strategy, most)
    if not _LEAST_MU_SQUARED <= spent <= _MOST_MU_SQUARED:
        raise InvalidParameter(
            f"series {running.name!r} would spend ρ = {float(spent / 2):.3g}: choose between "
            f"{float(_LEAST_MU_SQUARED / 2):.0e} and {_MOST_MU_SQUARED / 2}, or another error"
        )
    unit = f"{column} and day" if running.person_day else column
    return PricedRunning(plan.name, running, unit, strategy, spent, plan.allowance.delta, plan.policy.unit.name)


def _check(plan: ReleasePlan, running: RunningPlan) -> None:
    positive_integer(running.days, name="days")
    if plan.policy.chain is not None:
        raise Refused(
            f"series {running.name!r} follows one unit over days, and [unit.inner] protects a second one",
            reason="what a series spends is proven for one unit",
            way_out="leave [unit.inner] out, or publish the series from a data set and a ledger of its own",
        )
    if plan.policy.unit.is_exchanged:
        raise Refused(
            f"series {running.name!r} has noise for units that come and go, and this plan is replace-one",
            reason="what a series loses where the rows of a unit are exchanged was not shown",
            way_out="publish tables by period instead, or the series from a plan under add-remove",
        )
    if positive_integer(running.max_days, name="max_days") > running.days:
        raise InvalidParameter(f"max_days of series {running.name!r} is above its days: lower it")
    if plan.policy.unit.is_row and (running.max_days != 1 or running.person_day):
        raise InvalidParameter(f"series {running.name!r} counts rows, and a row is on one day: leave max_days out")
    if plan.policy.unit.window is not None:
        raise InvalidParameter(
            f"series {running.name!r} follows a unit over days, and [unit] ends with each {plan.policy.unit.window}: "
            "leave the window out, and say person_day = true if each day is protected by itself"
        )
    if running.person_day and running.max_days != 1:
        raise InvalidParameter(f"series {running.name!r} protects each day by itself: leave max_days or person_day out")
    if plan.policy.budget.kind == "pure":
        raise Refused(
            f"series {running.name!r} has Gaussian noise, which a budget of epsilon alone does not take",
            way_out="give [budget] a delta, or a rho",
        )
    if plan.allowance.delta is None:
        raise InvalidParameter(
            f"series {running.name!r} has Gaussian noise, whose epsilon needs the delta of [release]: say one"
        )


def _mu_squared(wish: Wish, allowance: Allowance, strategy: Strategy, most: int) -> Fraction:
    said = {"epsilon": wish.epsilon, "rho": wish.rho, "share": wish.share, "error": wish.error}
    chosen = [name for name, value in said.items() if value is not None]
    if len(chosen) != 1:
        raise InvalidParameter(
            "a running series is paid for once, for all its days: say exactly one of epsilon, rho, share and error"
        )
    if wish.rho is not None:
        return 2 * wish.rho
    if wish.epsilon is not None:
        return _of_epsilon(wish.epsilon, allowance.delta)
    if wish.share is not None:
        return wish.share * _allowed(allowance)
    assert wish.error is not None
    return _of_error(wish.error, strategy, most)


def _allowed(allowance: Allowance) -> Fraction:
    if allowance.rho is not None:
        return 2 * allowance.rho
    assert allowance.epsilon is not None
    return _of_epsilon(allowance.epsilon, allowance.delta)


@lru_cache(64)
def _of_epsilon(limit: Fraction, delta: Fraction | None) -> Fraction:
    assert delta is not None, "it was checked"
    multiplier = calibrate(lambda x: Gaussian(x), epsilon=limit, delta=delta, relation=_ADD)
    return 1 / multiplier**2


def _of_error(error: Fraction, strategy: Strategy, most: int) -> Fraction:
    """Return the price at which no day errs by more: ± grows with the deviation, and that with 1 / mu."""
    rounding = max(strategy.reaches()) / (2 * ONE) + STEP / 2 + Fraction(1, 1 << 18)
    if error <= 2 * rounding:
        raise InvalidParameter("an error below one tenth of a person protects nobody: ask for a larger one")
    widest = root_up(strategy.squared_sensitivity(most) * max(strategy.variances()) / ONE**2)
    return (_normal_up(CONFIDENCE) * widest / (error - rounding)) ** 2


@lru_cache(4)
def _normal_up(confidence: Fraction) -> Fraction:
    """Return how many standard deviations to both sides a Gaussian has with this probability; rounded up."""
    fine = 1 << 30
    width = RoundedGaussianLaw(Fraction(fine**2)).half_width(confidence)
    return (width + Fraction(1, 2)) / fine
