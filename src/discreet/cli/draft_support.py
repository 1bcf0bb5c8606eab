"""A first plan from a file: what was seen goes to the custodian's terminal, and into the plan once it is confirmed."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from discreet.cli.output import note, printable, working
from discreet.cli.policies import declared_in
from discreet.cli.release_support import Drafted
from discreet.cli.spending import answer_to, can_ask
from discreet.errors import InvalidParameter, Refused
from discreet.formatting import enumerated, plain, shortened
from discreet.ledger import Budget
from discreet.privacy import NotPrivate
from discreet.release import check, draft_plan, read_release_plan
from discreet.release.draft.custodian_look import FEWEST, Proposal
from discreet.release.draft.plan_draft import Draft, toml_value
from discreet.schema.csv_file import CsvFile

__all__ = ["Amounts", "drafted"]

_UNIT = "unit.column"
_LONGEST = 40  # characters of a stage, beside the time
_TAKE, _TAKE_ALL, _NONE = "", "!", "none"
_HOW = (
    "Return takes what is proposed, ! takes all the rest too, none leaves it out; or type something else, as in TOML."
)


@final
@dataclass(frozen=True, slots=True)
class Amounts:
    """How much may be spent, as it was typed. Nothing of this is ever proposed."""

    epsilon: str | None
    delta: str | None
    lifetime_epsilon: str | None
    lifetime_delta: str | None


def drafted(
    data: Path, file: Path | CsvFile, *, unit: str | None, table: str | None, amounts: Amounts, out: Path, yes: bool
) -> Drafted:
    """Look at a file, settle what is proposed, and write the plan once it is confirmed."""
    if out.exists():
        raise InvalidParameter(f"there is a file {out.name} already: move it, or say --out")
    if not yes and not can_ask():
        raise InvalidParameter(
            "there is no terminal to ask on: say --yes to take all proposals, and read the plan after"
        )
    for epsilon, delta in ((amounts.epsilon, amounts.delta), (amounts.lifetime_epsilon, amounts.lifetime_delta)):
        if epsilon is not None:
            Budget(epsilon, delta)  # What cannot be is refused before the file is looked at.
    with working(f"looking at {data.name}") as current:  # How far it is may be told: this is the custodian's terminal.
        seen = draft_plan(
            file,
            unit=unit,
            table=table,
            on_progress=lambda stage: current.step(shortened(printable(stage), _LONGEST)),
        )
    if sys.stderr.isatty():
        note(str(NotPrivate(f"what was seen in {data.name}")))
    if yes:
        _note_left_out(seen.value)
    draft = seen.value if yes else _settled(seen.value, unit)
    found = declared_in(out.parent / draft["ledger"].value, draft["dataset"].value)
    spent = _as_declared(amounts if yes else _amounts(amounts, found), found)
    text = draft.confirmed(**_words(spent), folder=out.parent)
    if not yes and answer_to(f"{text}\nWrite this into {out}? Everything in it becomes public. [y/N] ") not in (
        "y",
        "yes",
    ):
        raise Refused("not confirmed; nothing was written")
    return _written(out, text)


def _note_left_out(draft: Draft) -> None:
    """Say which lists lack values, as the walk does; how many is for the custodian's terminal, not for a log."""
    for one in draft.proposals:
        if one.rarer and sys.stderr.isatty():
            note(f"{one.field}: {one.rarer} rarer values are left out, and rows with them are not counted")
    lists = [one for one in draft.proposals if isinstance(one.value, dict) and "categories" in one.value]
    listed = [one.field.removeprefix("columns.") for one in lists]
    if listed:
        note(
            f"lists that were read from the rows leave out values that fewer than {FEWEST} units have, and rows with "
            f"other values are not counted: check {enumerated(list(map(printable, listed)))} against official lists"
        )


def _written(out: Path, text: str) -> Drafted:
    with out.open("x", encoding="utf-8") as file:
        file.write(text)
    plan = read_release_plan(out)
    found = declared_in(plan.policy.ledger, plan.policy.dataset, said=plan.policy.budget)
    if found not in (None, plan.policy.budget):
        note(
            f"{plan.policy.ledger.name} has a lifetime budget of {found}, this plan {plan.policy.budget}. Before the "
            f'first release: discreet budget raise --policy {out} --reason "…"'
        )
    return Drafted.of(check(plan), out)


def _as_declared(said: Amounts, found: Budget | None) -> Amounts:
    """Take the lifetime budget that the ledger of these data has already, unless another one was said."""
    if found is None or found.epsilon is None or said.lifetime_epsilon is not None:
        return said
    if said.delta is not None and found.delta is None:
        raise InvalidParameter(
            f"the ledger of these data has a lifetime budget of {found}, and a release with a delta needs one with a "
            f"delta: say --lifetime-epsilon {plain(found.epsilon)} --lifetime-delta {said.delta}, or leave --delta out"
        )
    delta = found.delta if said.lifetime_delta is None else said.lifetime_delta
    note(f"lifetime budget: {found}, as the ledger of these data has it")
    return replace(said, lifetime_epsilon=str(found.epsilon), lifetime_delta=None if delta is None else str(delta))


def _words(amounts: Amounts) -> dict[str, Any]:
    if amounts.epsilon is None:
        raise InvalidParameter("say how much one release may spend: --epsilon. It has no default")
    return {name: getattr(amounts, name) for name in ("epsilon", "delta", "lifetime_epsilon", "lifetime_delta")}


def _amounts(said: Amounts, found: Budget | None) -> Amounts:
    """Ask for what was not said."""
    if said.epsilon is None:
        epsilon = answer_to("How much may one release spend, as ε? There is no default; many take 1. ")
        said = replace(said, epsilon=epsilon or None)
    if said.lifetime_epsilon is None and found is None:
        lifetime = answer_to("And all releases together, ever, as ε? Return: as much as one release. ")
        said = replace(said, lifetime_epsilon=lifetime or None)
    return said


def _settled(draft: Draft, unit: str | None) -> Draft:
    """Walk through the proposals: whom to protect first, since it changes what is seen of the rest."""
    note(_HOW)
    draft, is_last = (draft, False) if unit is not None else _settle(draft, _UNIT)
    for field in [one.field for one in draft.proposals if one.field != _UNIT]:
        once = draft["schedule.every"].value == "once"
        if is_last or (once and field in ("schedule.column", "schedule.first")):
            continue
        draft, is_last = _settle(draft, field)
    return draft


def _settle(draft: Draft, field: str) -> tuple[Draft, bool]:
    """Ask until what is said can be; also tell whether all the rest is taken as it is."""
    while True:
        try:
            value, is_last = _asked(draft[field])
            return draft.answered(field, value), is_last
        except InvalidParameter as error:
            note(str(error))


def _asked(proposal: Proposal) -> tuple[Any, bool]:
    """Show a proposal and return what was said to it, and whether all the rest is taken too."""
    choices = [_shown(one) for one in proposal.choices if one != proposal.value]
    others = f"\n    or: {' | '.join(choices)}" if choices else ""
    said = answer_to(f"\n{proposal.field} = {_shown(proposal.value)}\n    {proposal.why}{others}\n> ", fold=False)
    if said in (_TAKE, _TAKE_ALL):
        return proposal.value, said == _TAKE_ALL
    return _read(said, proposal), False


def _shown(value: Any) -> str:
    return _NONE if value is None else toml_value(value)


def _read(said: str, proposal: Proposal) -> Any:
    """Read what was typed as TOML; a text needs no quotes where a text is proposed."""
    if said == _NONE:
        return None
    try:
        return tomllib.loads(f"value = {said}")["value"]
    except tomllib.TOMLDecodeError:
        if isinstance(proposal.value, str) or proposal.value is None:
            return said
        raise InvalidParameter(f"{proposal.field} is written as in TOML, such as {_shown(proposal.value)}") from None
