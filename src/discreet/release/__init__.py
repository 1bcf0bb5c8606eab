"""The main job: tables that are published on a schedule, priced before they run, with a bundle that defends them.

    plan = release.read_release_plan("plan.toml")
    print(release.price(plan))                     # what it costs, and how exact it will be; nothing is read
    release.publish(plan, principal="ana")         # charged, read, drawn, stored, written

Everything is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.release.bundle import BundleFinding, Verified, verify_bundle, write_bundle
    from discreet.release.cumulative.advance import NextCharge, advance, dummy_running, next_charge
    from discreet.release.cumulative.series_price import PricedRunning, price_running
    from discreet.release.draft.custodian_look import Proposal
    from discreet.release.draft.plan_draft import Draft, draft_plan
    from discreet.release.levels_and_families import sql_in
    from discreet.release.made_up_bundle import dummy
    from discreet.release.plan import (
        Allowance,
        Every,
        Invariant,
        Level,
        Output,
        Period,
        ReleasePlan,
        RunningPlan,
        Schedule,
        SeenFact,
        TablePlan,
        Wish,
        catalogue_of,
    )
    from discreet.release.plan_reader import read_release_plan, release_plan_schema
    from discreet.release.pricing.plan_check import Checked, check
    from discreet.release.pricing.priced_release import PricedRelease, PricedTable, to_reach
    from discreet.release.pricing.release_price import price
    from discreet.release.profiling.profile_plan import ProfilePlan, plan_profile, profile
    from discreet.release.profiling.profile_results import CellCount, ColumnProfile, Profile
    from discreet.release.published import LedgerMark, Published, PublishedTable, RunningRelease
    from discreet.release.release_order import publish
    from discreet.release.schedule_status import ReleasedPeriod, Series, series
    from discreet.release.signatures import PublicKey, SigningKey, new_key, read_public_key, read_signing_key
    from discreet.release.tidy import check_tidy, tidy_tables

_HOMES = {
    "bundle": ("BundleFinding", "Verified", "verify_bundle", "write_bundle"),
    "plan": (
        "Allowance",
        "Every",
        "Invariant",
        "Level",
        "Output",
        "Period",
        "ReleasePlan",
        "RunningPlan",
        "Schedule",
        "SeenFact",
        "TablePlan",
        "Wish",
        "catalogue_of",
    ),
    "made_up_bundle": ("dummy",),
    "draft.plan_draft": ("Draft", "draft_plan"),
    "draft.custodian_look": ("Proposal",),
    "pricing.priced_release": ("PricedRelease", "PricedTable", "to_reach"),
    "pricing.plan_check": ("Checked", "check"),
    "pricing.release_price": ("price",),
    "profiling.profile_plan": ("ProfilePlan", "plan_profile", "profile"),
    "profiling.profile_results": ("CellCount", "ColumnProfile", "Profile"),
    "release_order": ("publish",),
    "published": ("LedgerMark", "Published", "PublishedTable", "RunningRelease"),
    "plan_reader": ("read_release_plan", "release_plan_schema"),
    "levels_and_families": ("sql_in",),
    "cumulative.advance": ("NextCharge", "advance", "dummy_running", "next_charge"),
    "cumulative.series_price": ("PricedRunning", "price_running"),
    "signatures": ("PublicKey", "SigningKey", "new_key", "read_public_key", "read_signing_key"),
    "schedule_status": ("ReleasedPeriod", "Series", "series"),
    "tidy": ("check_tidy", "tidy_tables"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Allowance",
    "BundleFinding",
    "CellCount",
    "Checked",
    "ColumnProfile",
    "Draft",
    "Every",
    "Invariant",
    "LedgerMark",
    "Level",
    "NextCharge",
    "Output",
    "Period",
    "PricedRelease",
    "PricedRunning",
    "PricedTable",
    "Profile",
    "ProfilePlan",
    "Proposal",
    "PublicKey",
    "Published",
    "PublishedTable",
    "ReleasePlan",
    "ReleasedPeriod",
    "RunningPlan",
    "RunningRelease",
    "Schedule",
    "SeenFact",
    "Series",
    "SigningKey",
    "TablePlan",
    "Verified",
    "Wish",
    "advance",
    "catalogue_of",
    "check",
    "check_tidy",
    "draft_plan",
    "dummy",
    "dummy_running",
    "new_key",
    "next_charge",
    "plan_profile",
    "price",
    "price_running",
    "profile",
    "publish",
    "read_public_key",
    "read_release_plan",
    "read_signing_key",
    "release_plan_schema",
    "series",
    "sql_in",
    "tidy_tables",
    "to_reach",
    "verify_bundle",
    "write_bundle",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"discreet.release.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
