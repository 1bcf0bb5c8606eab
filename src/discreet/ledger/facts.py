"""What is written about a charge, and when two charges are the same. Public facts only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidParameter, Refused
from discreet.ledger.account import Account
from discreet.ledger.canonical import canonical, digest
from discreet.ledger.entry import Charge, Entry
from discreet.ledger.event_text import packed_event
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = [
    "as_charge",
    "check_key",
    "check_relation",
    "check_texts",
    "check_unit",
    "facts_of",
    "question_of",
    "same_charge",
]

_LONGEST = 10_000  # Characters of a purpose, a key, a plan or a name.
_IDENTITY = ("principal", "project", "plan", "version")


def facts_of(
    event: Event,
    relation: Relation,
    *,
    purpose: str,
    principal: str,
    project: str,
    key: str | None,
    plan: str | None,
    version: str | None,
) -> dict[str, Any]:
    """Collect what is written about a charge; what was not said is left out."""
    if not isinstance(relation, Relation):
        raise InvalidParameter("relation must be Relation.ADD_REMOVE or Relation.REPLACE_ONE")
    # Names in entries are hashed into the chain and looked up by later releases: they never change.
    said = {
        "purpose": purpose,
        "principal": principal,
        "project": project,
        "key": key,
        "plan": plan,
        "version": version,
    }
    check_texts(**said)
    facts = {"event": packed_event(event), "relation": relation.value}
    return facts | {name: value for name, value in said.items() if value is not None}


def check_texts(**texts: str | None) -> None:
    """Refuse what is not a text of a sane length."""
    for name, value in texts.items():
        if value is not None and (not isinstance(value, str) or len(value) > _LONGEST):
            raise InvalidParameter(f"{name} must be a text of at most {_LONGEST:,} characters")


def check_relation(relation: Relation, account: Account) -> None:
    """Refuse a charge under another relation: what it says about neighbours cannot be added up."""
    if relation is not account.relation:
        raise InvalidParameter(
            f"this data set is accounted under {account.relation.name}; a charge under {relation.name} cannot be added"
        )


def check_unit(unit: str, account: Account) -> None:
    """Refuse a charge that protects somebody else: what one row gives says nothing about a person with many."""
    if unit != account.unit:
        raise Refused(
            f"this data set protects everybody who shares a {account.unit}, and this charge protects a {unit}: "
            "bound what each of them gives, and name the unit with the charge"
        )


def question_of(facts: Mapping[str, Any]) -> str | None:
    """Name what must be the same for an answer to be given again; None if it never is."""
    if facts.get("plan") is None or facts.get("version") is None:
        return None
    return digest(canonical([facts.get(name) for name in _IDENTITY]))


def same_charge(entry: Entry, facts: Mapping[str, Any]) -> Charge:
    """Return the charge that has this key already; refuse if it was for anything else."""
    check_key(entry, facts)
    if entry.content["event"] != facts["event"]:
        raise Refused("this key was used for another event: choose a new key")
    if entry.content.get("parts") != facts.get("parts"):
        raise Refused("this key was used for another number of answers: choose a new key")
    return as_charge(entry)


def check_key(entry: Entry, asked: Mapping[str, Any]) -> None:
    """Refuse a key that was used for anything else. The message does not say by whom or for what."""
    if any(entry.content.get(name) != asked.get(name) for name in _IDENTITY):
        raise Refused("this key was used with another plan, principal, project or version: choose a new key")


def as_charge(entry: Entry) -> Charge:
    """Return the receipt of an entry."""
    return Charge(entry.index, entry.index, entry.hash)
