"""Price a release: read every table, divide what may be spent, and add it up. No private file is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.errors import BudgetExceeded, InvalidParameter, Refused, UnsupportedEvent
from discreet.ledger import Ledger
from discreet.pages.progress import working
from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.query.plan.planner import PricedQuery, errors_of, joint_event, relative_errors_of
from discreet.release.cumulative.series_price import PricedRunning, price_running
from discreet.release.plan import Period, ReleasePlan, catalogue_of, located, place_of, told_at
from discreet.release.pricing.budget_split import divide
from discreet.release.pricing.family_noise import divide_by_aim, share_noise
from discreet.release.pricing.priced_release import PricedRelease, PricedTable
from discreet.release.pricing.quotes import Quote, is_gaussian, quotes_of

__all__ = ["apart", "price", "releases_held"]


@working("pricing", terminal=False)
def price(plan: ReleasePlan, period: Period | None = None, *, tables: Mapping[str, Any] | None = None) -> PricedRelease:
    """Say what a release costs and how exact it will be, from public facts only.

    `tables` hands over public tables that name no source; private ones are never looked at. The price is the same for
    every period.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        period: The period of the release; the first of the plan if not said.
        tables: Public tables that name no source in the plan, by name.

    Returns:
        What the release and each of its tables spend, and the ± of every column; it prints as a price list.

    Raises:
        InvalidParameter: If something in the plan is wrong, or what a table asks for cannot be had.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> priced = dp.release.price(plan)
        >>> priced.epsilon <= 1
        True
        >>> priced.tables[0].name
        'patients'
    """
    _check_kinds(plan)
    chosen = plan.schedule.period(0) if period is None else period
    quotes = quotes_of(plan, catalogue_of(plan, tables), chosen)
    priced = divide_by_aim(plan, quotes, divide(plan, quotes))
    _check_families(plan, quotes, priced)
    priced = tuple(share_noise(plan, dict(zip((table.name for table in plan.tables), priced, strict=True))).values())
    event = joint_event(one.event for one in priced)
    nested = tuple(joint_event(each) for each in zip(*(one.nested for one in priced), strict=True))
    series = tuple(_series(plan, index) for index in range(len(plan.running)))
    at = plan.allowance.delta or Fraction(0)
    return PricedRelease(
        plan=plan,
        period=chosen,
        tables=tuple(_table(quote, one) for quote, one in zip(quotes, priced, strict=True)),
        event=event,
        epsilon=epsilon(event, at, relation=plan.policy.unit.relation),
        delta=at,
        total=sum((quote.amount_of(one) for quote, one in zip(quotes, priced, strict=True)), Fraction(0)),
        lifetime=releases_held(plan, event, [one.event for one in series], nested),
        nested=nested,
        running=series,
    )


def apart(release: PricedRelease) -> PricedRelease:
    """Return the same release with noise of its own for every table, as all were before families shared theirs."""
    return replace(release, tables=tuple(map(_apart, release.tables)))


def _apart(table: PricedTable) -> PricedTable:
    own = table.priced.sharing(None)
    errors, relative = errors_of(own.draft), relative_errors_of(own.draft)
    return replace(table, priced=own, errors=errors, relative_errors=relative)


def _check_families(plan: ReleasePlan, quotes: Sequence[Quote], priced: Sequence[PricedQuery]) -> None:
    """Refuse a family that one scan cannot count, before it is paid for: its tables would choose different rows."""
    from discreet.query.engines.shared_scans import share

    families: dict[str, list[PricedQuery]] = {}
    for one in priced:
        if one.draft.family is not None:
            families.setdefault(one.draft.family, []).append(one)
    for name, tables in families.items():
        try:
            share([one.stage for one in tables])
        except Refused as refused:
            first = next(quote.table.name for quote in quotes if quote.table.family == name)
            raise located(plan, place_of(plan, first), refused) from None


def releases_held(
    plan: ReleasePlan, event: Event, before: Sequence[Event] = (), nested: Sequence[Event] = ()
) -> int | None:
    """Return how many releases like this one the lifetime budget holds, by the rule of a fresh ledger.

    What is in `before`, such as series that are paid for once, is charged first. None where no lifetime budget ends it.
    """
    policy = plan.policy
    if policy.budget.kind == "unlimited":
        return None
    try:
        with Ledger.open("memory", policy.account) as book:
            for once in before:
                book.charge(once, relation=policy.unit.relation, purpose="series", unit=policy.unit.account)
            return book.times_left(event, nested=nested)
    except BudgetExceeded:
        return 0
    except UnsupportedEvent as error:
        raise _other_kind(plan, str(error)) from None


def _series(plan: ReleasePlan, index: int) -> PricedRunning:
    try:
        return price_running(plan, plan.running[index])
    except (InvalidParameter, Refused) as error:
        raise located(plan, ("running", index), error) from None


def _check_kinds(plan: ReleasePlan) -> None:
    if not plan.tables:
        raise InvalidParameter(told_at(plan, (), "this plan has no [[publish]], so a release has no price"))
    if any(budget.kind == "pure" for budget in plan.policy.account.budgets) and is_gaussian(plan.allowance):
        raise _other_kind(plan, "it is pure and takes no delta and no rho, which Gaussian noise needs")


def _other_kind(plan: ReleasePlan, reason: str) -> Refused:
    return Refused(
        told_at(plan, ("budget",), "the lifetime budget keeps an account that cannot hold such a release"),
        reason=reason,
        way_out="let [budget] and [release] be of one kind: epsilon alone, epsilon with delta, or rho",
    )


def _table(quote: Quote, priced: PricedQuery) -> PricedTable:
    return PricedTable(
        plan=quote.table,
        sql=quote.reading.sql,
        priced=priced,
        offer=quote.offer(priced),
        errors=errors_of(priced.draft),
        relative_errors=relative_errors_of(priced.draft),
        threshold=_threshold(priced),
    )


def _threshold(priced: PricedQuery) -> str:
    noising, unit = priced.draft.noising, priced.draft.catalogue.unit
    if noising.selection is None:
        return ""
    return (
        f"a group is shown if its {unit.nouns} plus noise exceed {noising.selection.threshold}: one with fewer than "
        f"about {noising.selection.reliable_count()} usually stays hidden"
    )
