"""dp.synthesize: public facts first, then the price, then the charge, and only then the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.fields import read_relation, small_delta
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.synth.asking import asked_domain, asked_images, asked_table, read_unit
from discreet.synth.domain.domain import Declared, Domain
from discreet.synth.domain.images import Images
from discreet.synth.method import ImageMethod, TableMethod, Terms
from discreet.synth.model import SyntheticImageModel, SyntheticModel
from discreet.synth.plans import SynthesisPlan, plan_images, plan_table

__all__ = ["plan", "synthesize"]


@overload
def synthesize(
    table: Any,
    method: str | ImageMethod = "auto",
    *,
    domain: Images,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
    public_rows: int | None = None,
    session: Payer | None = None,
    progress: bool = True,
) -> SyntheticImageModel: ...
@overload
def synthesize(
    table: Any,
    method: str | TableMethod = "auto",
    *,
    domain: Domain | Mapping[str, Declared] | None = None,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
    unit: str = "row",
    rows_per_unit: int | None = None,
    label: str | None = None,
    public_rows: int | None = None,
    session: Payer | None = None,
    progress: bool = True,
) -> SyntheticModel: ...
def synthesize(
    table: Any,
    method: str | TableMethod | ImageMethod = "auto",
    *,
    domain: Any = None,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
    unit: str = "row",
    rows_per_unit: int | None = None,
    label: str | None = None,
    public_rows: int | None = None,
    session: Payer | None = None,
    progress: bool = True,
) -> SyntheticModel | SyntheticImageModel:
    """Fit a model to a table or to pictures, from which synthetic rows are drawn.

    `table` is of pandas, polars or Arrow, a dictionary of columns, the path of a CSV or Parquet file, or the name of a
    private table of the session; pictures are a pair (images, labels). `domain` declares what is public of it. `method`
    is "auto", the name of a method, or one of `dp.synth` with options of its own. With a `unit` column, at most
    `rows_per_unit` rows of each unit are used, and all of a unit's rows are protected together. `label` names a column
    that matters most, `public_rows` how many rows there are if that is publicly known, about.

    Guarantee   the promise of the model: (epsilon, delta) for one unit more or less (or changed, under replace-one).
    """
    planned = plan(
        table,
        method,
        domain=domain,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        unit=unit,
        rows_per_unit=rows_per_unit,
        label=label,
        public_rows=public_rows,
        session=session,
    )
    fitted: SyntheticModel | SyntheticImageModel = planned.fit(progress=progress)
    return fitted


def plan(
    table: Any,
    method: str | TableMethod | ImageMethod = "auto",
    *,
    domain: Any = None,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
    unit: str = "row",
    rows_per_unit: int | None = None,
    label: str | None = None,
    public_rows: int | None = None,
    session: Payer | None = None,
) -> SynthesisPlan:
    """Say what dp.synthesize would do and cost; nothing is charged and no value is read."""
    declared = asked_domain(table, domain, session)
    terms = Terms(
        domain=declared,
        epsilon=positive(epsilon, name="epsilon"),
        delta=small_delta(delta, population=public_rows),
        relation=read_relation(relation),
        rows_per_unit=read_unit(unit, rows_per_unit, declared),
        public_rows=None if public_rows is None else positive_integer(public_rows, name="public_rows"),
        label=_read_label(label, declared),
    )
    if isinstance(declared, Images):
        return plan_images(asked_images(table, declared), method, terms, session)
    names = declared.names if unit == "row" else (*declared.names, unit)
    return plan_table(asked_table(table, session, names), method, terms, unit, session)


def _read_label(label: str | None, domain: Domain | Images) -> str | None:
    if label is not None and (isinstance(domain, Images) or domain.place(label) < 0):
        raise InvalidParameter("pictures have their labels in the domain: leave label out")
    return label
