"""The order of the demo: link, price, publish, attack, and say where everything is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.demo.attacking import by_differences, exact_tables, link, people_given_away, published_tables
from discreet.demo.page import attack_page
from discreet.demo.results import DemoResult
from discreet.demo.staging import stage
from discreet.demo.telling import Teller
from discreet.errors import DiscreetError
from discreet.ledger import look

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.release import PricedRelease, ReleasePlan

__all__ = ["main", "run"]

FOLDER = Path("discreet-demo")
PRINCIPAL = "demo"


def run(folder: Path = FOLDER, *, console: Console | None = None) -> DemoResult:
    """Run the demo in a folder of its own, tell it to a console, and return what was found.

    In the same folder it can be run again: what was released is neither charged nor drawn a second time.
    """
    from discreet import release

    begun, tell = time.monotonic(), Teller(console)
    tell.opening()
    plan = release.read_release_plan(stage(folder))
    linked = link(folder)
    tell.linked(linked)
    priced = release.price(plan, plan.schedule.period(0))
    tell.priced(priced)
    bundle, charged = _released(priced, tell)
    exact, published = exact_tables(plan, folder), published_tables(plan, bundle)
    named = by_differences(plan, folder, exact, isolating=exact)
    result = DemoResult(
        folder=folder,
        bundle=bundle,
        linkage=linked,
        priced=priced,
        charged=charged,
        exact=named,
        private=by_differences(plan, folder, published, isolating=exact, event=priced.event),
        people=people_given_away(folder, named, published),
        seconds=time.monotonic() - begun,
    )
    result.attack_report.write_text(attack_page(result), encoding="utf-8")
    tell.attacked(result)
    tell.closing(result)
    return result


def _released(priced: PricedRelease, tell: Teller) -> tuple[Path, bool]:
    """Publish, and return the bundle and whether anything was charged for it."""
    from discreet.release import publish

    charged = not _charged_before(priced.plan)
    bundle = publish(
        priced.plan,
        principal=PRINCIPAL,
        period=priced.period,
        on_step=lambda step: tell.step(step, charged=charged),
    )
    tell.published(bundle)
    return bundle, charged


def _charged_before(plan: ReleasePlan) -> bool:
    """Tell whether the ledger of the demo has a charge: only this one release is ever charged to it."""
    path = Path(plan.policy.ledger)
    return path.exists() and any(entry.kind == "charge" for entry in look(path).entries(plan.policy.dataset))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo from the command line, in the folder that is named or in discreet-demo."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1 or any(argument.startswith("-") for argument in given):
        print("usage: python -m discreet.demo [FOLDER]", file=sys.stderr)
        return 2
    try:
        run(Path(given[0]) if given else FOLDER)
    except DiscreetError as refusal:
        print(refusal, file=sys.stderr)
        return 3
    return 0
