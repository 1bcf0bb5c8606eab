"""What came of a profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.release import Profile

__all__ = ["ProfileAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAnswer:
    """What was found in every column, and the page that shows it."""

    report: str
    profile: dict[str, Any]
    text: str

    @classmethod
    def of(cls, profile: Profile, page: Path) -> ProfileAnswer:
        """Read a profile."""
        return cls(report=str(page), profile=json.loads(profile.to_json()), text=str(profile))

    def blocks(self) -> Iterator[Block]:
        yield self.text
        yield f"open {self.report}"
