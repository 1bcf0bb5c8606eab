"""Every ε, δ and ρ that a bundle states, compared with what its event is worth: worked out again, never believed.

This needs neither the ledger nor the version that wrote the bundle. The manifest holds the event. What follows from it
is computed anew and written as the texts write it; a text that states anything else, or no longer states it at all, is
told. Numbers that the plan itself names, in a title for instance, may be repeated.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import ratio
from discreet.ledger import Budget
from discreet.ledger.pricing import concentrated_price
from discreet.ledger.restoring import whole
from discreet.mechanisms.text import significant_up
from discreet.privacy import Relation, epsilon
from discreet.privacy.events import Composed, Event, from_json
from discreet.release.bundle.claims import best_guess, e_to, percent_up
from discreet.release.bundle.exact_tables import ExactTable
from discreet.release.bundle.guarantee import alone_text
from discreet.release.bundle.manifest import MANIFEST
from discreet.release.bundle.prose import code

__all__ = ["ROUNDING", "stated_otherwise"]

ROUNDING = 1e-9  # What another processor may round otherwise in a bound that holds on either.

_LONGEST = 1 << 20  # Characters of an event.
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?(?:/\d+)?"
_LEVEL = re.compile(rf"([εδρ])\s*=\s*({_NUMBER})")
_GUESS = re.compile(rf"right (?:in |with probability )?at most(?: \(1 \+ δ\(0\)\) / 2 =)? ({_NUMBER}) %")
_FACTOR = re.compile(rf"(?:a factor of at most|is at most) ({_NUMBER})(?: times|,)")

Found: TypeAlias = set[tuple[str, str]]  # a sign, and a number as it is written


@final
@dataclass(frozen=True, slots=True)
class _Worth:
    """What everything in a bundle that protects the same unit is worth together."""

    epsilon: float
    delta: Fraction
    rho: Fraction | None  # None where it has none
    alone: tuple[tuple[str, float], ...]  # ε of each table by itself
    guess: float
    lifetime: tuple[Budget, float] | None  # None for a budget that only windows have


def stated_otherwise(
    manifest: Mapping[str, Any], files: Mapping[str, bytes], tables: tuple[ExactTable, ...]
) -> Iterator[str]:
    """Tell every number about privacy that does not follow from the event of the manifest."""
    try:
        problems = list(_of_manifest(manifest))
        worth = _worth(manifest, tables)
    except (KeyError, TypeError, ValueError, ArithmeticError, InvalidParameter, UnsupportedEvent):
        yield f"{MANIFEST} holds no event whose ε can be worked out"
        return
    yield from problems
    if not problems:
        yield from _of_texts(worth, files, _quoted(files, tables))
        if "guarantee.md" in files:
            yield from _of_list(worth, _plain("guarantee.md", files["guarantee.md"]))
        if "registry.json" in files:
            yield from _of_registry(worth, files["registry.json"])


def _of_manifest(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Compare ε of the release and of each series with their events. More than is proven may be told, never less."""
    said = manifest["guarantee"]
    relation = Relation(said["relation"])
    parts = [("the release", said), *((f"series {name}", facts) for name, facts in manifest["running"].items())]
    for name, facts in parts:
        told = math.inf if facts["epsilon"] is None else float(facts["epsilon"])
        proven = epsilon(_event(facts["event"]), ratio(facts["delta"]), relation=relation)
        if not proven <= told * (1 + ROUNDING) or math.isnan(told):
            yield f"{MANIFEST} states a smaller ε for {name} than its event has"


def _event(packed: Any) -> Event:
    text = json.dumps(packed)
    if len(text) > _LONGEST:
        raise ValueError
    return from_json(text)


def _worth(manifest: Mapping[str, Any], tables: tuple[ExactTable, ...]) -> _Worth:
    said, relation = manifest["guarantee"], Relation(manifest["guarantee"]["relation"])
    delta = ratio(said["delta"])
    series = [_event(facts["event"]) for facts in manifest["running"].values() if facts["unit"] == said["unit"]]
    event = Composed([_event(said["event"]), *series]) if series else _event(said["event"])
    level = epsilon(event, delta, relation=relation) if series else float(said["epsilon"])
    if not math.isfinite(level):
        raise ValueError
    budget = Budget.unpacked(said["lifetime_budget"])
    return _Worth(
        epsilon=level,
        delta=delta,
        rho=_rho(_event(said["event"]), relation),
        alone=tuple((table.name, epsilon(table.raw.event, delta, relation=relation)) for table in tables),
        guess=best_guess(event, relation),
        lifetime=None if budget.kind == "unlimited" else (budget, best_guess(whole(budget), relation)),
    )


def _rho(event: Event, relation: Relation) -> Fraction | None:
    try:
        return concentrated_price(event, relation).rho
    except UnsupportedEvent:
        return None


def _near(value: float) -> tuple[float, ...]:
    """A number, and what another processor may have made of it."""
    return (value * (1 - ROUNDING), value, value * (1 + ROUNDING))


def _of_texts(worth: _Worth, files: Mapping[str, bytes], quoted: Found) -> Iterator[str]:
    levels: Found = {("ε", significant_up(Fraction(each))) for each in _near(worth.epsilon)}
    known = levels | {("δ", significant_up(worth.delta))} | quoted
    known |= {("ε", significant_up(Fraction(v))) for _, one in worth.alone if math.isfinite(one) for v in _near(one)}
    known |= set() if worth.lifetime is None else _levels(worth.lifetime[0].describe())
    guesses = {percent_up(min(1.0, each)) for each in _near(worth.guess)}
    likely = guesses | (
        set() if worth.lifetime is None else {percent_up(min(1.0, v)) for v in _near(worth.lifetime[1])}
    )
    factors = {significant_up(e_to(each), 3) for each in _near(worth.epsilon) if each < 700}
    for name in ("README.txt", "guarantee.md", "checklist.md", "report.html", "dictionary.md", "registry.json"):
        if name not in files:
            continue  # A lost file is told as one.
        text = _plain(name, files[name])
        found, guessed = _levels(text), {f"{number} %" for number in _GUESS.findall(text)}
        wrong = [f"{sign} = {number}" for sign, number in sorted(found - known)]
        wrong += [f"a guess of {each}" for each in sorted(guessed - likely)]
        wrong += [f"a factor of {each}" for each in sorted({*_FACTOR.findall(text)} - factors)]
        yield from (f"{name} states {each}, which does not follow from the event" for each in wrong)
        if name in ("guarantee.md", "checklist.md") and not found & levels:
            yield f"{name} does not state the ε of the event"
        if name in ("README.txt", "guarantee.md", "report.html") and not guessed & guesses:
            yield f"{name} does not state how often a guess is right"


def _of_list(worth: _Worth, text: str) -> Iterator[str]:
    """Compare the list of what each table spends alone."""
    for name, level in worth.alone:
        rows = [f"| {code(name)} | {alone_text(each)} |" for each in _near(level)]
        if not any(row in text for row in rows):
            yield f"guarantee.md states another ε for table {name} than its event has"


def _plain(name: str, held: bytes) -> str:
    """Return what a reader sees of a file, on one line."""
    text = held.decode("utf-8", "replace")
    if name.endswith(".html"):
        text = html.unescape(_without_tags(text))
    return " ".join(text.split())


def _without_tags(text: str) -> str:
    """Take tags away in one pass; a search for pairs of < and > would take quadratic time where they never close."""
    first, *others = text.split("<")
    return " ".join([first, *(other.partition(">")[2] for other in others)])


def _levels(text: str) -> Found:
    return set(_LEVEL.findall(text))


def _quoted(files: Mapping[str, bytes], tables: tuple[ExactTable, ...]) -> Found:
    """Return the numbers that texts take over word by word: from the plan, and what each table was said to cost."""
    notes = [text for table in tables for text in (table.title, table.raw.cost, *table.raw.notes)]
    return _levels(" \n".join([files.get("plan.toml", b"").decode("utf-8", "replace"), *notes]))


def _of_registry(worth: _Worth, held: bytes) -> Iterator[str]:
    """Compare the numbers of the registry's entry, which are numbers and no text."""
    try:
        said = json.loads(held)["deployment"]["privacy_loss"]["privacy_parameters"]
        levels = (float(said["epsilon"]), float(said["delta"]))
        float(said.get("rho", 0))
    except (ValueError, KeyError, TypeError, RecursionError):
        yield "registry.json states no ε and δ"
        return
    for sign, told, known in zip("εδ", levels, (worth.epsilon, float(worth.delta)), strict=True):
        if not abs(told - known) <= ROUNDING * known:
            yield f"registry.json states another {sign} than follows from the event"
    if "rho" in said and not (worth.rho is not None and float(worth.rho) <= float(said["rho"]) * (1 + ROUNDING)):
        yield "registry.json states a smaller ρ than the event has"
