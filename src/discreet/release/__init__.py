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
    from discreet.release.declared import catalogue_of
    from discreet.release.drafting.draft import Draft, draft_plan
    from discreet.release.drafting.proposals import Proposal
    from discreet.release.made_up import dummy
    from discreet.release.period import Every, Period, Schedule
    from discreet.release.plan import (
        Allowance,
        Invariant,
        Level,
        Output,
        ReleasePlan,
        RunningPlan,
        SeenFact,
        TablePlan,
        Wish,
    )
    from discreet.release.pricing.advice import to_reach
    from discreet.release.pricing.checking import Checked, check
    from discreet.release.pricing.priced_release import PricedRelease, PricedTable
    from discreet.release.pricing.pricing import price
    from discreet.release.profiling.plan import ProfilePlan, plan_profile
    from discreet.release.profiling.profile import profile
    from discreet.release.profiling.results import CellCount, ColumnProfile, Profile
    from discreet.release.published import LedgerMark, Published, PublishedTable, RunningRelease
    from discreet.release.publishing import publish
    from discreet.release.reading.plan_file import read_release_plan, release_plan_schema
    from discreet.release.reading.window import sql_in
    from discreet.release.running.advancing import advance
    from discreet.release.running.charging import NextCharge, dummy_running, next_charge
    from discreet.release.running.pricing import PricedRunning, price_running
    from discreet.release.signatures import PublicKey, SigningKey, new_key, read_public_key, read_signing_key
    from discreet.release.standing import ReleasedPeriod, Series, series
    from discreet.release.tidy import check_tidy, tidy_tables

_HOMES = {
    "bundle": ("BundleFinding", "Verified", "verify_bundle", "write_bundle"),
    "declared": ("catalogue_of",),
    "made_up": ("dummy",),
    "drafting.draft": ("Draft", "draft_plan"),
    "drafting.proposals": ("Proposal",),
    "period": ("Every", "Period", "Schedule"),
    "plan": (
        "Allowance",
        "Invariant",
        "Level",
        "Output",
        "ReleasePlan",
        "RunningPlan",
        "SeenFact",
        "TablePlan",
        "Wish",
    ),
    "pricing.advice": ("to_reach",),
    "pricing.checking": ("Checked", "check"),
    "pricing.priced_release": ("PricedRelease", "PricedTable"),
    "pricing.pricing": ("price",),
    "profiling.plan": ("ProfilePlan", "plan_profile"),
    "profiling.profile": ("profile",),
    "profiling.results": ("CellCount", "ColumnProfile", "Profile"),
    "publishing": ("publish",),
    "published": ("LedgerMark", "Published", "PublishedTable", "RunningRelease"),
    "reading.plan_file": ("read_release_plan", "release_plan_schema"),
    "reading.window": ("sql_in",),
    "running.advancing": ("advance",),
    "running.charging": ("NextCharge", "dummy_running", "next_charge"),
    "running.pricing": ("PricedRunning", "price_running"),
    "signatures": ("PublicKey", "SigningKey", "new_key", "read_public_key", "read_signing_key"),
    "standing": ("ReleasedPeriod", "Series", "series"),
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
