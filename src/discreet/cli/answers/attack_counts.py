"""What came of attacks on counts: tracing, reconstruction and averaging."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import AveragingCurve, MarginalReconstruction, Reconstruction, Tracing
    from discreet.privacy import NotPrivate

__all__ = ["AveragingAnswer", "RowsAnswer", "SecretsAnswer", "TracedAt", "TracingAnswer"]

_RATES = (0.01, 0.05, 0.2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAt:
    """Who is found at one rate of false alarms."""

    false_alarms: float
    found: Share
    accused: Share  # the same people, where they are not in the release
    ceiling: float | None  # null if the release is exact


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracingAnswer:
    """Who is found in published counts."""

    score: str
    people: int
    attributes: int
    deviation: float
    auc: float
    rates: list[TracedAt]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Tracing]) -> TracingAnswer:
        """Read what was found."""
        traced = found.value
        return cls(
            score=traced.score.value,
            people=traced.people,
            attributes=traced.attributes,
            deviation=traced.deviation,
            auc=traced.auc,
            rates=[
                TracedAt(
                    false_alarms=rate,
                    found=Share.of_success(traced.found(rate)),
                    accused=Share.of_success(traced.accused(rate)),
                    ceiling=traced.ceiling(rate),
                )
                for rate in _RATES
            ],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAnswer:
    """Rows rebuilt from published tables."""

    columns: list[str]
    people: int
    tables: int
    cells: int
    deviation: float
    rebuilt: Share
    certain: int | None  # rows that every block has which fits; null if the tables are noisy
    fresh: Share
    without: Share
    ceiling: float | None  # null if the tables are exact
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[MarginalReconstruction]) -> RowsAnswer:
        """Read what was found."""
        rows = found.value
        return cls(
            columns=list(rows.columns),
            people=rows.people,
            tables=rows.tables,
            cells=rows.cells,
            deviation=rows.deviation,
            rebuilt=Share.of_success(rows.rebuilt),
            certain=rows.certain,
            fresh=Share.of_success(rows.fresh),
            without=Share.of_success(rows.without),
            ceiling=rows.ceiling,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsAnswer:
    """Made-up secrets rebuilt from counts of subsets."""

    people: int
    queries: int
    deviation: float
    decoder: str
    right: Share
    commonest: Share
    ceiling: float | None  # null if the counts are exact
    text: str

    @classmethod
    def of(cls, found: NotPrivate[Reconstruction]) -> SecretsAnswer:
        """Read what was found; the secrets were made up, so nothing in it is anybody's."""
        secrets = found.value
        return cls(
            people=secrets.people,
            queries=secrets.queries,
            deviation=secrets.deviation,
            decoder=secrets.decoder.value,
            right=Share.of_success(secrets.right),
            commonest=Share.of_success(secrets.commonest),
            ceiling=secrets.ceiling,
            text=str(secrets),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingAnswer:
    """How soon the average of fresh answers tells a yes or no."""

    times: list[int]
    chances: list[float]
    ceilings: list[float]
    remembered: float  # the chance after any number of answers, if the first one is given again
    text: str

    @classmethod
    def of(cls, curve: AveragingCurve) -> AveragingAnswer:
        """Read a curve."""
        return cls(
            times=list(curve.times),
            chances=list(curve.chances),
            ceilings=list(curve.ceilings),
            remembered=curve.remembered,
            text=str(curve),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
