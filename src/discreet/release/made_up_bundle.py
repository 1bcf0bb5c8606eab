"""The whole bundle from made-up rows, to see what will be published before anybody's data are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.pages.progress import working
from discreet.query.catalogue import Catalogue
from discreet.query.engine import Deadline
from discreet.query.plan.planner import draw_together
from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.cumulative.advance import dummy_running
from discreet.release.plan import Period, ReleasePlan, catalogue_in, catalogue_of
from discreet.release.pricing.priced_release import PricedRelease
from discreet.release.pricing.release_price import price
from discreet.release.published import Published, PublishedTable, RunningRelease
from discreet.release.tidy.tidying import tidy_tables

__all__ = ["dummy"]

_SECONDS = 600.0


@working("rehearsing", terminal=False)
def dummy(
    plan: ReleasePlan, folder: str | Path, period: Period | None = None, *, tables: Mapping[str, Any] | None = None
) -> Path:
    """Write the bundle of a release below a folder, from rows that are made up from what the plan declares.

    Noise, ±, thresholds and prices are those of a release; the rows are nobody's, so nothing is charged, and the bundle
    says DUMMY wherever it is looked at. All made-up rows are in the period.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        folder: Below which the bundle is written.
        period: The period that it says it is of; the first of the plan if not said.
        tables: Public tables that name no source in the plan, by name.

    Returns:
        The folder of the bundle.

    Raises:
        InvalidParameter: If something in the plan is wrong.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> draft = dp.release.draft_plan("visits.csv", unit="patient").value
        >>> _ = Path("plan.toml").write_text(draft.confirmed(epsilon=1))
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> dp.release.dummy(plan, "try").name
        'visits-once-DUMMY'
    """
    chosen = plan.schedule.period(0) if period is None else period
    priced = price(plan, chosen, tables=tables)
    drawn = tuple(_drawn(priced, catalogue_in(catalogue_of(plan, tables), plan, chosen)))
    published = Published(
        plan=plan,
        period=chosen,
        tables=tidy_tables(plan, drawn) if plan.output.tidy else drawn,
        event=priced.event,
        nested=priced.nested,
        relation=priced.relation,
        epsilon=priced.epsilon,
        delta=priced.delta,
        ledger=None,
        running=_series(plan, chosen),
    )
    return write_bundle(published, Path(folder))


def _series(plan: ReleasePlan, period: Period) -> tuple[RunningRelease, ...]:
    """Return what each series will look like at the end of the period; a plan without periods has none."""
    if period.end is None:
        return ()
    found = (dummy_running(plan, series, until=period.end) for series in plan.running)
    return tuple(one for one in found if one is not None)


def _drawn(release: PricedRelease, catalogue: Catalogue) -> Iterator[PublishedTable]:
    from discreet.query.engines.made_up_rows import dummy_engine

    engine = dummy_engine(catalogue)
    try:
        # All at once, so that the tables of a family are of the same rows.
        stages = [table.priced.stage for table in release.tables]
        tallied = engine.run_all(stages, deadline=Deadline.after(_SECONDS))
    finally:
        engine.close()
    drawn = draw_together([table.priced for table in release.tables], tallied)
    for table, raw in zip(release.tables, drawn, strict=True):
        yield PublishedTable(
            plan=table.plan,
            raw=raw,
            tidy=None,
            deviations=table.priced.deviations,
            shared=table.priced.draft.noising.shared,
            threshold=table.threshold,
        )
