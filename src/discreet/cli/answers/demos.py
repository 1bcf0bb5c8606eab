"""What the demo has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.demo import DemoResult

__all__ = ["DemoAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAnswer:
    """Figures about people who do not exist. The story itself is told while it happens."""

    folder: str
    bundle: str
    report: str
    attack_report: str
    stays: int
    stays_named: int
    tables: int
    epsilon: float
    delta: float
    charged: bool
    exact_tables: dict[str, Any]
    private_tables: dict[str, Any]
    seconds: float

    @classmethod
    def of(cls, result: DemoResult) -> DemoAnswer:
        """Read what was found."""
        return cls(**result.to_json())

    def blocks(self) -> Iterator[Block]:
        return iter(())
