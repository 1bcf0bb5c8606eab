"""Release plans as jobs: those that the custodian named at the start, and those that are sent as text.

Whatever a plan names as source, ledger, folder or key, only the tables and the ledger of the data set are used, and
bundles go into the state of the server. Series of totals so far are refused: their charges come after the first answer,
at a time that the rows decide.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact
from discreet.formatting import significant_up
from discreet.query.session.session import Session
from discreet.release.bundle.verification import Verified, verify_bundle
from discreet.release.made_up_bundle import dummy
from discreet.release.plan import Every, Period, ReleasePlan
from discreet.release.plan_reader import read_plan_text, read_release_plan
from discreet.release.pricing.priced_release import PricedRelease
from discreet.release.pricing.release_price import price
from discreet.release.release_order import publish_in
from discreet.release.schedule_status import Series, key_of, series
from discreet.release.signatures import SigningKey, read_signing_key
from discreet.release.tidy.tidy_check import check_tidy
from discreet.server.datasets import DatasetShelf, ServedDataset
from discreet.server.jobs import Job
from discreet.server.problems import Problem
from discreet.server.work.job_kinds import WorkAnswer, WorkOffer, offered

__all__ = ["PlacedPlans", "dummy_plan", "offer_plan", "run_plan", "verified_bundle"]


def _today() -> date:
    return datetime.now(UTC).date()


@final
class PlacedPlans:
    """The plans that whoever runs the server named: read and checked at the start, by data set and name."""

    def __init__(self, files: Iterable[Path], shelf: DatasetShelf) -> None:
        self._plans: dict[tuple[str, str], ReleasePlan] = {}
        self._prices: dict[tuple[str, str], PricedRelease] = {}
        self._keys: dict[tuple[str, str], SigningKey | None] = {}
        served = {one.name: one for one in shelf}
        for file in files:
            read = read_release_plan(file)
            if read.policy.dataset not in served:
                raise InvalidParameter(f"{file.name} is of data set {read.policy.dataset}, which is not served")
            at = (read.policy.dataset, read.name)
            if at in self._plans:
                raise InvalidParameter(f"two plans of {at[0]} are called {at[1]}: name one of them otherwise")
            self._plans[at] = _adopted(read.written, served[at[0]])
            self._prices[at] = price(self._plans[at])
            self._keys[at] = None if read.output.key is None else read_signing_key(read.output.key)

    def of(self, dataset: str) -> list[ReleasePlan]:
        """Return the plans of a data set."""
        return [plan for (about, _), plan in self._plans.items() if about == dataset]

    def text(self, dataset: str, name: str) -> str:
        """Return what a plan says, by its name."""
        found = self._plans.get((dataset, name))
        if found is None:
            raise Problem("not-found", "there is no plan of this name: see the list of plans")
        return found.written

    def key(self, plan: ReleasePlan) -> SigningKey | None:
        """Return the key that signs bundles of a plan: of one that was named at the start, and is the same still."""
        at = (plan.policy.dataset, plan.name)
        known = self._plans.get(at)
        return self._keys[at] if known is not None and known.written == plan.written else None

    def standing(self, served: ServedDataset, name: str) -> list[dict[str, Any]]:
        """Say where each plan of a data set stands today: what was paid for, and what is due."""
        session = served.asked_by(name)
        return [_standing(plan, session, self._prices[plan.policy.dataset, plan.name]) for plan in self.of(served.name)]


def _due(plan: ReleasePlan, stands: Series) -> tuple[list[str], list[Period]]:
    """Return the periods that were paid for, and those that are due: by charges alone.

    Whether a release was answered is known before it may be told.
    """
    paid = [one.label for one in (*stands.released, *stands.unfinished)]
    return paid, [period for period in plan.schedule.until(stands.today) if period.label not in paid]


def _standing(plan: ReleasePlan, session: Session, priced: PricedRelease) -> dict[str, Any]:
    stands = series(
        plan, session, today=_today(), event=priced.event, nested=priced.nested, principal=session.principal
    )
    paid, due = _due(plan, stands)
    same = [period.label for period in stands.same_rows]
    return {
        "name": plan.name,
        "title": plan.title,
        "tables": [table.name for table in plan.tables],
        "every": plan.schedule.every.value,
        "released": paid,
        "due": [period.label for period in due if period.label not in same],
        "same_rows": same,
        "price": stands.price,
        "more": stands.more,
    }


def _adopted(text: str, served: ServedDataset) -> ReleasePlan:
    """Read a plan for a data set that is served, or refuse what cannot be released here."""
    plan = read_plan_text(text, served.policy)
    if plan.running:
        raise Refused(
            "a plan with [[running]] is not released here",
            reason="each of its series is charged by itself once the tables are answered, so that the time of the "
            "charge would tell how long reading took",
            way_out="leave [[running]] out, or release it with `discreet release` where the data are",
        )
    return replace(plan, output=replace(plan.output, zip=True, key=None))


def _period(plan: ReleasePlan, session: Session, label: str | None) -> Period:
    """Return the period that is meant: by its label, or the oldest that is due."""
    schedule, today = plan.schedule, _today()
    if schedule.every is Every.ONCE:
        if label not in (None, "once"):
            raise InvalidParameter("this plan releases once: leave the period out")
        return schedule.period(0)
    ended = schedule.until(today)
    if label is not None:
        found = next((one for one in ended if one.label == label), None)
        if found is None:
            raise InvalidParameter("there is no such period of this plan that has ended")
        return found
    stands = series(plan, session, today=today)
    due = [one for one in _due(plan, stands)[1] if one not in stands.same_rows]
    if not due:
        raise Refused("nothing is due: all periods that have ended are released, or would charge for the same rows")
    return due[0]


def _priced(served: ServedDataset, session: Session, said: Mapping[str, Any]) -> PricedRelease:
    plan = _adopted(said["toml"], served)
    priced = price(plan, _period(plan, session, said.get("period")))
    check_tidy(plan, {table.name: table.priced for table in priced.tables})
    return priced


def offer_plan(served: ServedDataset, session: Session, said: dict[str, Any]) -> WorkOffer:
    """Price a release of a plan; nothing is read but public tables."""
    priced = _priced(served, session, said)
    plan, period = priced.plan, priced.period
    before = session.ledger.charged(key_of(plan, period))
    if before is not None and before.content.get("principal") != session.principal:
        raise Refused(f"{plan.name} {period.label} was released by somebody else, and belongs to them")
    at = f", δ = {significant_up(priced.delta)}" if priced.delta else ""
    release = offered(
        "plan",
        plan.title if plan.schedule.every is Every.ONCE else f"{plan.title}, {period.label}",
        cost="nothing: it was paid before" if before is not None else f"ε = {significant_up(priced.epsilon)}{at}",
        event=None if before is not None else priced.event,
        epsilon=exact(0) if before is not None else exact(priced.epsilon),
        said={"toml": plan.written, "period": period.label},
    )
    release = replace(release, nested=() if before is not None else priced.nested)
    tables = json.loads(priced.to_json())["tables"]
    errors = {
        f"{table['name']}, {column}": f"± {significant_up(error, 3)} at 95 %"
        for table in tables
        for column, error in table["errors"].items()
    }
    facts = {"plan": plan.title, "period": period.label, "tables": ", ".join(table["name"] for table in tables)}
    return WorkOffer(release=release, facts=facts, errors=errors)


def run_plan(plans: PlacedPlans) -> Callable[[Job, ServedDataset, Session], str]:
    """Return what publishes a period of a plan: charged once under the key of the period, whoever asks again."""

    def run(job: Job, served: ServedDataset, session: Session) -> str:
        priced = _priced(served, session, job.details)
        with tempfile.TemporaryDirectory(prefix="discreet-bundle-") as folder:
            output = replace(priced.plan.output, folder=Path(folder))
            here = replace(priced, plan=replace(priced.plan, output=output))
            bundle = publish_in(session, here, key=plans.key(priced.plan))
            return _packed(bundle, priced).to_json()

    return run


def dummy_plan(served: ServedDataset, said: dict[str, Any]) -> WorkAnswer:
    """Make the bundle of made-up rows."""
    priced = _priced(served, served.session, said)
    with tempfile.TemporaryDirectory(prefix="discreet-bundle-") as folder:
        return _packed(dummy(priced.plan, folder, priced.period), priced)


def _packed(bundle: Path, priced: PricedRelease) -> WorkAnswer:
    plan = priced.plan
    told = {
        "plan": plan.name,
        "title": plan.title,
        "period": priced.period.label,
        "bundle": bundle.name,
        "tables": [table.name for table in priced.tables],
        "epsilon": priced.epsilon,
    }
    archive = bundle.with_name(f"{bundle.name}.zip").read_bytes()
    return WorkAnswer(told=told, files={"bundle.zip": archive, "report.html": (bundle / "report.html").read_bytes()})


def verified_bundle(job: Job, served: ServedDataset) -> Verified:
    """Check a bundle against what was paid for, stored and recorded in the ledger."""
    content = WorkAnswer.of(job).files.get("bundle.zip")
    if content is None:
        raise Problem("not-found", "this release has no bundle")
    with tempfile.TemporaryDirectory(prefix="discreet-bundle-") as folder:
        file = Path(folder) / "bundle.zip"
        file.write_bytes(content)
        return verify_bundle(file, ledger=served.policy.ledger)
