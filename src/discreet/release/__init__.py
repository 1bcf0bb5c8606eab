"""Release plans: tables published on a schedule, priced before they run, as bundles that can be verified.

    plan = release.read_release_plan("plan.toml")
    print(release.price(plan))                     # what it costs, and how exact it will be; nothing is read
    release.publish(plan, principal="ana")         # charged, read, drawn, stored, written

Everything is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.release.bundle.verification import verify_bundle
    from discreet.release.cumulative.advance import advance
    from discreet.release.cumulative.series_price import price_running
    from discreet.release.draft.plan_draft import draft_plan
    from discreet.release.made_up_bundle import dummy
    from discreet.release.plan_reader import read_release_plan, release_plan_schema
    from discreet.release.pricing.limit_grid import tune
    from discreet.release.pricing.plan_check import check
    from discreet.release.pricing.priced_release import to_reach
    from discreet.release.pricing.release_price import price
    from discreet.release.profiling.profile_plan import plan_profile, profile
    from discreet.release.release_order import publish
    from discreet.release.schedule_status import series
    from discreet.release.signatures import new_key, read_signing_key

_HOMES = {
    "bundle.verification": ("verify_bundle",),
    "cumulative.advance": ("advance",),
    "cumulative.series_price": ("price_running",),
    "draft.plan_draft": ("draft_plan",),
    "made_up_bundle": ("dummy",),
    "plan_reader": ("read_release_plan", "release_plan_schema"),
    "pricing.limit_grid": ("tune",),
    "pricing.plan_check": ("check",),
    "pricing.priced_release": ("to_reach",),
    "pricing.release_price": ("price",),
    "profiling.profile_plan": ("plan_profile", "profile"),
    "release_order": ("publish",),
    "schedule_status": ("series",),
    "signatures": ("new_key", "read_signing_key"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "advance",
    "check",
    "draft_plan",
    "dummy",
    "new_key",
    "plan_profile",
    "price",
    "price_running",
    "profile",
    "publish",
    "read_release_plan",
    "read_signing_key",
    "release_plan_schema",
    "series",
    "to_reach",
    "tune",
    "verify_bundle",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"discreet.release.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
