"""dp.synthesize: public facts first, then the price, then the charge, and only then the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, overload

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.parameters import small_delta
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation, read_relation
from discreet.query.policy import Unit
from discreet.synth.domain.domain import AnyColumn, Domain
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.domain.source_tables import UnreadTable, table_of
from discreet.synth.fitted_models import SyntheticImageModel, SyntheticModel
from discreet.synth.method import ImageMethod, TableMethod, Terms
from discreet.synth.synthesis_plan import SynthesisPlan, plan_images, plan_table
from discreet.synth.synthetic_table import SyntheticTable

__all__ = ["asked_domain", "asked_images", "asked_table", "plan", "read_unit", "refitting", "synthesize"]


@overload
def synthesize(
    table: Any,
    method: str | ImageMethod = "auto",
    *,
    domain: Images,
    epsilon: Number,
    delta: Number,
    relation: Relation | str = Relation.ADD_REMOVE,
    public_rows: int | None = None,
    session: Payer | None = None,
    progress: bool = True,
) -> SyntheticImageModel: ...
@overload
def synthesize(
    table: Any,
    method: str | TableMethod = "auto",
    *,
    domain: Domain | Mapping[str, AnyColumn] | None = None,
    epsilon: Number,
    delta: Number,
    relation: Relation | str = Relation.ADD_REMOVE,
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
    relation: Relation | str = Relation.ADD_REMOVE,
    unit: str = "row",
    rows_per_unit: int | None = None,
    label: str | None = None,
    public_rows: int | None = None,
    session: Payer | None = None,
    progress: bool = True,
) -> SyntheticModel | SyntheticImageModel:
    """Fit a differentially private generative model to a table or to images; synthetic rows are sampled from it.

    `table` is of pandas, polars or Arrow, a dictionary of columns, the path of a CSV or Parquet file, or the name of a
    private table of the session; pictures are a pair (images, labels). `domain` declares what is public of it. `method`
    is "auto", the name of a method, or one of `dp.synth` with options of its own. With a `unit` column, at most
    `rows_per_unit` rows of each unit are used, and all of a unit's rows are protected together. `label` names a column
    that matters most, `public_rows` how many rows there are if that is publicly known, about.

    Guarantee   the promise of the model: (epsilon, delta) for one unit more or less (or changed, under replace-one).

    Args:
        table: The private table or pictures, see above.
        method: "auto", the name of a method, or one with options of its own.
        domain: What is public of it: a `Domain` or `Images`; of a session's table, what the session declares.
        epsilon: What to spend.
        delta: The delta that goes with it.
        relation: The neighbouring relation.
        unit: "row", or the column that tells units apart.
        rows_per_unit: How many rows of a unit are used at most.
        label: The column that matters most.
        public_rows: About how many rows there are, if that is public.
        session: Who pays; it is charged before the data is read. Nobody if not said.
        progress: Whether to show how far it is.

    Returns:
        The model, from which any number of rows may be drawn for free.

    Raises:
        InvalidParameter: If something is not declared, or out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> model.sample(10).to_arrow().num_rows
        10
    """
    relation = read_relation(relation)
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
    relation: Relation | str = Relation.ADD_REMOVE,
    unit: str = "row",
    rows_per_unit: int | None = None,
    label: str | None = None,
    public_rows: int | None = None,
    session: Payer | None = None,
) -> SynthesisPlan:
    """Say what dp.synthesize would do and cost; nothing is charged and no value is read.

    Args:
        table: The private table or pictures, as for `dp.synthesize`.
        method: "auto", the name of a method, or one with options of its own.
        domain: What is public of it.
        epsilon: What to spend.
        delta: The delta that goes with it.
        relation: The neighbouring relation.
        unit: "row", or the column that tells units apart.
        rows_per_unit: How many rows of a unit are used at most.
        label: The column that matters most.
        public_rows: About how many rows there are, if that is public.
        session: Who pays, once `fit` is called.

    Returns:
        The plan; `fit` charges and reads.

    Raises:
        InvalidParameter: If something is not declared, or out of range.

    Examples:
        >>> domain = dp.synth.Domain({"sex": dp.synth.Category(["f", "m"])})
        >>> dp.synth.plan({"sex": ["f", "m"]}, domain=domain, epsilon=1, delta=1e-6).promise.unit
        'row'
    """
    relation = read_relation(relation)
    _check_unit_of_session(session)
    declared = asked_domain(table, domain, session)
    terms = Terms(
        domain=declared,
        epsilon=positive(epsilon, name="epsilon"),
        delta=small_delta(delta, public_rows=public_rows),
        relation=relation,
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


# --- asking: What is asked, before anything is read: which table, which columns, whose rows. ---


_NO_DOMAIN = (
    "say what is publicly known of the table: domain=dp.synth.Domain({…}), or dp.synth.Images(…) for pictures; with a "
    "session, the name of one of its tables whose columns are declared is enough"
)


def asked_domain(table: Any, domain: Any, session: Payer | None) -> Domain | Images:
    """Return the domain that was declared, here or for the session."""
    if isinstance(domain, (Domain, Images)):
        return domain
    if isinstance(domain, Mapping):
        return Domain(domain)
    if domain is None and _is_of_session(table, session):
        from discreet.synth.domain.source_tables import domain_of_session

        return domain_of_session(session, table)  # type: ignore[arg-type]
    raise InvalidParameter(_NO_DOMAIN)


def asked_table(table: Any, session: Payer | None, names: tuple[str, ...]) -> UnreadTable:
    """Return the table that is meant, with all these columns; no value is looked at."""
    if _is_of_session(table, session):
        from discreet.synth.domain.source_tables import session_table

        found = session_table(session, table)  # type: ignore[arg-type]
    else:
        found = table_of(table)
    found.check_has(names)
    return found


def asked_images(table: Any, domain: Images) -> ImageRows:
    """Return the pictures that are meant: a pair of arrays, or both under the names images and labels."""
    if isinstance(table, Mapping) and set(table) == {"images", "labels"}:
        return domain.rows(table["images"], table["labels"])
    if isinstance(table, tuple) and len(table) == 2:
        return domain.rows(*table)
    raise InvalidParameter('pictures must be a pair (images, labels), or {"images": …, "labels": …}')


def _check_unit_of_session(session: Payer | None) -> None:
    """Refuse units that rows are not bounded by here: for them the same noise would promise less."""
    unit = getattr(session, "unit", None)
    if isinstance(unit, Unit) and unit.is_composed:
        raise Refused(
            f"this session protects {unit.whom}, and a synthetic table protects rows, or units of one column",
            way_out="open a session whose unit is one column, such as the person, with a ledger of its own",
        )


def read_unit(unit: str, rows_per_unit: int | None, domain: Domain | Images) -> int:
    """Return how many rows one unit can bring; where a unit has several, somebody must have said."""
    if not isinstance(unit, str) or not unit:
        raise InvalidParameter('unit must be "row", or the name of the column that tells people apart')
    if unit == "row":
        if rows_per_unit not in (None, 1):
            raise InvalidParameter("a row is one row: leave rows_per_unit out, or name the unit's column")
        return 1
    if isinstance(domain, Images):
        raise InvalidParameter('pictures are protected one by one: say unit="row"')
    if unit in domain.columns:
        raise InvalidParameter(f"column {unit!r} tells people apart, so it cannot be a column of the synthetic table")
    if rows_per_unit is None:
        raise InvalidParameter(
            f"say rows_per_unit: how many rows of one {unit} are used at most. More rows need more noise; "
            "few mean that people with many rows count less"
        )
    return positive_integer(rows_per_unit, name="rows_per_unit")


def _is_of_session(table: Any, session: Payer | None) -> bool:
    catalogue = getattr(session, "catalogue", None)
    return (
        isinstance(table, str)
        and catalogue is not None
        and any(table.casefold() == name.casefold() for name in catalogue.tables)
    )


# --- refitting ---
# Another model as one was made, of other rows: what the custodian attacks to see what such models give away.


def refitting(model: SyntheticModel) -> Callable[[Any], SyntheticTable]:
    """Return what fits a table as a model was fitted, row by row, and draws from it. Nothing pays: keep it to yourself.

    Where the model protects everybody who shares a value, the rows of one are not told apart here. So each counts with
    a share of epsilon that is no larger than its rows together had.
    """
    promise = model.promise

    def again(table: Any) -> SyntheticTable:
        fitted = synthesize(
            table,
            promise.method,
            domain=model.domain,
            epsilon=Fraction(promise.epsilon) / promise.rows_per_unit,
            delta=promise.delta / promise.rows_per_unit,
            relation=promise.relation,
            progress=False,
        )
        return fitted.sample()

    return again
