"""What the demo has found, in one value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from discreet.attacks import Differencing, Linkage, Success
from discreet.release import PricedRelease

__all__ = ["DemoResult", "Person"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who does not exist, and whom differences of exact tables give away."""

    name: str  # from the list of voters; empty for whoever is not on it
    facts: str  # what one must know about the person
    diagnosis: str
    group: str  # whom the two counts are about …
    others: str  # … and whom the smaller one is about
    exact: tuple[float, float]  # their counts in the exact tables …
    private: tuple[float, float]  # … and in the private ones


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """Figures of the demo. They are about people who do not exist; about real ones they would be `NotPrivate`."""

    folder: Path
    bundle: Path
    linkage: Linkage
    priced: PricedRelease
    charged: bool  # False if the period had been released before
    exact: Differencing
    private: Differencing
    people: tuple[Person, ...]
    seconds: float

    @property
    def report(self) -> Path:
        """The report of the release, which may be published."""
        return self.bundle / "report.html"

    @property
    def attack_report(self) -> Path:
        """The page about the attacks, which may not."""
        return self.folder / "attack-report.html"

    @property
    def example(self) -> Person:
        """Somebody to tell the story with: whose private difference is not by chance the exact one."""
        told = [person for person in self.people if person.private[0] - person.private[1] != 1]
        return (told or list(self.people))[0]

    @property
    def epsilon(self) -> float:
        """What the release spent."""
        return self.priced.epsilon

    @property
    def tables(self) -> int:
        """How many tables were published."""
        return len(self.priced.tables)

    def to_json(self) -> dict[str, Any]:
        """Return the figures in plain values."""
        return {
            "folder": str(self.folder),
            "bundle": str(self.bundle),
            "report": str(self.report),
            "attack_report": str(self.attack_report),
            "stays": self.linkage.named.of,
            "stays_named": self.linkage.named.hits,
            "tables": self.tables,
            "epsilon": self.epsilon,
            "delta": float(self.priced.delta),
            "charged": self.charged,
            "exact_tables": _figures(self.exact),
            "private_tables": _figures(self.private),
            "seconds": round(self.seconds, 1),
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json(), indent=1)


def _figures(found: Differencing) -> dict[str, Any]:
    return {
        "attacked": found.named.of,
        "right": found.named.hits,
        "right_without_their_row": found.without.hits,
        "right_by_what_is_common": found.commonest.hits,
        "drawn_anew": _drawn(found.fresh),
        "drawn_anew_without_their_row": _drawn(found.fresh_without),
        "ceiling": found.ceiling,
    }


def _drawn(success: Success | None) -> dict[str, int] | None:
    return None if success is None else {"right": success.hits, "of": success.of}
