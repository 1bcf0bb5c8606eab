"""A session: the one place where private tables are asked, and where every question is paid for first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeVar, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, positive
from discreet.ledger import Budget, Ledger, Quota
from discreet.ledger.charge_record import Entry, check_texts
from discreet.ledger.server_address import LedgerPlace
from discreet.ledger.spending import Left, Spending
from discreet.names import check_name, escaped
from discreet.pages.kit import Described
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation, read_relation, read_relation_if_any
from discreet.query.ast import Query
from discreet.query.catalogue import Catalogue
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.parse.select import Reading, read
from discreet.query.plan.contribution_limits import bound_contributions
from discreet.query.plan.draft import LimitedDraft, PlanRequest, Spend
from discreet.query.plan.kept_share import can_cut, kept_question
from discreet.query.plan.planner import PricedQuery
from discreet.query.plan.planner import plan as plan_question
from discreet.query.policy import Chain, Resources, Unit, UnitLimits, called_units, check_asked
from discreet.query.session.builder import QueryBuilder
from discreet.query.session.catalogue_builder import (
    Columns,
    build_catalogue,
    check_apart,
    describe_catalogue,
    named_tables,
    nearest,
)
from discreet.query.session.engine_choice import open_engine
from discreet.query.session.executor import Executor, Patience
from discreet.query.session.plans import JointPlan, Plan
from discreet.query.session.requests import Expectation, Keys, Offer, Request, account_of, listed_keys

if TYPE_CHECKING:
    from discreet.query.session.policy_file import Policy
    from discreet.query.session.private_bounds_and_keys import ProposedLimits

__all__ = ["Described", "Session"]

T = TypeVar("T")

_USUAL = Resources()
_OF_RELEASES = ("release/", "running/")  # How the keys of release plans begin.


@final
class Session:
    """Private tables, whom to protect in them, and a budget that all questions share.

    Guarantee   All answers of all sessions on this data set, asked by anybody in any order, are together within the
                budget: for one unit more or less in all private tables at once, or under replace-one for all its
                rows exchanged.

    Nothing is read from private rows before it is paid for, and a session itself reads only names and types of
    columns. It can be shared by threads. It is a `Payer`: where rows are the units, functions such as `dp.mean` take
    it as `session=` and charge the same ledger.

    Args:
        tables: The private data: a pandas, polars or Arrow table, a path of a Parquet, CSV or DuckDB file; several by
            name.
        unit: Whom to protect: a `Unit`, a `Chain` of two, or "row".
        budget: What all questions together may spend; of a chain two of them, for the outer unit and the inner one.
        ledger: The file of the ledger; "memory" is for trying out.
        dataset: The public name of the data set.
        principal: Who asks.
        columns: What is publicly known of columns, by name or by table and name.
        project: The project that asks, for quotas.
        version: The declared state of the data; the same question of the same version is answered again for free.
        relation: The neighbouring relation, which is that of the unit; said here, it is compared.
        quotas: Budgets for projects, users and windows of time.
        anchor: The file that holds the end of the ledger's record, if it is elsewhere.
        resources: How much time, memory and threads a question may use.

    Raises:
        InvalidParameter: If a declaration is wrong, or not the one that the ledger has.
        LedgerDamaged: If the record was changed, cut or rolled back.

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
        >>> answer = session.sql("SELECT AVG(age) AS age FROM people", epsilon=1).release()
        >>> abs(answer.single().value - 40) < 20
        True
        >>> session.left.epsilon
        Fraction(3, 1)
        >>> session.close()
    """

    def __init__(
        self,
        tables: Any,
        *,
        unit: Unit | Chain | Literal["row"],
        budget: Budget | Sequence[Budget],
        ledger: str | LedgerPlace,
        dataset: str,
        principal: str,
        columns: Columns | None = None,
        project: str = "",
        version: str | None = None,
        relation: Relation | str | None = None,
        quotas: Iterable[Quota] = (),
        anchor: str | Path | None = None,
        resources: Resources = _USUAL,
    ) -> None:
        """Declare tables, unit, budget and what is publicly known of columns, and open the ledger.

        A table is a pandas, polars or Arrow table, a path of a Parquet, CSV or DuckDB file, or `public` of one of
        these; several are a dictionary by name. A single table without a name is called like the data set. `ledger`
        is a path, or the address of a PostgreSQL server, postgresql://host/database; "memory" is for trying out.
        `version` names the state of the data: an answer is given again for free under the same version only, and never
        without one.
        `resources` says how long a question may run, and with how much memory.
        """
        self._unit = _read_unit(unit)
        self._chain = unit if isinstance(unit, Chain) else None
        _check_relation(self._unit, relation)
        check_name(dataset, name="dataset")
        check_name(principal, name="principal")
        for name, text in (("project", project or None), ("version", version)):
            if text is not None:
                check_name(text, name=name)
        account = account_of(dataset, unit if isinstance(unit, Chain) else self._unit, budget)
        with ExitStack() as opened:
            named = named_tables(tables, dataset=dataset)
            check_apart(named, rows=self._unit.is_row)
            engine = open_engine(named, resources)
            opened.callback(engine.close)
            self._catalogue = build_catalogue(engine, named, unit=self._unit, columns=columns or {}, chain=self._chain)
            book = Ledger.open(ledger, account, anchor=anchor, quotas=quotas)
            opened.callback(book.close)
            self._desk = Executor(
                book,
                engine,
                unit=account.unit,
                principal=principal,
                project=project,
                version=version,
                seconds=float(exact(resources.seconds, name="seconds")),
                shows_time=resources.on_progress is None,
                called=called_units(unit if isinstance(unit, Chain) else self._unit),
            )
            self._opened: ExitStack | None = opened.pop_all()  # None if it is another session's
        self._last: tuple[Event, tuple[Event, ...]] | None = None
        self._lock = Lock()

    @classmethod
    def from_policy(
        cls,
        policy: str | Path | Policy,
        *,
        principal: str,
        project: str = "",
        tables: Mapping[str, Any] | None = None,
        version: str | None = None,
        anchor: str | Path | None = None,
    ) -> Session:
        """Open a session as a policy or its file says; `tables` hands over those that name no source there."""
        from discreet.query.session.policy_file import Policy, read_policy

        said = policy if isinstance(policy, Policy) else read_policy(policy)
        return cls(
            said.sources(tables or {}),
            unit=said.chain or said.unit,
            budget=said.budget if said.inner_budget is None else (said.budget, said.inner_budget),
            ledger=said.ledger,
            dataset=said.dataset,
            principal=principal,
            columns={name: table.columns for name, table in said.tables.items()},
            project=project,
            version=said.version if version is None else version,
            quotas=said.quotas,
            anchor=said.anchor if anchor is None else anchor,
            resources=said.resources,
        )

    def sql(
        self,
        query: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Number | None = None,
        relative_error: Number | None = None,
        expected: Expectation | None = None,
        delta: Number | None = None,
        keys: Keys | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        kept_share: Number | None = None,
        quantile_intervals: bool = False,
        population: bool = False,
        max_inner: int | None = None,
        idempotency_key: str | None = None,
    ) -> Plan:
        """Read a question and price it; nothing is spent and nothing is read before the plan is released.

        Say what to spend: `epsilon`, `rho`, a `share` of the lifetime budget, or the largest ± that is wanted, as
        `error` or as `relative_error` of what is `expected`. `delta` is for groups whose keys are not public; `keys`
        lists public ones. `max_groups` and `max_rows_per_group` are contribution limits of this question, at most
        those of the unit: where a person is surely in one group, one costs less noise. Where limits can cut rows,
        `kept_share` is the part of the price for which it is measured first how much they leave out. With
        `idempotency_key` asking again returns what was answered.

        Args:
            query: The question, as SQL.
            epsilon: What to spend.
            rho: What to spend of zero-concentrated privacy, instead of epsilon.
            share: The part of the lifetime budget to spend, instead of epsilon.
            error: The largest ± that is wanted, instead of epsilon.
            relative_error: The same, as a part of what is expected.
            expected: What somebody believes the answer to be; never read from the data.
            delta: The delta for groups whose keys are not public.
            keys: The public keys of groups, by column.
            max_groups: In how many groups of this answer a unit is counted at most.
            max_rows_per_group: With how many of its rows in each at most.
            kept_share: The part of the price, such as 0.02, for which the share of units that are counted with all
                their rows is measured, before the answer; with `Unit.rows_at_most`, that of rows and the totals of
                all rows too. Nothing is measured where no limit can cut.
            quantile_intervals: Whether quantiles have a ±, for three fifths of the ε of each: it holds the quantile of
                the counted rows, and the value itself is two to three times as far off.
            population: Whether the ± of means, and that of quantiles, is for what the counted rows were drawn from,
                independently of each other; it is wider then, and a mean pays for a noisy sum of squares, too.
            max_inner: Of a chain: how many inner units of an outer one are counted at most.
            idempotency_key: Asked again under it, the stored answer is returned for free.

        Returns:
            The plan: `explain` and `dummy` are free, `release` pays.

        Raises:
            Refused: If the question cannot be answered privately; the message says where, why and what to do instead.
            InvalidParameter: If what to spend is not said in exactly one way, or a limit is wider than the unit's.
        """
        offer = Offer(
            epsilon=epsilon,
            rho=rho,
            share=share,
            error=error,
            relative_error=relative_error,
            expected=expected,
            delta=delta,
            quantile_intervals=quantile_intervals,
            population=population,
        )
        limits = UnitLimits(max_groups=max_groups, max_rows_per_group=max_rows_per_group, max_inner=max_inner)
        part = None if kept_share is None else _read_part(kept_share)
        return self._ask(query, offer, keys=keys, limits=limits, kept=part, idempotency_key=idempotency_key)

    def kept_share(
        self,
        query: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        keys: Keys | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        idempotency_key: str | None = None,
    ) -> Plan:
        """Price the kept share of a question by itself: how much contribution limits leave out of its answer.

        One unit more or less changes one of two numbers of units by one: those that are counted with all their rows,
        and the others. With `Unit.rows_at_most` the rows of both are told too, and the totals of the question
        without its limits. `release().kept` has the shares; `Session.sql(…, kept_share=0.02)` does both at once.

        Args:
            query: The question, as SQL; it is not answered here.
            epsilon: What to spend; say this or `rho`.
            rho: What to spend of zero-concentrated privacy.
            keys: The public keys of groups, by column, as for the question.
            max_groups: The limits of the question, as for `sql`.
            max_rows_per_group: With how many of its rows in each at most.
            idempotency_key: Asked again under it, the stored answer is returned for free.

        Returns:
            The plan: `explain` and `dummy` are free, `release` pays.

        Raises:
            Refused: If the question cannot be answered privately, or no limit can cut anything off it.
        """
        offer = Offer(epsilon=epsilon, rho=rho)
        limits = UnitLimits(max_groups=max_groups, max_rows_per_group=max_rows_per_group)
        return self._ask_kept(query, offer, keys=keys, limits=limits, idempotency_key=idempotency_key)

    def _ask_kept(
        self,
        query: str,
        offer: Offer,
        *,
        keys: Keys | None = None,
        limits: UnitLimits | None = None,
        idempotency_key: str | None = None,
    ) -> Plan:
        """Read a question, and price its kept share; limits may be those of a family."""
        self._desk.check_open()
        _check_key(idempotency_key)
        options, question = self._read_question(query, self._catalogue, keys, limits)
        spend = offer.spend(self._desk.ledger.account.budget)
        limited = self._limited(question, self._catalogue, spend, options)
        if not can_cut(limited):
            raise Refused(
                "no limit can cut rows off this answer: everything is counted",
                way_out="ask the question itself, without kept_share",
            )
        return self._kept_plan(query, limited, spend, idempotency_key)

    def limits(
        self,
        *,
        most: int,
        epsilon: Number | None = None,
        rho: Number | None = None,
        table: str | None = None,
        groups: Sequence[str] = (),
        coverage: Number = "0.98",
    ) -> ProposedLimits:
        """Propose contribution limits from private histograms of rows and groups for each unit, which are charged.

        A unit is in one bin of rows (1, 2, 3 to 4, 5 to 8, …), so all bins are paid like one number. The limits are
        those that a share `coverage` of units does not exceed, as far as noise lets tell; declare them with the unit
        of the next session. `rows.total` estimates the number of all rows from the same bins, for free, where no
        groups are named: within noise and the width of the bins.

        Args:
            most: The largest limit worth considering, and the last bin; from 2.
            epsilon: What to spend; say this or `rho`.
            rho: What to spend of zero-concentrated privacy.
            table: The table, where there are several.
            groups: The columns that answers are grouped by; then half of the price is for the number of groups, and
                rows are those of one group.
            coverage: The share of units that shall have no more.

        Returns:
            Both limits, and the histograms that they come from.

        Raises:
            InvalidParameter: If rows are the units.
            BudgetExceeded: If the session cannot pay; nothing is read.
        """
        from discreet.query.session.private_bounds_and_keys import plan_limits

        said = {"epsilon": epsilon, "rho": rho}
        return plan_limits(self, most=most, table=table, groups=groups, coverage=coverage, **said).release()

    def batch(self, plans: Mapping[str, Plan], *, idempotency_key: str | None, purpose: str) -> JointPlan:
        """Put plans of this session together: one charge pays for all of them, and they are answered at once.

        All noise is accounted for as one event, which is less than the sum of the parts where it is Gaussian. With
        `idempotency_key`, releasing again returns what was released, and refuses if any of the plans has changed.
        """
        self._desk.check_open()
        joint = JointPlan(self._desk, plans, idempotency_key=idempotency_key, purpose=purpose)
        # What the ledger cannot account for is refused here, not at the release.
        self._desk.times_left(joint.event, joint.nested)
        self._remember(joint.event, joint.nested)
        return joint

    def table(self, name: str) -> QueryBuilder:
        """Begin a question in Python: `session.table("orders").where(…).group_by("city").agg(n=count())`."""
        found = next((known for known in self._catalogue.tables if known.casefold() == name.casefold()), None)
        if found is None:
            raise InvalidParameter(f"there is no table {name!r}. {nearest(name, self._catalogue.tables)}")
        return QueryBuilder(session=self, table=found)

    def charge(
        self,
        event: Event,
        *,
        relation: Relation | str,
        purpose: str,
        unit: str = "row",
        idempotency_key: str | None = None,
        parts: int | None = None,
    ) -> None:
        """Charge what a function of the library is about to spend, or raise and nothing is read.

        Such a function protects the rows of the column that it is handed. That is what this session promises only if
        rows are its units; where a person has several, hand over whose each row is, as `dp.mean(…, unit=ids)`, or ask
        with `sql`. Whoever charges an event that holds for the units of this session names their column as `unit`, or
        all that they are made of, as the ledger does. The same
        event under the same `idempotency_key` is charged once, however often a run that was interrupted asks. With
        `parts` it pays for a series, whose parts are stored in the ledger one by one.
        """
        relation = read_relation(relation)
        check_asked(self._unit)
        self._check_unit(unit)
        self._desk.pay(event, relation=relation, purpose=purpose, idempotency_key=idempotency_key, parts=parts)
        self._remember(event)

    def _read(self, work: Callable[[], T], *, event: Event, relation: Relation, purpose: str, unit: str) -> T:
        """Charge for `work` that reads rows of this session's own tables, claim the read, and return what it returns.

        If it fails it fails with the constant error, and counts as a read without an answer.
        """
        check_asked(self._unit)
        self._check_unit(unit)
        result = self._desk.read(work, event=event, relation=relation, purpose=purpose)
        self._remember(event)
        return result

    def _check_unit(self, unit: str) -> None:
        if unit == self._unit.account:  # What queries call a unit of several columns could be anybody's.
            return
        if self._chain is not None:
            raise Refused(
                f"this session protects {self._chain.whom}",
                reason="statistics of one call, estimators and training know what they spend for one unit",
                way_out="ask with session.sql, which charges both",
            )
        what = f"a {unit}" if unit == "row" else f"everybody who shares {unit}"
        raise Refused(
            f"this session protects {(self._chain or self._unit).whom}, and what is charged here protects {what}: one "
            "person may have many of them. Hand over the ids of the units, where unit=… is offered, under the name "
            "that this session has for them; or ask with session.sql, which bounds what each gives"
        )

    def questions_left(self) -> int:
        """Return how many more questions like the last one the budget and the quotas hold."""
        if self._last is None:
            raise InvalidParameter("nothing was asked in this session yet: plan or release a question first")
        return self._desk.times_left(*self._last)

    def affords(self, event: Event, *, at_once: bool = True) -> bool:
        """Tell whether this could be charged now, under the budget and every quota of this principal and project.

        With `at_once=False` its parts are charged one by one, in several charges. It tells of money alone: `charge`
        also refuses what does not protect the units of this session, and everything that is no question under
        replace-one.
        """
        return self._desk.affords(event, at_once=at_once)

    @property
    def spent(self) -> Spending:
        """What was spent on this data set, by everybody."""
        return self._desk.ledger.spent()

    @property
    def left(self) -> Left:
        """What is left of the lifetime budget, rounded down, and how many more charges like the last one fit."""
        return self._desk.left()

    def money(self, like: Event | None = None) -> str:
        """Return one sentence: what was spent, by everybody, and how many more charges like the last one fit.

        The lifetime budget and every quota of this principal and project decide how many; with `like`, how many more
        such events, for instance of a plan.
        """
        return self._desk.money(like)

    def history(self) -> tuple[Entry, ...]:
        """Return every entry of this data set in the ledger: charges, answers, raised budgets."""
        return self._desk.ledger.history()

    def raise_budget(self, budget: Budget, *, reason: str, unit: str | None = None) -> None:
        """Raise the lifetime budget. It is an entry of its own, with who did it and why, and cannot be taken back.

        Of a chain it is that of the outer unit; with `unit`, what the inner one is called, it is that of the inner.
        """
        names = {called: name for name, called in self._desk.called.items()}
        whose = None if unit is None else names.get(unit, unit)
        self._desk.ledger.raise_budget(budget, reason=reason, principal=self._desk.principal, unit=whose)

    @property
    def ledger(self) -> Ledger:
        """The record of this data set: `verify`, `export`, `total` and `describe` are there."""
        return self._desk.ledger

    def describe(self) -> Described:
        """Say what may be asked: tables, columns, what is publicly known of them, whom is protected, what is left."""
        tables, money = describe_catalogue(self._catalogue), self._desk.ledger.describe(called=self._desk.called)
        return Described(f"{tables}\n{money}", (*tables.tables, *money.tables))

    @property
    def catalogue(self) -> Catalogue:
        """What a question may name: tables, columns and what is publicly known of them."""
        return self._catalogue

    @property
    def principal(self) -> str:
        """Who asks in this session."""
        return self._desk.principal

    @property
    def version(self) -> str | None:
        """The declared state of the data; None if nobody named one."""
        return self._desk.version

    @property
    def unit(self) -> Unit:
        """Whom this session protects; of a chain, the inner unit."""
        return self._unit

    @property
    def chain(self) -> Chain | None:
        """Both units that this session protects, if it protects two."""
        return self._chain

    def for_principal(self, principal: str, *, project: str = "", patience: Patience | None = None) -> Session:
        """Return this session as somebody else asks in it: the same tables, ledger and budget; it closes with this."""
        check_name(principal, name="principal")
        other = object.__new__(Session)
        other._unit, other._chain, other._catalogue = self._unit, self._chain, self._catalogue
        other._desk = self._desk.asked_by(principal, project, patience or Patience())
        other._opened, other._last, other._lock = None, None, Lock()
        return other

    @property
    def is_closed(self) -> bool:
        """Whether data and ledger were let go of."""
        return self._desk.closed.is_set()

    def close(self) -> None:
        """Let go of the data and of the ledger; what `for_principal` returned leaves them to its session."""
        if self._opened is not None:
            self._desk.closed.set()
            self._opened.close()

    def _ask(
        self,
        query: str,
        offer: Offer,
        *,
        keys: Keys | None = None,
        limits: UnitLimits | None = None,
        kept: Fraction | None = None,
        idempotency_key: str | None = None,
        catalogue: Catalogue | None = None,
    ) -> Plan:
        """Read and price a question; `catalogue` is for steps that look within wider bounds than are declared."""
        self._desk.check_open()
        _check_key(idempotency_key)
        known = self._catalogue if catalogue is None else catalogue
        options, question = self._read_question(query, known, keys, limits)
        spend = offer.with_clause(options).spend(self._desk.ledger.account.budget)
        limited = self._limited(question, known, spend, options)
        part = kept if kept is not None and can_cut(limited) else Fraction(0)
        priced = self._priced(question, known, _scaled(spend, 1 - part), options)
        asked = Request(text=query, priced=priced, idempotency_key=idempotency_key)
        if not part:
            return self._planned(asked, known)
        first = self._kept_plan(query, limited, _plain(priced.spend, part / (1 - part)), idempotency_key)
        return self._planned(asked, known, first=first)

    def _read_question(
        self, query: str, known: Catalogue, keys: Keys | None, limits: UnitLimits | None
    ) -> tuple[PrivacyOptions, Query]:
        reading = read(query, known, keys=listed_keys(keys))
        _check_public_groups(reading)
        if limits is None:
            return reading.options, reading.question
        limits.check(self._unit, self._chain)
        return reading.options.tightened(limits), reading.question

    def _limited(self, question: Query, known: Catalogue, spend: Spend, limits: PrivacyOptions) -> LimitedDraft:
        return bound_contributions(
            PlanRequest(question=question, catalogue=known, spend=spend, tighter=limits, pure=self._is_pure)
        )

    def _priced(self, question: Query, known: Catalogue, spend: Spend, limits: PrivacyOptions | None) -> PricedQuery:
        return plan_question(question, known, spend, limits=limits, pure=self._is_pure)

    @property
    def _is_pure(self) -> bool:
        return any(budget.kind == "pure" for budget in self._desk.ledger.account.budgets)

    def _planned(self, asked: Request, known: Catalogue, *, first: Plan | None = None, is_kept: bool = False) -> Plan:
        plan = Plan(self._desk, asked, known, first=first, is_kept=is_kept)
        # What the ledger cannot account for is refused here, not at the release.
        self._desk.times_left(plan.event, plan.nested)
        self._remember(plan.event, plan.nested)
        return plan

    def _kept_plan(self, query: str, limited: LimitedDraft, spend: Spend, idempotency_key: str | None) -> Plan:
        known = limited.catalogue
        key = None if idempotency_key is None else f"{idempotency_key}/kept share"
        priced = self._priced(kept_question(limited), known, spend, None)
        asked = Request(text=f"kept share of {query}", priced=priced, idempotency_key=key)
        return self._planned(asked, known, is_kept=True)

    def _remember(self, event: Event, nested: tuple[Event, ...] = ()) -> None:
        with self._lock:
            self._last = event, nested

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # A copy would be a second session on the same budget; estimators that copy their parameters get this one.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise Refused("a session cannot be sent elsewhere: open another one there, on the same ledger")

    def __repr__(self) -> str:
        names, both = ", ".join(self._catalogue.tables), self._chain
        unit = escaped(self._unit.noun if both is None else f"{both.outer.noun}, and {both.inner.noun} within it")
        if self.is_closed:
            return f"Session({names}; unit {unit}; closed)"
        return f"Session({names}; unit {unit}; {self.money()})"

    def _repr_html_(self) -> str | None:
        return None if self.is_closed else f"{self.describe()._repr_html_()}{self.left._repr_html_()}"


def _read_unit(unit: Unit | Chain | str) -> Unit:
    if isinstance(unit, Chain):
        return unit.inner
    if isinstance(unit, Unit):
        return unit
    if unit == "row":
        return Unit("row")
    if isinstance(unit, (list, tuple)):
        raise InvalidParameter(
            "several units are protected together if one is within the other: say dp.Chain(outer, inner, max_inner=…). "
            "Units that overlap, such as patient and doctor, are not: whoever leaves changes what is kept of everybody "
            "they met"
        )
    raise InvalidParameter('unit must be "row", or Unit("column", max_groups=…, max_rows_per_group=…, name=…)')


_MOST_KEPT = Fraction(1, 2)


def _read_part(kept_share: Number) -> Fraction:
    part = positive(kept_share, name="kept_share")
    if part > _MOST_KEPT:
        raise InvalidParameter("kept_share is the part of the price for the kept share: at most 0.5, such as 0.02")
    return part


def _scaled(spend: Spend, part: Fraction) -> Spend:
    """Spend a part; an error that is wanted stays as it is, and what else is measured comes on top."""
    if spend.epsilon is not None:
        return replace(spend, epsilon=spend.epsilon * part)
    return spend if spend.rho is None else replace(spend, rho=spend.rho * part)


def _plain(spend: Spend, part: Fraction) -> Spend:
    """Return a part of a price by itself: all groups of what it pays for are public."""
    amount = Spend(epsilon=spend.epsilon, rho=spend.rho, confidence=spend.confidence)
    return _scaled(amount, part)


def _check_relation(unit: Unit, relation: Relation | str | None) -> None:
    """Refuse a relation that is not the unit's: one of the two was meant, and they promise different things."""
    said = read_relation_if_any(relation)
    if said is not None and said is not unit.relation:
        raise InvalidParameter(
            f"this session is {said.value}, and its unit is {unit.relation.value}: say it with the unit, as in "
            'dp.Unit("patient", relation="replace-one", units=12_000), and leave it out here'
        )


def _check_key(idempotency_key: str | None) -> None:
    """Leave the keys of release plans alone: under a question's own charge their period could never be published."""
    check_texts(idempotency_key=idempotency_key)
    if idempotency_key is not None and idempotency_key.startswith(_OF_RELEASES):
        raise InvalidParameter(
            f"keys that begin with {' or '.join(_OF_RELEASES)} belong to release plans: name this question otherwise"
        )


def _check_public_groups(reading: Reading) -> None:
    unlisted = [key.name for key in reading.question.keys if key.domain is None]
    if reading.options.public_groups and unlisted:
        raise Refused(
            f"PUBLIC_GROUPS was asked for, and nobody listed the values of {', '.join(unlisted)}",
            way_out="list them with keys={…}, declare dp.categories([…]), or join a public table of them",
        )
