"""The result of an evaluation: what was measured, the verdicts, and the report as a page, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final

from discreet.evaluation.associations import Associations, Correlations
from discreet.evaluation.closeness import Closeness
from discreet.evaluation.downstream import Downstream
from discreet.evaluation.fidelity import Fidelity
from discreet.evaluation.guessing import SecretGuesses
from discreet.evaluation.membership import MembershipSearch
from discreet.evaluation.overlays import Overlay
from discreet.evaluation.priced import NoisyComparison
from discreet.evaluation.sheets import Sheets
from discreet.evaluation.verdict import Verdict
from discreet.evaluation.workload import Workload
from discreet.privacy.notprivate import HEADING
from discreet.synth.promise import Promise

__all__ = ["Attacked", "Evaluation", "Likeness", "Standing"]

Standing: TypeAlias = Literal["custodian", "public", "charged"]
_HEADINGS: dict[Standing, str] = {
    "custodian": HEADING,
    "public": "compared with public rows only: may be published",
    "charged": "every number about the data is noisy and paid for: may be published",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How like the rows it is compared with a synthetic table is."""

    fidelity: Fidelity | None = None
    associations: Associations | None = None
    correlations: Correlations | None = None
    overlays: tuple[Overlay, ...] = ()
    downstream: Downstream | None = None
    workload: Workload | None = None
    sheets: Sheets | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """What attackers found."""

    closeness: Closeness | None = None
    searches: tuple[MembershipSearch, ...] = ()
    guessed: tuple[SecretGuesses, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """An evaluation of a synthetic table. Only the custodian's own holds exact facts about people, and says so."""

    title: str
    standing: Standing
    compared: str  # with what: "the real table", or "the public rows"
    columns: tuple[str, ...]
    rows: int  # of the synthetic table
    promise: Promise | None
    likeness: Likeness = field(default_factory=Likeness)
    attacked: Attacked | None = None  # None where attacks would tell about people
    priced: NoisyComparison | None = None
    error: float = 1e-3  # the chance that a verdict about privacy wrongly accuses
    notes: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """For whom this is; it stands on every page of the report."""
        return _HEADINGS[self.standing]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What it comes to, in sentences; privacy first."""
        from discreet.evaluation.verdicts import verdicts

        return verdicts(self)

    @property
    def alarming(self) -> bool:
        """Whether one of the verdicts is that the table gives people away."""
        return any(verdict.kind == "bad" and verdict.about == "privacy" for verdict in self.verdicts)

    def html(self) -> str:
        """Write the report as one page that loads nothing and runs nothing."""
        from discreet.evaluation.page import page

        return page(self)

    def document(self) -> dict[str, Any]:
        """Return all figures as one JSON object."""
        from discreet.evaluation.documents import document

        return document(self)

    def tell(self) -> str:
        """Tell the verdicts as text."""
        return "\n".join(_lines(self.title, self.heading, self.verdicts))

    def __str__(self) -> str:
        return self.tell()


def _lines(title: str, heading: str, verdicts: Iterable[Verdict]) -> Iterable[str]:
    yield from (title, heading, "")
    yield from (f"  {verdict.mark} {verdict.text}" for verdict in verdicts)
