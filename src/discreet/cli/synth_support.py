"""Synthetic data on the command line: of a file by itself, or of a table that a policy declares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, note, working
from discreet.cli.policies import FilePlace, open_place, open_session
from discreet.cli.spending import PriceTag, agree, limit_of
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.formatting import significant_up
from discreet.ledger.private_files import place
from discreet.query import Session
from discreet.schema.csv_file import CsvFile
from discreet.synth import Category, Domain, load, plan
from discreet.synth.domain.domain_file import domain_text, names_text, read_domain
from discreet.synth.domain.source_tables import domain_of_session, table_of
from discreet.synth.fitted_models import SyntheticImageModel, SyntheticModel
from discreet.synth.synthesis import refitting
from discreet.synth.synthesis_plan import SynthesisPlan, is_affordable

if TYPE_CHECKING:
    from discreet.lab.evaluation.evaluation import Evaluation

__all__ = [
    "DraftedDomain",
    "EvaluatedModel",
    "FitRequest",
    "FittedModel",
    "SampledRows",
    "drafted",
    "evaluated",
    "evaluated_publicly",
    "fitted",
    "sampled",
]

_MODEL = ".safetensors"
_REFITS = 4
_NOT_PRIVATE, _PUBLIC = Path("evaluation-not-private.html"), Path("evaluation.html")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest:
    """What is asked of a fit, in the words of `dp.synthesize`."""

    domain: Path | None
    method: str
    epsilon: str
    delta: str
    rows_per_unit: int | None
    label: str | None
    table: str | None


def drafted(source: Path, file: Path | CsvFile, table: str | None, out: Path, *, public: bool) -> DraftedDomain:
    """Write a domain file from what a policy declares, or from the names of a file's columns, or its public rows."""
    if public:
        if source.suffix == ".toml":
            raise InvalidParameter(
                "--public is for a file of rows that anybody may see: a policy is about private ones"
            )
        proposed = Domain.propose(public_sample=file)
        return _written(out, domain_text(proposed), list(proposed.names), unfinished=[])
    if source.suffix != ".toml":
        names = list(table_of(file).names)
        return _written(out, names_text(names), names, unfinished=names)
    with open_session(source, principal=None, agreed=False) as session:
        domain = domain_of_session(session, table)
    return _written(out, domain_text(domain), list(domain.names), unfinished=[])


def _written(out: Path, text: str, columns: list[str], *, unfinished: list[str]) -> DraftedDomain:
    with out.open("x", encoding="utf-8") as file:
        file.write(text)
    return DraftedDomain(file=str(out), columns=columns, unfinished=unfinished)


def fitted(
    where: FilePlace, wanted: FitRequest, *, principal: str | None, max_epsilon: str | None, out: Path
) -> FittedModel:
    """Price a fit, agree, pay, fit, and write the model."""
    _check_writable(out)
    domain = None if wanted.domain is None else read_domain(wanted.domain)
    with open_place(where, wanted.epsilon, wanted.delta, principal=principal, agreed=False) as session:
        planned = _planned(session, wanted, domain)
        note(planned.description)
        price = _price(planned.promise.epsilon, planned.promise.delta)
        agree(price, limit=limit_of(max_epsilon), what="this model")
        if not is_affordable(session, planned.promise):
            raise BudgetExceeded(asked=price.words, left=session.left)
    with open_place(where, wanted.epsilon, wanted.delta, principal=principal, agreed=True) as session:
        model: SyntheticModel = _planned(session, wanted, domain).fit(progress=sys.stderr.isatty())
    model.save(out)
    _note_nothing_found(model)
    return FittedModel.of(model, out)


def _planned(session: Session, wanted: FitRequest, domain: Domain | None) -> SynthesisPlan:
    with working("planning"):
        return plan(
            wanted.table or next(name for name, one in session.catalogue.tables.items() if one.private),
            wanted.method,
            domain=domain,
            epsilon=wanted.epsilon,
            delta=wanted.delta,
            unit=session.unit.called,
            rows_per_unit=wanted.rows_per_unit,
            label=wanted.label,
            session=session,
        )


def _note_nothing_found(model: SyntheticModel) -> None:
    """Say which columns hold nothing but the cell of other values: what was found is released."""
    empty = [name for name, one in model.domain.columns.items() if isinstance(one, Category) and not one.values]
    if empty:
        note(
            f"no value of {', '.join(empty)} was shared by enough rows: every row of the synthetic table has “other” "
            "there. Declare the values that are publicly known, or leave the column out"
        )


def sampled(file: Path, rows: int | None, where: list[str], out: Path) -> SampledRows:
    """Draw rows from a model, of some values alone if that is asked for, and write them."""
    model = load(file)
    if isinstance(model, SyntheticImageModel):
        if where:
            raise InvalidParameter("--where is for tables: this is a model of pictures")
        _check_ending(out, _MODEL)
        pictures = model.sample(rows)
        pictures.to_safetensors(out)
        return SampledRows(file=str(out), rows=len(pictures), promise=str(model.promise))
    _check_ending(out, ".csv", ".parquet")
    table = model.sample(rows, where=_conditions(model.domain, where) or None)
    table.to_csv(out) if out.suffix == ".csv" else table.to_parquet(out)
    return SampledRows(file=str(out), rows=len(table), promise=str(model.promise))


def _conditions(domain: Domain, said: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (_condition(domain, one) for one in said):
        if name in found:
            raise InvalidParameter(f"--where names {name!r} twice: a row has one value of it; sample twice instead")
        found[name] = value
    return found


def _condition(domain: Domain, said: str) -> tuple[str, Any]:
    """Read column=value, or column=low..high of numbers and dates."""
    name, sign, text = said.partition("=")
    if not sign:
        raise InvalidParameter("--where takes column=value, or column=low..high: --where sex=f --where age=18..30")
    column = domain.columns[domain.names[domain.place(name)]]
    if isinstance(column, Category):
        return name, next((value for value in column.labels if value is not None and str(value) == text), text)
    ends = [_day(end) if column.is_date else end for end in text.split("..")]
    return name, tuple(ends) if len(ends) > 1 else (ends[0], ends[0])


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter("--where takes dates as 2025-01-31") from None


def evaluated(
    file: Path,
    real: Path | CsvFile,
    label: str | None,
    *,
    holdout: Path | CsvFile | None,
    refits: int | None,
    out: Path | None,
) -> EvaluatedModel:
    """Compare a model with the real table, exactly, and attack it: for whoever holds the data."""
    from discreet.lab.evaluation import evaluate

    page, model = out or _NOT_PRIVATE, _table_model(file)
    if refits is None:  # Without a hold-out, membership attacks need tables whose members are known.
        refits = 0 if holdout is not None else _REFITS
        if refits:
            note(f"membership attacks refit the model to {refits} random halves; --refits 0 leaves them out")
    again = refitting(model) if refits else None
    found = evaluate(
        model, real, title=file.stem, label=label, holdout=holdout, refit=again, refits=refits or _REFITS, say=note
    ).value
    place(page, found.html().encode())  # It tells about real people: nobody but its owner may read it.
    return EvaluatedModel.of(found, page)


def evaluated_publicly(file: Path, public: Path | CsvFile, label: str | None, out: Path | None) -> EvaluatedModel:
    """Compare a model with rows that are public."""
    from discreet.lab.evaluation import evaluate_publicly

    page = out or _PUBLIC
    found = evaluate_publicly(_table_model(file), public, title=file.stem, label=label, say=note)
    page.write_text(found.html(), encoding="utf-8")
    return EvaluatedModel.of(found, page)


def _table_model(file: Path) -> SyntheticModel:
    model = load(file)
    if not isinstance(model, SyntheticModel):
        raise InvalidParameter("this is a model of pictures; what is compared here are tables")
    return model


def _check_writable(out: Path) -> None:
    """Refuse what could not be written once it is paid for."""
    _check_ending(out, _MODEL)
    if out.exists():
        raise InvalidParameter(f"{out.name} is there already: a model is paid for and never written over")
    if not out.parent.is_dir():
        raise InvalidParameter("the folder of --out is not there: make it first")


def _check_ending(out: Path, *endings: str) -> None:
    if out.suffix not in endings:
        raise InvalidParameter(f"--out must end in {' or '.join(endings)}")


def _price(epsilon: float, delta: Fraction) -> PriceTag:
    return PriceTag(words=f"ε = {significant_up(epsilon)} at δ = {significant_up(delta)}", epsilon=epsilon)


@contextmanager
def _policy(source: Path, principal: str | None) -> Iterator[Session]:
    with open_session(source, principal=principal) as session:
        yield session


# --- synth: What came of making synthetic data. ---


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
        yield Styled(f"wrote {self.file} ({self.method}). It may be published.", "bold green")
        yield self.promise
        yield Styled(f"next: discreet synth sample {self.file} --out synthetic.csv", "cyan")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRows:
    """A table of made-up rows."""

    file: str
    rows: int
    promise: str

    def blocks(self) -> Iterator[Block]:
        yield Styled(f"wrote {self.rows:,} made-up rows to {self.file}. They may be published.", "bold green")
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
        yield Styled(f"open {self.report}", "cyan")
