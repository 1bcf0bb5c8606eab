"""All of this library, as things to be audited."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.audit.own.measured import of_robust, of_sessions, of_statistics
from discreet.audit.own.of_adaptive import of_adaptive
from discreet.audit.own.of_mechanisms import of_mechanisms
from discreet.audit.own.subject import Subject

__all__ = ["catalogue"]


def catalogue() -> Iterator[Subject]:
    """List every subject, from the ground up."""
    yield from of_mechanisms()
    yield from of_adaptive()
    yield from of_robust()
    yield from of_statistics()
    yield from of_sessions()
