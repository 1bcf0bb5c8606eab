"""Discreet: every attack of the lab against raw or naive releases, and against private ones at three levels."""

from __future__ import annotations

import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.attack_lab.contests import DELTA, Contest, Outcome, Setting
from benchmarks.attack_lab.listed import CONTESTS, ERROR, LEVELS
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import once
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import epsilon


def main() -> None:
    folder = next((Path(text) for text in sys.argv[1:] if not text.startswith("--")), None)
    setting = Setting(0.1 if is_quick() else 1.0, folder)
    for contest in CONTESTS:
        for level in (None, *LEVELS) if contest.private else (None,):
            attacked(contest, level, setting)


def attacked(contest: Contest, level: Fraction | None, setting: Setting) -> None:
    """Run one attack on one kind of release, and say how it went."""
    found: list[Outcome] = []
    timing = once(lambda: found.append(contest.attack(level, setting)))
    outcome = found[0]
    words = {name: text for name, text in asdict(contest).items() if isinstance(text, str)}
    emit(
        release="raw" if level is None else f"{float(level):g}",
        data=outcome.data,
        success=_share(outcome.success),
        without=None if outcome.without is None else _share(outcome.without),
        baseline=outcome.baseline,
        spent=None if outcome.event is None else epsilon(outcome.event, DELTA, relation=outcome.relation),
        ceiling=outcome.ceiling(0.05),
        kept=outcome.kept(ERROR),
        cpu=timing.cpu,
        wall=timing.wall,
        **words,
    )


def _share(success: Success) -> dict[str, Any]:
    low, high = success.interval()
    return {"hits": success.hits, "of": success.of, "share": success.share, "low": low, "high": high}


if __name__ == "__main__":
    main()
