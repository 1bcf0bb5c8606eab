"""What `discreet audit` does between its words and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from discreet.cli.answers.audits import AuditAnswer, SelfAuditAnswer
from discreet.cli.loading import function_named
from discreet.cli.output import note
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.audit.own import Row, Subject

__all__ = ["audited_mechanism", "audited_self"]

_SIZES: dict[str, Literal["small", "full"]] = {"small": "small", "full": "full"}
_RELATIONS = ("add-remove", "replace-one")


def audited_mechanism(
    name: str, *, pairs: str, epsilon: str, delta: str, relation: str, runs: int, level: float
) -> AuditAnswer:
    """Audit a function of the user's on the pairs that another one returns."""
    from discreet.audit import audit
    from discreet.privacy import ApproxDP, PureDP, Relation

    if relation not in _RELATIONS:
        raise InvalidParameter(f"--relation must be one of {', '.join(_RELATIONS)}")
    between = Relation.ADD_REMOVE if relation == "add-remove" else Relation.REPLACE_ONE
    claim = PureDP(epsilon) if delta == "0" else ApproxDP(epsilon, delta)
    mechanism, listed = _taking(function_named(name), 1, "a data set"), _taking(function_named(pairs), 0, "nothing")
    found = audit(mechanism, _pairs(listed()), claim=claim, relation=between, runs=runs, level=level)
    return AuditAnswer.of(name, relation, found)


def _taking(function: Callable[..., Any], count: int, words: str) -> Callable[..., Any]:
    """Refuse a function that cannot be called with so many things, before it is."""
    try:
        signature(function).bind(*range(count))
    except (TypeError, ValueError):  # ValueError: some built-in functions do not say what they take.
        raise InvalidParameter(f"{function.__name__} must be a function that takes {words}") from None
    return function


def _pairs(returned: Any) -> list[tuple[Any, Any]]:
    try:
        return [(one, other) for one, other in returned]
    except (TypeError, ValueError):
        raise InvalidParameter("--pairs must name a function that returns pairs of neighbouring data sets") from None


def audited_self(size: str, *, only: str | None, out: Path | None) -> SelfAuditAnswer:
    """Audit the library, and write the report to a file if one is named."""
    from discreet.audit.own import self_audit

    if size not in _SIZES:
        raise InvalidParameter("--size must be small or full")
    if out is not None and out.suffix not in _WRITERS:
        raise InvalidParameter(f"--out must end in one of {', '.join(_WRITERS)}")
    chosen = list(_named(only))
    if not chosen:
        raise InvalidParameter("--only must be part of the name of something that is audited, such as Laplace")
    found = self_audit(_SIZES[size], subjects=chosen, told=_tell)
    if out is not None:
        out.write_text(_WRITERS[out.suffix](found), encoding="utf-8")
    return SelfAuditAnswer.of(found)


def _named(only: str | None) -> Iterator[Subject]:
    from discreet.audit.own.catalogue import catalogue

    wanted = (only or "").lower()
    return (subject for subject in catalogue() if wanted in f"{subject.part}: {subject.name}".lower())


def _tell(row: Row) -> None:
    note(f"{row.part}: {row.name}, {row.how}: {'holds' if row.holds else 'BROKEN'}")


_WRITERS: dict[str, Any] = {
    ".html": lambda found: found.to_html(),
    ".json": lambda found: found.to_json(),
    ".txt": lambda found: f"{found}\n",
}
