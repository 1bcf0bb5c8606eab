"""Plans: a query, or several as one, with a price. Looking at it is free; releasing it is paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, final

from discreet.custodian_debug import ConstantFailure
from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.formatting import printable
from discreet.ledger.charge_record import Charge
from discreet.privacy.events import Event
from discreet.privacy.not_private import NotPrivate
from discreet.query.ast import Expression, KeyValue, Query, Source, table_column
from discreet.query.catalogue import Catalogue
from discreet.query.engine import Deadline
from discreet.query.plan.explain import Explanation
from discreet.query.plan.kept_share import KeptShare, kept_share
from discreet.query.plan.planner import PricedQuery, joint_event
from discreet.query.release_table import DUMMY_NOTE, ReleaseTable
from discreet.query.session.executor import Executor
from discreet.query.session.requests import BatchRequest, Request

__all__ = ["JointPlan", "JointRelease", "Plan"]

# --- plan: A plan: a question with its price. Looking at it is free; releasing it is paid. ---


_DECLARE = "declare version=… of the data where the session is opened, to get stored answers for free"


@final
class Plan:
    """One question after analysis. Everything in it follows from public facts and may be shown.

    Args:
        desk: What prices and answers; `Session.sql` makes the plan.
        asked: The question and what to spend.
        catalogue: What is publicly known of the tables.
        first: The plan of its kept share, which is released before.
        is_kept: Whether it is itself the kept share of a question.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> plan = session.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
        >>> plan.cost, session.left.epsilon
        ('ε = 0.5', Fraction(4, 1))
    """

    __slots__ = ("_asked", "_catalogue", "_desk", "_first", "_is_kept")

    def __init__(
        self,
        desk: Executor,
        asked: Request,
        catalogue: Catalogue,
        *,
        first: Plan | None = None,
        is_kept: bool = False,
    ) -> None:
        self._desk, self._asked, self._catalogue = desk, asked, catalogue
        self._first, self._is_kept = first, is_kept

    @property
    def question(self) -> Query:
        """The closed tree that was read."""
        return self._asked.priced.question

    @property
    def priced(self) -> PricedQuery:
        """The question, how it will be answered and what that spends, without the means to read anything."""
        return self._asked.priced

    @property
    def event(self) -> Event:
        """What a release spends, with that of its kept share."""
        own = self._asked.priced.event
        return own if self._first is None else joint_event([self._first.event, own])

    @property
    def nested(self) -> tuple[Event, ...]:
        """What a release spends for the inner unit of a chain; nothing without one."""
        return self._asked.nested

    @property
    def text(self) -> str:
        """The question as it was asked."""
        return self._asked.text

    @property
    def cost(self) -> str:
        """What a release spends, in a few words."""
        own = self._asked.priced.cost
        return own if self._first is None else f"{own}, and {self._first.cost} for the kept share"

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same question and price, and for no other."""
        return self._asked.fingerprint

    @property
    def cells(self) -> int | None:
        """How many cells an answer has: groups times columns. None where the keys are not public."""
        draft = self._asked.priced.draft
        return None if draft.groups is None else draft.groups * len(draft.question.outputs)

    @property
    def deviations(self) -> Mapping[str, Fraction]:
        """The standard deviation of the noise on each column that is a plain count or sum, rounded up."""
        return self._asked.priced.deviations

    @property
    def variances(self) -> Mapping[str, Fraction]:
        """Its square, exactly for Gaussian noise of more than a few grid steps."""
        return self._asked.priced.variances

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know, as parameters."""
        return self._asked.priced.notes

    def explain(self) -> Explanation:
        """Say who is protected, how it will be answered, the expected ±, the price and what is left. Free."""
        lefts = (self._desk.left(self.event).describe("this one"), *self._desk.nested_left(self.nested))
        told = self._asked.priced.explain(left="; ".join(lefts))
        (name, _), *others = told.facts
        facts = ((name, self.cost), *self._before(), *others)
        if self._first is None:
            return replace(told, facts=facts)
        kept = self._first.explain()
        errors = tuple((f"kept share: {column}", text) for column, text in kept.errors)
        return replace(told, facts=facts, errors=(*errors, *told.errors))

    def _before(self) -> tuple[tuple[str, str], ...]:
        """Say whether a release is free, since it was paid, or is paid a second time."""
        if self._desk.is_free(self._asked):
            return (("already paid", "the stored answer is given again, for free"),)
        return (("asked before", f"a release pays again: {_DECLARE}"),) if self._desk.pays_again(self._asked) else ()

    def dummy(self) -> ReleaseTable:
        """Answer the same question from made-up rows that fit the schema, to see what an answer looks like. Free."""
        from discreet.query.engines.made_up_rows import dummy_engine

        engine = dummy_engine(self._catalogue)
        try:
            tallied = engine.run(self._asked.priced.stage, deadline=Deadline.after(self._desk.seconds))
        finally:
            engine.close()
        drawn = self._asked.priced.draw(tallied)
        return self._labelled(replace(drawn, notes=(DUMMY_NOTE, *drawn.notes)))

    def exact_look(self) -> NotPrivate[ReleaseTable]:
        """Answer without noise and without a charge, for whoever holds the data: never to be released.

        What is decided after it is not covered by any guarantee of answers. A failure is constant here, too.
        """
        self._desk.check_open()
        priced = self._asked.priced
        if priced.draft.picks:
            raise Refused(
                "medians, quantiles and most frequent values are chosen at random, and have no exact form here",
                way_out="leave them out of the question",
            )
        with ConstantFailure():
            self._desk.engine.check_unchanged()
            tallied = self._desk.engine.run(priced.stage, deadline=Deadline.after(self._desk.seconds))
            return priced.without_noise(tallied)

    def release(self) -> ReleaseTable:
        """Pay, read, draw, store and return the answer; or return the one that was stored, for free."""
        kept = None if self._first is None else self._measured(self._first)
        again = self._desk.pays_again(self._asked)
        table = self._labelled(ReleaseTable.from_json(self._desk.answer(self._asked).text))
        if self._is_kept:
            kept = kept_share(table, self.deviations, self._catalogue.unit)
        if kept is not None:
            table = replace(table, notes=(*kept.sentences(), *table.notes), kept=kept)
        return replace(table, notes=(*table.notes, f"asked before and paid again: {_DECLARE}")) if again else table

    def _measured(self, first: Plan) -> KeptShare | None:
        """Pay for the kept share and measure it, if all of it can be paid: half of an answer is bought by nobody."""
        unpaid = [one for one in (first, self) if not self._desk.is_free(one._asked)]
        events = [one._asked.priced.event for one in unpaid]
        if events and not self._desk.affords(joint_event(events), at_once=len(events) == 1):
            raise BudgetExceeded(asked=self.cost, left=self._desk.left(self.event))
        return first.release().kept

    def _labelled(self, table: ReleaseTable) -> ReleaseTable:
        """Put labels beside keys. They are as declared now: an answer that was paid for is found under any labels."""
        labels = _labels_of(self.question, self._catalogue)
        if not labels:
            return table
        columns = (replace(one, labels=labels.get(one.name)) for one in table.columns)
        return replace(table, columns=tuple(columns))

    def __repr__(self) -> str:
        return f"Plan({self.text!r}, {self.cost}; closed)" if self._desk.closed.is_set() else str(self.explain())

    def _repr_html_(self) -> str | None:
        return None if self._desk.closed.is_set() else self.explain()._repr_html_()


def _labels_of(question: Query, catalogue: Catalogue) -> dict[str, Mapping[Any, str]]:
    """Return the labels of the outputs that are columns of tables, unchanged, by name."""
    keys = {one.name: question.keys[one.value.key] for one in question.outputs if isinstance(one.value, KeyValue)}
    found = {name: _declared_labels(question.source, key.expression, catalogue) for name, key in keys.items()}
    return {name: labels for name, labels in found.items() if labels}


def _declared_labels(source: Source, expression: Expression, catalogue: Catalogue) -> Mapping[Any, str]:
    found = table_column(source, expression)  # What is computed from a column has no labels.
    return {} if found is None else dict(catalogue.tables[found[0].table].columns[found[1].column].labels)


# --- joint: Several plans as one: one price, one charge, one look at the rows, one answer on record. ---


@final
@dataclass(frozen=True, slots=True)
class JointRelease:
    """The answers of all plans by name, and the charge that paid for them.

    Args:
        tables: The answers by name.
        charge: The charge that paid for them.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> plans = {"all": session.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5)}
        >>> release = session.batch(plans, idempotency_key=None, purpose="report").release()
        >>> sorted(release.tables)
        ['all']
        >>> session.close()
    """

    tables: Mapping[str, ReleaseTable]
    charge: Charge

    def __repr__(self) -> str:
        return "\n\n".join(f"{printable(name)}\n{table}" for name, table in self.tables.items())

    def _repr_html_(self) -> str:
        from discreet.pages import kit

        return "".join(f"<h4>{kit.words(name)}</h4>{table._repr_html_()}" for name, table in self.tables.items())


@final
class JointPlan:
    """Several plans that are paid by one charge. Everything in it follows from public facts and may be shown.

    Guarantee   Releasing spends `event`, once, whatever fails; a second release under the same idempotency key, or of
                the same plans on the same version of the data, returns the first one bit by bit.

    Args:
        desk: What prices and answers; `Session.batch` makes the plan.
        plans: The plans by name.
        idempotency_key: The key under which the charge is made once.
        purpose: What it is for; it stands in the ledger.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> plans = {"all": session.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5)}
        >>> session.batch(plans, idempotency_key=None, purpose="report").cost
        'ε = 0.5'
    """

    __slots__ = ("_asked", "_desk", "_plans")

    def __init__(self, desk: Executor, plans: Mapping[str, Plan], *, idempotency_key: str | None, purpose: str) -> None:
        _check(desk, plans)
        parts = tuple((name, plans[name]._asked.priced) for name in sorted(plans))
        self._desk, self._plans = desk, MappingProxyType(dict(plans))
        self._asked = BatchRequest(text=purpose, parts=parts, idempotency_key=idempotency_key)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The plans by name."""
        return self._plans

    @property
    def event(self) -> Event:
        """What a release of all of them spends."""
        return self._asked.event

    @property
    def nested(self) -> tuple[Event, ...]:
        """What it spends for the inner unit of a chain; nothing without one."""
        return self._asked.nested

    @property
    def cost(self) -> str:
        """The same in a few words."""
        return self._asked.cost

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same names, questions and prices, and for no other."""
        return self._asked.fingerprint

    @property
    def affordable(self) -> bool:
        """Whether a release would go through now: it fits the budget and all quotas, or was paid before."""
        return self._is_paid() or self._desk.times_left(self.event, self.nested) > 0

    def _sharing(self, priced: Mapping[str, PricedQuery]) -> JointPlan:
        """Return the same plans at the same prices, with noise that families share: for those who price families."""
        joint = JointPlan(
            self._desk, self._plans, idempotency_key=self._asked.idempotency_key, purpose=self._asked.text
        )
        joint._asked = replace(self._asked, parts=tuple((name, priced[name]) for name, _ in self._asked.parts))
        if (joint.event, joint.nested) != (self.event, self.nested):
            raise RuntimeError("noise that is shared has another price")
        return joint

    def explain(self) -> Explanation:
        """Say what all of it costs, who is protected and how far off each column will be. Free."""
        each = {name: plan.explain() for name, plan in self._plans.items()}
        facts = (("price", self.cost), ("tables", f"{len(each)}, paid by one charge"))
        prices = tuple((name, dict(told.facts)["price"]) for name, told in each.items())
        errors = tuple((f"{name}.{column}", text) for name, told in each.items() for column, text in told.errors)
        notes = tuple(dict.fromkeys(note for told in each.values() for note in told.notes))
        lefts = (self._desk.left(self.event).describe("this one"), *self._desk.nested_left(self.nested))
        left = (("budget left", "; ".join(lefts)),)
        return Explanation(facts=(*facts, *prices, *left), errors=errors, notes=notes)

    def dummy(self) -> Mapping[str, ReleaseTable]:
        """Answer the same questions from made-up rows that fit the schema. Free."""
        return MappingProxyType({name: plan.dummy() for name, plan in self._plans.items()})

    def release(self) -> JointRelease:
        """Pay, read, draw, store and return all answers; or return those that were stored, for free."""
        self._check_key()
        answered = self._desk.answer(self._asked)
        tables = BatchRequest.read(answered.text)
        shown = {name: plan._labelled(tables[name]) for name, plan in self._plans.items()}
        return JointRelease(MappingProxyType(shown), answered.charge)

    def _is_paid(self) -> bool:
        key = self._asked.idempotency_key
        entry = None if key is None else self._desk.ledger.charged(key)
        return entry is not None and entry.content.get("plan") == self.fingerprint

    def _check_key(self) -> None:
        """Refuse a key under which something else was released: its answer is not the answer of these plans."""
        key = self._asked.idempotency_key
        entry = None if key is None else self._desk.ledger.charged(key)
        if entry is not None and entry.content.get("plan") != self.fingerprint:
            raise Refused(
                f"the plan changed since {key!r} was charged",
                reason="what was released under an idempotency key stays as it is: it is given again for the same "
                "names, questions and prices only",
                way_out="bring back the plan as it was, or release under another idempotency key, which costs anew",
            )

    def __repr__(self) -> str:
        return f"JointPlan({', '.join(self._plans)}; closed)" if self._desk.closed.is_set() else str(self.explain())

    def _repr_html_(self) -> str | None:
        return None if self._desk.closed.is_set() else self.explain()._repr_html_()


def _check(desk: Executor, plans: Mapping[str, Plan]) -> None:
    if not plans:
        raise InvalidParameter("there is nothing to release together: name at least one plan")
    for name, plan in plans.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameter("each plan needs a name: a text that is not empty")
        if not isinstance(plan, Plan) or plan._desk is not desk:
            raise InvalidParameter(f"{name!r} is no plan of this session: make it with session.sql or session.table")
        if plan._first is not None:
            raise InvalidParameter(
                f"{name!r} has a kept share of its own, which is released first: leave kept_share out, and put "
                "session.kept_share(…) of the same question beside it"
            )
        if plan._asked.idempotency_key is not None:
            raise InvalidParameter(f"{name!r} has an idempotency key of its own: give one to all of them together")
