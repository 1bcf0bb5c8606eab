"""What is declared for a data set, what may be declared again, and which sums a charge is added to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.ledger.budget import AGENT, Budget, Quota, Sums, as_written, canonical, readable
from discreet.ledger.charge_record import ROW_OR_NONE, Account
from discreet.ledger.delta_shares import FIRST, Shares, choose_shares, shares_after
from discreet.ledger.filters import PrivacyFilter, filter_for
from discreet.pages.kit import Described, DescribedTable
from discreet.privacy.events import Event

__all__ = [
    "LIFETIME",
    "NO_CAP",
    "Book",
    "LedgerScope",
    "as_split",
    "budget_toml",
    "carried_over",
    "check_declared",
    "check_quotas",
    "check_raise",
    "check_restored",
    "declaration",
    "declare",
    "granted_quotas",
    "quotas_as_split",
    "quotas_without_grant",
    "raised_book",
    "replaced_quotas",
    "windows_words",
]

# --- book: What is declared for a data set, and which sums a charge is added to. ---


LIFETIME = ""  # The scope of all charges of a data set.
NO_CAP = "the cap of an agent: none is in force"
_NUMBERS = ("epsilon", "delta", "rho")


@final
@dataclass(frozen=True, slots=True)
class LedgerScope:
    """A sum and the rule it keeps to."""

    name: str
    rule: PrivacyFilter
    text: str
    nested: int | None = None  # which of the units within the first it is of; None of the first, and of quotas

    def event(self, event: Event, nested: Sequence[Event]) -> Event:
        """Return what a charge spends here."""
        return event if self.nested is None else nested[self.nested]


@final
@dataclass(frozen=True, slots=True)
class Book:
    """An account with its quotas and the split of delta chosen for each when it was declared."""

    account: Account
    rule: PrivacyFilter
    quotas: tuple[tuple[Quota, PrivacyFilter], ...]
    nested: tuple[PrivacyFilter, ...] = ()  # one for each unit within the first

    def nested_scopes(self) -> list[LedgerScope]:
        """List the sums of the units within the first."""
        pairs = enumerate(zip(self.account.nested, self.nested, strict=True))
        return [
            LedgerScope(f"unit {unit}", rule, f"the lifetime budget of {unit}", number)
            for number, ((unit, _), rule) in pairs
        ]

    def scopes(self, *, project: str, principal: str, time: int) -> list[LedgerScope]:
        """List every sum that a charge counts against: all of them must admit it."""
        whose, for_one = (f" {word} {self.account.unit}" if self.nested else "" for word in ("of", "for one"))
        found = [LedgerScope(LIFETIME, self.rule, f"the lifetime budget{whose}"), *self.nested_scopes()]
        for quota, rule in self.quotas:
            if quota.covers(project=project, principal=principal):
                name = quota.scope(project=project, principal=principal, time=time)
                found.append(LedgerScope(name, rule, f"the quota of {quota.describe()}{for_one}"))
        return found

    def lacks_cap(self, principal: str) -> bool:
        """Tell whether this is an agent without a grant in force: it may charge nothing."""
        return principal.startswith(AGENT) and not self.grants(principal)

    def grants(self, principal: str) -> list[Quota]:
        """Return the caps that were granted to an agent."""
        return [quota for quota, _ in self.quotas if quota.is_grant and quota.principal == principal]

    def check_cap(self, principal: str) -> None:
        """Refuse a charge of an agent without a grant, in the transaction that charges: it may be taken back before."""
        if self.lacks_cap(principal):
            raise Refused(
                f"{principal} has no cap in force in the ledger of {self.account.dataset!r}",
                reason=f"a principal whose name begins with {AGENT} spends what a person granted it, and nothing else; "
                "nobody granted it a cap, or the cap was taken back",
                way_out="have a person grant it a cap: discreet mcp --cap-epsilon, or Ledger.grant; a name whose cap "
                "was taken back gets none again, and another name does",
            )

    def describe(self, called: Mapping[str, str]) -> str:
        """Say what is guaranteed; quotas are quotas. `called` has what a policy calls one unit."""
        budget, unit = self.account.budget, self.account.unit
        whom = f"one {called.get(unit, unit)} ({self.account.relation.value})"
        if budget.kind != "unlimited":
            pairs = self.account.nested
            within = "".join(f", and {each.describe()} for one {called.get(inner, inner)}" for inner, each in pairs)
            return f"all charges together: {budget.describe()} for {whom}{within}"
        return f"{windows_words(self.windows())} for {whom}; there is no lifetime limit"

    def stands(
        self,
        spent: object,
        left: object,
        nested: Sequence[tuple[str, object, object]] = (),
        called: Mapping[str, str] | None = None,
    ) -> Described:
        """Say what is guaranteed, what was spent and what is left; of units within the first, too."""
        names = called or {}
        promise = self.describe(names)
        rows = [("guarantee", promise), ("spent", str(spent)), ("left", str(left))]
        text = f"{promise}. Spent: {spent}. Left: {left}."
        for unit, own, rest in ((names.get(inner, inner), *stands) for inner, *stands in nested):
            rows += [(f"spent of {unit}", str(own)), (f"left of {unit}", str(rest))]
            text += f" For one {unit}: spent {own}; left {rest}."
        return Described(text, [DescribedTable("", (), tuple(rows))])

    def windows(self) -> list[Quota]:
        """Return the quotas per window over all charges: the guarantee of a data set without a lifetime budget."""
        return [quota for quota, _ in self.quotas if quota.is_guarantee]

    def text(self) -> str:
        """Write the declaration in its one form."""
        quotas = [quota.packed() | rule.shares.packed() for quota, rule in self.quotas]
        packed = self.account.packed() | self.rule.shares.packed() | {"quotas": quotas}
        if self.nested:
            pairs = zip(packed["nested"], self.nested, strict=True)
            packed["nested"] = [each | rule.shares.packed() for each, rule in pairs]
        return canonical(packed)

    @classmethod
    def read(cls, dataset: str, text: str) -> Book:
        """Read what `text` wrote."""
        return _read(dataset, text)

    def with_budget(self, budget: Budget, spent: Fraction = Fraction(0)) -> Book:
        """Return the book after its budget was raised: the same shares of delta, for their sums are kept.

        A pure account that gets its first delta has no shares yet: they are chosen now, for what is not `spent`.
        """
        account = replace(self.account, budget=budget)
        shares = self.rule.shares if self.rule.budget.kind == budget.kind else shares_after(budget, spent)
        return replace(self, account=account, rule=filter_for(budget, shares))

    def with_nested_budget(self, number: int, budget: Budget) -> Book:
        """Return the book after the budget of a unit within the first was raised, within its kind and its split."""
        units, rules = list(self.account.nested), list(self.nested)
        units[number] = units[number][0], budget
        rules[number] = filter_for(budget, rules[number].shares)
        return replace(self, account=replace(self.account, nested=tuple(units)), nested=tuple(rules))

    def with_quotas(self, quotas: tuple[Quota, ...]) -> Book:
        """Return the book after its quotas were replaced; what stays keeps its shares of delta."""
        chosen, kept = declare(self.account, quotas).quotas, dict(self.quotas)
        return replace(self, quotas=tuple((quota, kept.get(quota, rule)) for quota, rule in chosen))


def windows_words(quotas: Iterable[Quota]) -> str:
    """Say what the quotas per window over all charges promise, where they are the guarantee."""
    return " and ".join(_per_window(quota) for quota in quotas if quota.is_guarantee)


def _per_window(quota: Quota) -> str:
    """Say that windows add up: "ε = 1 per day; k days: kε"."""
    budget, unit = quota.budget, "window" if (quota.window or "").isdigit() else quota.window
    sums = {"pure": "kε", "approximate": "kε, kδ", "concentrated": "kρ"}[budget.kind]
    return f"{budget.describe()}{quota.per()}; k {unit}s: {sums}"


def declare(account: Account, quotas: tuple[Quota, ...]) -> Book:
    """Split the delta of a new data set, from public facts."""
    if not all(isinstance(quota, Quota) for quota in quotas):
        raise InvalidParameter("quotas must be a sequence of Quota")
    pairs = tuple((quota, filter_for(quota.budget, choose_shares(quota.budget))) for quota in quotas)
    nested = tuple(filter_for(budget, choose_shares(budget)) for _, budget in account.nested)
    book = Book(account, filter_for(account.budget, choose_shares(account.budget)), pairs, nested)
    if nested and any(rule.budget.kind == "unlimited" for rule in (book.rule, *nested)):
        raise InvalidParameter("where several units are protected, each needs a lifetime budget")
    if account.budget.kind == "unlimited" and not book.windows():
        raise InvalidParameter("a data set without a lifetime budget needs a quota per window over all its charges")
    return book


@lru_cache(maxsize=64)
@as_written()
def _read(dataset: str, text: str) -> Book:
    packed = json.loads(text)
    account = Account.unpacked(dataset, packed)
    quotas = []
    for each in packed["quotas"]:
        quota = Quota.unpacked(each)
        quotas.append((quota, filter_for(quota.budget, Shares.unpacked(quota.budget, each))))
    nested = tuple(
        filter_for(budget, Shares.unpacked(budget, each))
        for (_, budget), each in zip(account.nested, packed.get("nested", ()), strict=True)
    )
    rule = filter_for(account.budget, Shares.unpacked(account.budget, packed))
    return Book(account, rule, tuple(quotas), nested)


# --- declaring: What may be declared again, raised or changed, and what may not. ---


def declaration(book: Book) -> dict[str, Any]:
    """Return a book as the content of an entry."""
    return {"declared": json.loads(book.text())}


def check_declared(account: Account, quotas: tuple[Quota, ...], before: Book) -> None:
    """Refuse to open a data set as something else than it was declared."""
    asked = replace(account, budget=as_split(account.budget, before.rule))
    if asked != before.account:
        raise Refused(
            f"data set {account.dataset!r} was declared as {before.account.describe()}{_split(before.account.budget)}, "
            f"and now as {account.describe()}{_split(account.budget)}",
            reason="unit and relation of a data set never change, and its lifetime budget only by an entry in the "
            "ledger: it can be raised, and a pure one can get a delta",
            way_out=_ways_out(before.account, asked),
        )
    # What was granted to agents later only limits further, and stands beside what a policy declares.
    declared = tuple(quota for quota, _ in before.quotas if quota in quotas or not quota.is_grant)
    if quotas and quotas_as_split(quotas, before) != declared:
        listed = "; ".join(quota.describe() for quota in declared) or "none"
        raise Refused(f"data set {account.dataset!r} has these quotas: {listed}. They are changed with set_quotas")


def _ways_out(before: Account, asked: Account) -> str:
    """Say what to write into the policy and, where the budget can be raised to what is said, with which command."""
    if before.nested != asked.nested:
        return (
            "declare the same units with the same budgets, or raise one: discreet budget raise --unit NAME. For other "
            "units name another dataset and another ledger: what both spend adds up for whoever is in both"
        )
    if {before.unit, asked.unit} == {"row", ROW_OR_NONE}:
        return (
            "name another dataset and another ledger: statistics of one call take the number of rows as public, and in "
            "a session under replace-one a row may be missing"
        )
    if (before.unit, before.relation) != (asked.unit, asked.relation):
        return (
            f"declare the unit as {before.unit!r} and the relation as {before.relation.value!r}; for another unit name "
            "another dataset and another ledger: what both spend adds up for whoever is in both"
        )
    keep = f"write what the ledger has into the policy or plan:\n{budget_toml(before.budget, indent='    ')}"
    try:
        check_raise(before.budget, asked.budget)
    except Refused:
        return f"{keep}\n  It cannot be lowered, and keeps its kind and its split of delta"
    raising = f"  or raise the ledger's, which stays on record and cannot be undone:\n    {_command(asked.budget)}"
    return f"{keep}\n{raising}\n  In Python open it as declared, and call raise_budget"


def budget_toml(budget: Budget, *, indent: str = "") -> str:
    """Return the section of a policy file that declares a budget."""
    said = [f"{name} = {_decimal(value)}" for name in _NUMBERS if (value := getattr(budget, name)) is not None]
    expect = [] if budget.expect is None else [f'expect = "{budget.expect}"']
    return "\n".join(f"{indent}{line}" for line in ("[budget]", *said, *expect))


def _command(budget: Budget) -> str:
    said = [f"--{name} {_decimal(value)}" for name in _NUMBERS if (value := getattr(budget, name)) is not None]
    return f'discreet budget raise --policy FILE {" ".join(said)} --reason "…"'


def _decimal(value: Fraction) -> str:
    """Write a number that TOML and the command line read back as it is."""
    short = readable(value)
    return short if "/" not in short and Fraction(short) == value else f'"{value}"'


def as_split(said: Budget, rule: PrivacyFilter) -> Budget:
    """Return a budget as an account of this rule writes it down: the first one always said the share of events."""
    first = rule.budget.kind == "approximate" and rule.shares.version == FIRST
    return _as_first(said) if first and isinstance(said, Budget) else said


def _as_first(said: Budget) -> Budget:
    if said.kind != "approximate" or said.approximate is not None or said.expect is not None:
        return said
    return Budget(said.epsilon, said.delta, approximate=Fraction(1, 2))


def quotas_as_split(quotas: tuple[Quota, ...], before: Book) -> tuple[Quota, ...]:
    """Return quotas as they are written down: those that were there under the first rule say the share of events."""
    first = {quota for quota, rule in before.quotas if rule.shares.version == FIRST}
    old = [Quota.unpacked(quota.packed() | {"budget": _as_first(quota.budget).packed()}) for quota in quotas]
    return tuple(new if new in first else quota for new, quota in zip(old, quotas, strict=True))


def _split(budget: Budget) -> str:
    """Say how delta is split where that was said."""
    share = "" if budget.approximate is None else f", {budget.approximate} of δ for events with a δ"
    return share if budget.expect is None else f", expecting {budget.expect}{share}"


def check_raise(before: Budget, after: Budget) -> None:
    """Refuse anything but more of the same kind, with delta split as before; a pure budget may get its first delta."""
    split = isinstance(after, Budget) and (after.kind, after.approximate, after.expect)
    first_delta = isinstance(after, Budget) and (before.kind, after.kind) == ("pure", "approximate")
    if split != (before.kind, before.approximate, before.expect) and not first_delta:
        told = f"{before.describe()}{_split(before)}"
        raise Refused(f"a budget is raised within its kind and its split of delta: it is {told} now")
    pairs = [(getattr(before, name), getattr(after, name)) for name in _NUMBERS]
    numbers = [(old or Fraction(0), new or Fraction(0)) for old, new in pairs]
    if any(new < old for old, new in numbers) or all(new == old for old, new in numbers):
        raise Refused(f"a budget can only be raised: it is {before.describe()} now")


def _check_nested_raise(before: Account, unit: str, after: Budget) -> int:
    """Find a unit within the first by what the ledger calls it, and refuse anything but more of its own budget."""
    units = [name for name, _ in before.nested]
    if unit not in units:
        listed = ", ".join(map(repr, units)) or "none"
        raise Refused(f"no unit within {before.unit!r} is called {unit!r}: there is {listed}")
    number = units.index(unit)
    budget = before.nested[number][1]
    if isinstance(after, Budget) and (budget.kind, after.kind) == ("pure", "approximate"):
        raise Refused(
            f"the budget of {unit!r} is pure, and stays so",
            reason="its sums have no share of a first delta",
            way_out="raise its epsilon",
        )
    check_raise(budget, after)
    return number


def raised_book(book: Book, new: Budget, unit: str | None, sums: Sums) -> tuple[Book, dict[str, Any]]:
    """Return the book after a raise, of the first unit or of one within it, and what an entry tells of it."""
    account = book.account
    if unit is not None and unit != account.unit:
        number = _check_nested_raise(account, unit, new)
        return book.with_nested_budget(number, new), {"unit": unit, "before": account.nested[number][1].packed()}
    budget = as_split(new, book.rule)
    check_raise(account.budget, budget)
    raised = book.with_budget(budget, sums.epsilon or Fraction(0))
    begins = sums.charges and budget.kind != account.budget.kind
    carried = {"sums": carried_over(sums, raised).text()} if begins else {}
    return raised, {"before": account.budget.packed(), **carried}


def carried_over(sums: Sums, book: Book) -> Sums:
    """Return the sums of a pure account after it got its first delta: epsilon goes on, the others begin.

    What was spent before is taken off the epsilon that the other sums keep to: `Shares.carried`.
    """
    return Sums(sums.epsilon, sums.delta, sums.rho, (0,) * book.rule.shares.kept, sums.charges)


def check_restored(before: Account, after: Account) -> None:
    """Refuse an account that a copy cannot have become: only its budget may have been raised since."""
    names = [[unit for unit, _ in account.nested] for account in (before, after)]
    if (before.unit, before.relation, names[0]) != (after.unit, after.relation, names[1]):
        raise Refused(
            f"data set {before.dataset!r} was declared as {before.describe()}: unit and relation never change"
        )
    if before.budget != after.budget:
        check_raise(before.budget, after.budget)
    for (unit, budget), (_, now) in zip(before.nested, after.nested, strict=True):
        if budget != now:
            _check_nested_raise(before, unit, now)


def granted_quotas(book: Book, ever: Book, grant: Quota) -> tuple[Quota, ...] | None:
    """Return the quotas with one more grant; None if it is in force. An agent has one cap, once, and it never changes.

    `ever` has every quota that there ever was: a cap that was taken back does not come back, and makes no room.
    """
    if not grant.is_grant:
        raise InvalidParameter("a grant is the quota of one agent, without a window: Quota(…, principal='agent:name')")
    whose, quotas = grant.principal or "", tuple(quota for quota, _ in book.quotas)
    (said,) = quotas_as_split((grant,), ever)
    if said in quotas:
        return None
    if not ever.grants(whose):
        return (*quotas, said)
    before = book.grants(whose) or ever.grants(whose)
    taken_back = "" if book.grants(whose) else ", which was taken back"
    raise Refused(
        f"{whose} was granted {before[-1].budget.describe()}{taken_back}, and now {grant.budget.describe()}",
        reason="the sum of another cap would begin with nothing spent, and what a person took back stays so: a cap is "
        "granted once under a name",
        way_out=("" if taken_back else "say the cap that was granted; or ")
        + "grant more under another name, which is a cap of its own",
    )


def replaced_quotas(book: Book, ever: Book, quotas: tuple[Quota, ...]) -> tuple[Quota, ...]:
    """Return other quotas, beside the grants in force: these are granted and taken back one by one."""
    said, granted = quotas_as_split(quotas, ever), [quota for quota, _ in book.quotas if quota.is_grant]
    for quota in said:
        if quota.is_grant and quota not in granted:
            raise Refused(
                f"the quotas have a cap of {quota.principal} that is not in force: {quota.budget.describe()}",
                reason="a cap of an agent is granted once under a name",
                way_out="leave it out, and grant it: Ledger.grant",
            )
    return (*said, *(quota for quota in granted if quota not in said))


def quotas_without_grant(book: Book, agent: str) -> tuple[Quota, ...]:
    """Return the quotas after the cap of an agent was taken back."""
    taken = book.grants(agent)
    if not taken:
        caps = ", ".join(sorted({quota.principal or "" for quota, _ in book.quotas if quota.is_grant})) or "nobody"
        raise Refused(
            f"{agent} has no cap in force in the ledger of {book.account.dataset!r}",
            reason="nobody granted it one, or it was taken back before",
            way_out=f"name an agent that has one: {caps}",
        )
    return tuple(quota for quota, _ in book.quotas if quota not in taken)


def check_quotas(before: Book, after: Book) -> None:
    """Without a lifetime budget the quotas per window over all charges are the guarantee, and stay."""
    if before.account.budget.kind == "unlimited" and before.windows() != after.windows():
        raise Refused("this data set has no lifetime budget: its quotas per window over all charges cannot be changed")
