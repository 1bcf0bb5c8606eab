"""What came of making synthetic data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.evaluation import Evaluation
    from discreet.synth import SyntheticImageModel, SyntheticModel

__all__ = ["DraftedDomain", "EvaluatedModel", "FittedModel", "SampledRows"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedDomain:
    """A domain file, and the columns that somebody still has to fill in."""

    file: str
    columns: list[str]
    unfinished: list[str]

    def blocks(self) -> Iterator[Block]:
        yield f"wrote {self.file} with {len(self.columns)} columns"
        if self.unfinished:
            yield f"fill in, from public knowledge only: {', '.join(self.unfinished)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel:
    """A model, what it promises, and about how many rows the real table has, as far as that was released."""

    file: str
    method: str
    epsilon: float
    delta: float
    relation: str
    unit: str
    rows_per_unit: int
    rows: int | None
    promise: str

    @classmethod
    def of(cls, model: SyntheticModel | SyntheticImageModel, file: Path) -> FittedModel:
        """Read a model."""
        promise = model.promise
        return cls(
            file=str(file),
            method=promise.method,
            epsilon=promise.epsilon,
            delta=float(promise.delta),
            relation=promise.relation.value,
            unit=promise.unit,
            rows_per_unit=promise.rows_per_unit,
            rows=model.rows,
            promise=str(promise),
        )

    def blocks(self) -> Iterator[Block]:
        yield f"wrote {self.file} ({self.method}). It may be published."
        yield self.promise
        yield f"next: discreet synth sample {self.file} --out synthetic.csv"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRows:
    """A table of made-up rows."""

    file: str
    rows: int
    promise: str

    def blocks(self) -> Iterator[Block]:
        yield f"wrote {self.rows:,} made-up rows to {self.file}. They may be published."
        yield self.promise


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """How good a model is, and the page that shows it."""

    report: str
    standing: str  # "custodian": about real people, not private; "public"
    evaluation: dict[str, Any]
    text: str

    @classmethod
    def of(cls, evaluation: Evaluation, page: Path) -> EvaluatedModel:
        """Read an evaluation; its words say for whom it is."""
        told = str(evaluation)
        return cls(report=str(page), standing=evaluation.standing, evaluation=evaluation.document(), text=told)

    def blocks(self) -> Iterator[Block]:
        yield self.text
        yield f"open {self.report}"
