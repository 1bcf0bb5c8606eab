"""What others have said that their epsilon is, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import final

from discreet.exact import exact
from discreet.privacy.events import ApproxDP, Event, PureDP

__all__ = ["Deployment", "deployments"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One line of a public list. What is protected differs from line to line: a question, a day, a person."""

    who: str
    what: str
    epsilon: Fraction
    delta: Fraction  # 0 where the list names none
    source: str

    @property
    def event(self) -> Event:
        """What the line says was spent."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)


@cache
def deployments() -> tuple[Deployment, ...]:
    """Return what is publicly said about real deployments, from the smallest epsilon to the largest."""
    import tomllib
    from importlib.resources import files

    listed = tomllib.loads(files(__package__).joinpath("deployments.toml").read_text(encoding="utf-8"))
    lines = [_line(line, listed["source"]) for line in listed["deployment"]]
    return tuple(sorted(lines, key=lambda line: line.epsilon))


def _line(line: dict[str, str], source: str) -> Deployment:
    return Deployment(
        who=line["who"],
        what=line["what"],
        epsilon=exact(line["epsilon"], name="epsilon"),
        delta=exact(line["delta"], name="delta"),
        source=source,
    )
