"""The one order of a release: price, open, look for what is stored or charge, read, draw and store, tidy, write.

Series of totals so far go on after that, each under a charge of its own.

Everything before the charge looks at public facts only. From the charge on a release can be interrupted anywhere and
begun again: what was charged is not charged again, what was drawn is not drawn again, and what is written follows from
the plan and the ledger alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.exact import Number, exact, positive
from discreet.formatting import significant_up
from discreet.ledger import left_after
from discreet.pages.progress import working
from discreet.query import Session
from discreet.query.plan.planner import joint_event
from discreet.query.session.plans import JointPlan, JointRelease, Plan
from discreet.query.session.private_bounds_and_keys import column_of
from discreet.query.session.requests import Offer
from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.cumulative.advance import NextCharge, advance, next_charge
from discreet.release.plan import Every, Period, ReleasePlan
from discreet.release.pricing.family_noise import share_noise
from discreet.release.pricing.priced_release import PricedRelease, PricedTable
from discreet.release.pricing.release_price import apart, price
from discreet.release.published import LedgerMark, Published, PublishedTable, RunningRelease
from discreet.release.schedule_status import key_of
from discreet.release.signatures import SigningKey, read_signing_key
from discreet.release.tidy.tidy_check import check_tidy
from discreet.release.tidy.tidying import tidy_tables

__all__ = ["STEPS", "ask_table", "publish", "publish_in"]

STEPS: Final = ("priced", "opened", "answered", "tidied", "written")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OFFERED: Final = ("epsilon", "rho", "delta", "expected", "quantile_intervals", "population")


@working("publishing", terminal=False)
def publish(
    plan: ReleasePlan,
    *,
    principal: str,
    period: Period | None = None,
    tables: Mapping[str, Any] | None = None,
    max_epsilon: Number | None = None,
    today: date | None = None,
    on_step: Callable[[str], None] | None = None,
    key: SigningKey | None = None,
) -> Path:
    """Release one period of a plan and return the folder of its bundle; done before, it is the same one, for free.

    Guarantee   However often and by however many processes at once it is called, and wherever it is interrupted: one
                period is charged once, drawn once, and published in one version.

    `tables` hands over those that name no source in the plan. With `max_epsilon` a release that costs more is refused,
    and with `today` one of a period that has not ended by then, before anything is charged. `on_step` is told the name
    of each of `STEPS` when it is done. `key` signs the bundle; without it the key that the plan names does, if it needs
    no passphrase. The ledger records the digests of every bundle before it is written.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        principal: Who releases, for quotas and for the ledger.
        period: The period, if the plan repeats: such as `series(…).next`.
        tables: Tables that name no source in the plan, by name.
        max_epsilon: What it may cost at most.
        today: The day on which the period must have ended.
        on_step: Is told each step when it is done.
        key: Signs the bundle, as `read_signing_key` returns it.

    Returns:
        The folder of the bundle.

    Raises:
        InvalidParameter: If the plan has no such period, or repeats and none is said.
        Refused: If it costs more than `max_epsilon`, the period is not over, or it was begun by somebody else or on
            other data; nothing is charged.
        BudgetExceeded: If the ledger cannot pay; nothing is read.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> draft = dp.release.draft_plan("visits.csv", unit="patient").value
        >>> _ = Path("plan.toml").write_text(draft.confirmed(epsilon=1))
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> bundle = dp.release.publish(plan, principal="ana")
        >>> bundle.name
        'visits-once'
        >>> dp.release.publish(plan, principal="ana") == bundle  # costs nothing
        True
    """
    signing = _signing_key(plan, key)
    told = on_step or _nobody
    chosen = _period(plan, period, today)
    priced = price(plan, chosen, tables=tables)
    check_tidy(plan, {table.name: table.priced for table in priced.tables})
    told("priced")
    with Session.from_policy(plan.policy, principal=principal, tables=tables) as session:
        return publish_in(session, priced, max_epsilon=max_epsilon, on_step=told, key=signing)


def publish_in(
    session: Session,
    priced: PricedRelease,
    *,
    max_epsilon: Number | None = None,
    on_step: Callable[[str], None] | None = None,
    key: SigningKey | None = None,
) -> Path:
    """Release what was priced in a session that is open, as `publish` does, and return the folder of its bundle."""
    plan, told = priced.plan, on_step or _nobody
    _check_whole(session, plan)
    joint = _joined(session, priced)
    entry = session.ledger.charged(key_of(plan, priced.period))
    if entry is not None and entry.content.get("plan") != joint.fingerprint:
        priced, joint = _as_before(session, priced, joint, str(entry.content.get("plan")))
    _check_charge(session, priced, max_epsilon)
    told("opened")
    released = joint.release()
    running = _advanced(session, priced)
    mark = _mark(session, released, running)
    told("answered")
    published = replace(_published(priced, released, mark), running=running)
    told("tidied")
    record = partial(session.ledger.record_bundle, mark.charge)
    folder = write_bundle(published, plan.output.folder, key=key, record=record)
    told("written")
    return folder


def _signing_key(plan: ReleasePlan, key: SigningKey | None) -> SigningKey | None:
    """Return the key that signs, read before anything is charged."""
    if key is not None and not isinstance(key, SigningKey):
        raise InvalidParameter("key must be a SigningKey: read one with release.read_signing_key")
    return read_signing_key(plan.output.key) if key is None and plan.output.key is not None else key


def _nobody(step: str) -> None:
    """Be told nothing."""


def _period(plan: ReleasePlan, period: Period | None, today: date | None) -> Period:
    """Return the period that is released; refuse one that the schedule does not have, or that is not over."""
    schedule = plan.schedule
    if schedule.every is Every.ONCE:
        if period is not None and period != schedule.period(0):
            raise InvalidParameter("this plan releases once: it has no periods")
        return schedule.period(0)
    if period is None:
        raise InvalidParameter("this plan repeats: say which period to release, such as the next of release.series")
    if period.first is None or period != schedule.containing(period.first):
        raise InvalidParameter(f"{period.label!r} is no period of this plan: take one of its schedule")
    if today is not None and period.end is not None and today < period.end:
        raise Refused(
            f"the period {period.label} ends on {period.end}, and is not over",
            reason="a period is released once: what comes in later would never be counted",
            way_out=f"release it from {period.end} on",
        )
    return period


def _check_charge(session: Session, priced: PricedRelease, max_epsilon: Number | None) -> None:
    """Refuse what costs more than it may, or more than there is, before the first of several charges is made."""
    begin = next_charge(replace(priced.plan, tables=()), priced.period, session).parts  # series only
    is_paid = session.ledger.charged(key_of(priced.plan, priced.period)) is not None
    unpaid = NextCharge({**({} if is_paid else {"release": priced.event}), **begin}, priced.delta)
    cost, most = exact(unpaid.epsilon), None if max_epsilon is None else positive(max_epsilon, name="max_epsilon")
    if most is not None and cost > most:
        raise Refused(
            f"this release costs ε = {significant_up(cost)}, more than the ε = {significant_up(most)} that may be "
            "spent on it",
            way_out="raise max_epsilon, or let [release] in the plan spend less; nothing was charged",
        )
    own = {one.name for one in priced.plan.running if one.person_day}  # Their charges go to an account of their own.
    events = [event for name, event in unpaid.parts.items() if name not in own]
    if begin and events and not session.affords(joint_event(events), at_once=len(events) == 1):
        raise BudgetExceeded(asked=f"ε = {significant_up(cost)} of a release and its series", left=session.left)


def _check_whole(session: Session, plan: ReleasePlan) -> None:
    """Refuse whole bounds of a column that is not stored as whole numbers: a plan is priced without the data.

    They would mean whole numbers by the plan alone, and real numbers by the data.
    """
    for table, policy in plan.policy.tables.items():
        for name, declared in policy.columns.items():
            stored = column_of(session.catalogue.tables[table], name).stored
            if declared.stored_as(stored) != declared.facts:
                raise Refused(
                    f"column {name!r} of table {table!r} has whole bounds, and is not stored as whole numbers",
                    reason="it is not said whether its numbers are whole, and nothing is rounded unless somebody says",
                    way_out="write whole = true beside its bounds if they are, or a bound with a point, such as 0.0, "
                    "if they are not; nothing was charged",
                )


def _joined(session: Session, priced: PricedRelease) -> JointPlan:
    """Make the plans of all tables in a session, and check that their prices and their noise are as announced."""
    key = key_of(priced.plan, priced.period)
    _check_begun(session, key, priced.plan.schedule.another)
    plans = {table.name: ask_table(session, table) for table in priced.tables}
    joint = session.batch(plans, idempotency_key=key, purpose=f"{priced.plan.title}, {priced.period.label}")
    shared = {name: one.priced for name, one in plans.items()}
    if any(table.priced.draft.noising.shared is not None for table in priced.tables):
        shared = share_noise(priced.plan, shared)
    for table in priced.tables:
        own, said = shared[table.name], table.priced
        if (own.event, own.nested, own.variances) != (said.event, said.nested, said.variances):
            raise Refused(
                f"table {table.name!r} has another price or other noise on the data than by the plan",
                reason="a source has columns of other kinds than the plan declares",
                way_out="compare the columns of [tables] with those of the data; nothing was charged",
            )
    return joint._sharing(shared)


def _as_before(
    session: Session, priced: PricedRelease, joint: JointPlan, fingerprint: str
) -> tuple[PricedRelease, JointPlan]:
    """Go on with a release whose tables had noise of their own, if it was begun before families shared theirs."""
    before = apart(priced)
    own = _joined(session, before)
    return (before, own) if own.fingerprint == fingerprint else (priced, joint)


def ask_table(session: Session, table: PricedTable) -> Plan:
    """Ask for a table as it was priced; that it counts the rows of its family is no word of `Session.sql`."""
    said = {name: value for name, value in table.offer.items() if name in _OFFERED}
    ask = session._ask if table.plan.kept_of is None else session._ask_kept
    return ask(table.sql, Offer(**said), keys=table.offer.get("keys"), limits=table.plan.limits)


def _check_begun(session: Session, key: str, another: str) -> None:
    """Refuse to go on with a release that somebody else began, or that was begun on other data."""
    entry = session.ledger.charged(key)
    if entry is None:
        return
    if entry.content.get("principal") != session.principal:
        raise Refused(
            f"{key!r} was charged by another principal, and belongs to them", way_out="release it as whoever began it"
        )
    if entry.content.get("version") != session.version:
        raise Refused(
            f"{key!r} was charged for another version of the data",
            reason="what was released stays as it is, and the same period is not released twice",
            way_out=f"{another}. To write this one again, bring back the version that the plan named then",
        )


def _advanced(session: Session, priced: PricedRelease) -> tuple[RunningRelease, ...]:
    """Release the days of every series that have ended with the period; a plan without periods has none."""
    plan, end = priced.plan, priced.period.end
    if end is None:
        return ()
    found = (advance(plan, running, session, until=end) for running in plan.running)
    return tuple(one for one in found if one is not None)


def _mark(session: Session, released: JointRelease, running: tuple[RunningRelease, ...]) -> LedgerMark:
    charge, account = released.charge, session.ledger.account
    entry = session.ledger.entry(charge.id)
    moment = _EPOCH + timedelta(microseconds=entry.time)
    series = [one.charge.id for one in running if one.charge is not None and one.unit == account.unit]
    left = left_after(session.ledger.history(), max([charge.id, *series]))
    return LedgerMark(dataset=account.dataset, charge=charge.id, hash=charge.hash, time=moment, left=left)


def _published(priced: PricedRelease, released: JointRelease, mark: LedgerMark) -> Published:
    """Put together what goes into the bundle: raw tables, tidy ones, price and mark."""
    tables = tuple(
        PublishedTable(
            plan=table.plan,
            raw=released.tables[table.name],
            tidy=None,
            deviations=dict(table.priced.deviations),
            shared=table.priced.draft.noising.shared,
            threshold=table.threshold,
        )
        for table in priced.tables
    )
    return Published(
        plan=priced.plan,
        period=priced.period,
        tables=tidy_tables(priced.plan, tables) if priced.plan.output.tidy else tables,
        event=priced.event,
        nested=priced.nested,
        relation=priced.relation,
        epsilon=priced.epsilon,
        delta=priced.delta,
        ledger=mark,
    )
