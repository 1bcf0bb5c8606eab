"""The guarantee in words and in formulas, and a checklist along NIST SP 800-226."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from discreet.formatting import percent_up
from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.bundle.manifest import DUMMY
from discreet.release.bundle.wording import (
    apart_words,
    bounded_words,
    code,
    confidence_words,
    exact_words,
    factor_words,
    guess_words,
    invariant_words,
    lifetime_words,
    line,
    pair_words,
    paragraphs,
    seen_words,
    series_words,
    table_of,
    unbiased_words,
    unprotected,
    who_words,
)
from discreet.release.published import Published

__all__ = ["alone_text", "checklist_page", "guarantee_page"]

# --- guarantee: The guarantee: first in words that everybody understands, then in formulas. ---


_READ = (
    ("the definition of ε, and noise that has it", "Dwork, McSherry, Nissim, Smith 2006", "DMNS06"),
    ("the definition of (ε, δ)", "Dwork, Kenthapadi, McSherry, Mironov, Naor 2006", "DKMMN06"),
    ("the exact privacy of Gaussian noise", "Balle, Wang 2018", "BW18"),
    ("what an attacker can and cannot test", "Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015", "WZ10, KOV15"),
    ("budgets that hold while questions depend on answers", "Rogers, Roth, Ullman, Vadhan 2016", "RRUV16"),
)


def guarantee_page(published: Published, claim: StatedGuarantee) -> str:
    """Write the guarantee of a release."""
    return paragraphs([*_plain(published, claim), *_formal(published, claim)])


def _plain(published: Published, claim: StatedGuarantee) -> Iterator[str]:
    yield f"# What is guaranteed: {line(published.plan.title)}"
    if published.ledger is None:
        yield (
            f"**{DUMMY}. These tables are made of invented rows: they tell nothing about anybody. This page says what "
            "a real release of this plan would guarantee.**"
        )
    yield "## Who is protected"
    yield line(who_words(claim))
    yield "## What anybody can learn about one of them, at most"
    yield line(guess_words(claim))
    yield line(pair_words(claim))
    yield line(factor_words(claim))
    yield line(bounded_words(published))
    yield "## What is not protected"
    yield "\n".join(f"- {line(each)}" for each in unprotected(published, claim))
    yield from _invariants(published)
    yield from _series(published)
    yield "## Over the lifetime of the data"
    yield line(lifetime_words(claim))


def _series(published: Published) -> Iterator[str]:
    if published.running:
        yield "## Totals so far"
        yield "\n".join(f"- {line(series_words(published, running))}" for running in published.running)
        yield (
            "The numbers above count these series in, as far as they protect the same unit. What one release spends "
            "without them is in `manifest.json`."
        )


def _invariants(published: Published) -> Iterator[str]:
    if published.plan.invariants:
        yield "These numbers are exact. They were typed into the plan and never read from the data:"
        yield "\n".join(f"- {line(invariant_words(each))}" for each in published.plan.invariants)


def _formal(published: Published, claim: StatedGuarantee) -> Iterator[str]:
    shared = line(claim.shared) if claim.is_composed else f"one value of `{claim.unit}`"
    unit = "one row" if claim.is_row else f"all rows that share {shared}, in all private tables"
    yield "## The same in formulas"
    seen = ["the fields of the plan that were read from the data when it was drafted"] if claim.from_data else []
    excepted = [*map(code, claim.apart), *seen]
    but = f", but for {' and '.join(excepted)}" if excepted else ""
    yield (
        f"M is everything in this bundle that was computed from the data{but}. Data sets D and D′ are neighbours "
        f"({published.relation.value}) if one is the other with {_differ(claim)}: {unit}. For all neighbours and all "
        "sets S of outcomes,"
    )
    yield f"    P[M(D) ∈ S] ≤ e^ε · P[M(D′) ∈ S] + δ      with ε = {claim.epsilon_text} and δ = {claim.delta_text}."
    if claim.apart:
        one = line(claim.noun) if claim.is_composed else f"`{claim.unit}`"
        yield (
            f"For {' and '.join(map(code, claim.apart))} the same holds with the ε and δ of its own that are told "
            f"above, for neighbours that differ by the rows of one {one} on one day."
        )
    if claim.within is not None:
        inner = claim.within
        yield (
            f"For neighbours that differ by one {line(inner.noun)}, all rows that share {line(inner.shared)}, the same "
            f"holds with ε = {inner.epsilon_text} and δ = {inner.delta_text}. Of a unit of the "
            f"first kind at most {inner.most} of the second are counted, those with the least secret tags: one that "
            "leaves lets in at most one other, and is billed for twice what it adds."
        )
    yield (
        "Tidy values, charts and this text are computed from M alone and change nothing. For every test that tells D "
        "from D′, false positives a and false negatives b keep 1 − δ ≤ b + e^ε · a, and a + b ≥ 1 − δ(0); so a guess "
        f"at even odds is right with probability at most (1 + δ(0)) / 2 = {percent_up(claim.guess)}."
    )
    yield f"Noise: {'; '.join(claim.mechanisms)}."
    yield "By table, each alone at the same δ; what they spend together is worked out as a whole:"
    yield table_of(
        ("table", "ε alone", "what was said when it was priced"),
        [(code(name), alone_text(level), line(cost)) for name, level, cost in _costs(published, claim)],
    )
    yield (
        f"Confidence intervals hold {exact_words(published, code)}, after values were clamped to their "
        f"bounds, with {confidence_words(published)} confidence, one cell at a time. `manifest.json` has the "
        "event of the release, exactly, under `guarantee.event`."
    )
    yield "Where it is proven: " + "; ".join(f"{what}: {who} [{key}]" for what, who, key in _READ) + "."


def _differ(claim: StatedGuarantee) -> str:
    if claim.is_exchanged:
        return f"one unit of {line(claim.known)}, exchanged for any other rows or for none"
    return "one unit more"


def _costs(published: Published, claim: StatedGuarantee) -> Iterator[tuple[str, float, str]]:
    said = [table.raw.cost for table in published.tables] + [each.table.cost for each in published.running]
    for (name, level), cost in zip(claim.alone, said, strict=True):
        yield name, level, cost


def alone_text(level: float) -> str:
    """Write what one table spends alone."""
    return f"{level:.4g}" if level < float("inf") else "none alone"


# --- checklist ---
# A checklist along NIST SP 800-226, which asks what a claim of privacy stands on, from ε down to the data.
#
# The words are ours. What software can show is ticked and says where to look; what only the publisher can know is open.


Item: TypeAlias = tuple[bool, str]  # whether it is kept by the software, and what it is


def checklist_page(published: Published, claim: StatedGuarantee) -> str:
    """Write the checklist of a release."""
    dummy = f"**{DUMMY}: nothing was released, and nothing is claimed.**" if published.ledger is None else ""
    parts = {
        "The guarantee itself": _guarantee(published, claim),
        "Algorithms, accuracy and bias": _algorithms(published, claim),
        "Trust and threat model": _trust(published),
        "Security, access and collection": _foundations(claim),
        "Hazards that the guide warns of": _hazards(published, claim),
    }
    head = [
        f"# Checklist along NIST SP 800-226: {line(published.plan.title)}",
        dummy,
        "*Guidelines for Evaluating Differential Privacy Guarantees* (NIST SP 800-226, doi 10.6028/NIST.SP.800-226) "
        "draws a claim as a pyramid: ε at its top, the collection of the data at its foot, and every layer holds only "
        "as well as those below it. Ticked: kept by the software, and where that can be seen. Not ticked: only the "
        "publisher can know.",
    ]
    return paragraphs([*head, *(text for title, items in parts.items() for text in (f"## {title}", _list(items)))])


def _kept(text: str) -> Item:
    return True, text


def _asked(text: str) -> Item:
    return False, text


def _list(items: Iterable[Item]) -> str:
    return "\n".join(f"- [{'x' if kept else ' '}] {text}" for kept, text in items)


def _guarantee(published: Published, claim: StatedGuarantee) -> Iterator[Item]:
    whom = (
        "one row; people with several rows are protected once for each"
        if claim.is_row
        else "with all rows in all tables"
    )
    yield _kept(
        f"**ε and δ** are stated: ε = {claim.epsilon_text}, δ = {claim.delta_text}, rounded up, for everything in the "
        "bundle (`guarantee.md`, `manifest.json`)." + (f" {line(apart_words(claim))}" if apart_words(claim) else "")
    )
    yield _kept(
        f"**Variant and relation** are stated: {line(published.relation.value)} one unit; the exact event is in "
        "`manifest.json`."
    )
    yield _kept(f"**Privacy unit** is stated: {line(_unit_of(claim))}, {whom}{line(_inner_of(claim))}.")
    if claim.lifetime_guess is not None:
        yield _kept(f"**Lifetime**: all releases share one budget, {line(claim.budget.describe())}.")
    else:
        yield _asked(
            "**Lifetime**: there is no lifetime budget; windows add up, and the publisher must watch their sum."
        )
    yield _asked("Is ε small enough for this use, and was the choice explained to those whose data it is?")


def _unit_of(claim: StatedGuarantee) -> str:
    """Name the unit, and the column that tells it from others."""
    if claim.is_composed:
        return f"{claim.noun} (who shares {claim.shared})"
    return claim.noun if claim.noun == claim.unit else f"{claim.noun} (who shares a value of {claim.unit})"


def _inner_of(claim: StatedGuarantee) -> str:
    inner = claim.within
    if inner is None:
        return ""
    return f"; and {inner.noun} (who shares {inner.shared}), with ε = {inner.epsilon_text}, δ = {inner.delta_text}"


def _algorithms(published: Published, claim: StatedGuarantee) -> Iterator[Item]:
    measured = [column for table in published.tables for column in table.raw.columns if column.measured]
    yield _kept(f"**Mechanisms** are named: {line('; '.join(claim.mechanisms))}.")
    if claim.from_data:
        yield _asked(
            "**Sensitivity** follows from bounds and limits in the plan, but these were **read from the data** when it "
            f"was drafted: {line('; '.join(map(seen_words, claim.from_data)))}. One {line(claim.noun)} can be visible "
            "in them. Can they be replaced by what is known without the data?"
        )
    else:
        yield _kept("**Sensitivity** follows from declared bounds and limits, never from the data (`dictionary.md`).")
    yield _kept("**Composition**: one event for all tables, accounted as a whole.")
    if all(column.has_interval for column in measured):
        yield _kept(
            "**Accuracy** is published with every value: an interval at least, and the noise where it is public."
        )
    else:
        yield _kept(
            "**Accuracy** is published with every value for which it is public; `dictionary.md` says where not."
        )
    yield _kept(
        f"**Statistical bias**: raw {unbiased_words(published.plan.policy.unit)}; tidy values are biased and labelled "
        "so; clamping and limits on rows are named as parameters."
    )
    yield _asked(
        "**Bias in small groups**: noise of one size hides more of a small group. Were those who rely on small groups "
        "asked?"
    )


def _trust(published: Published) -> Iterator[Item]:
    mark = published.ledger
    entry = "" if mark is None else f" (ledger entry {mark.charge})"
    yield _kept(
        "**Central model**: the publisher sees the data, readers do not; readers may collude, know everything else and "
        "choose questions by earlier answers."
    )
    yield _kept(f"**Spent before read**: the charge is durable before the first row is read{entry}.")
    yield _kept(
        "**Numerical side channels**: integers on a public grid, noise sampled exactly from a cryptographic source."
    )
    yield _kept("**Failures**: what fails after the charge looks the same whatever the data are.")
    yield _asked("Could anybody but the publisher time the run or watch the machine?")


def _foundations(claim: StatedGuarantee) -> Iterator[Item]:
    if claim.from_data:
        yield _asked("Exact facts about private rows are in this bundle: what was read from the data for the plan.")
    else:
        yield _kept(
            "Nothing exact about private rows is in this bundle; `discreet bundle verify` compares it with the ledger."
        )
    yield _asked(
        "Who can read the private tables, the ledger and its anchor? Are they backed up apart from each other?"
    )
    yield _asked("Was the data set collected lawfully, and no more of it than is needed? Is it deleted in time?")
    yield _asked("Are there other releases of the same data that this ledger does not know?")


def _hazards(published: Published, claim: StatedGuarantee) -> Iterator[Item]:
    hidden = [table.plan.name for table in published.tables if table.threshold]
    if claim.is_row:
        yield _asked("The unit is one row. Is one person never in several rows?")
    else:
        yield _kept("A claim without its unit, or with the unit of an event where people mean a person: see above.")
    if claim.delta:
        yield _asked(f"δ = {claim.delta_text} should be far below one over the number of protected units. Is it?")
    else:
        yield _kept("A δ that is too large: it is zero.")
    if claim.from_data:
        yield _asked("Parameters tuned on private data: those in `from_data` of `plan.toml` were, without a price.")
    else:
        yield _kept(
            "Parameters tuned on private data: bounds, groups and prices were in the plan before (`plan.toml`)."
        )
        yield _asked("Were those bounds and groups chosen without looking at the private data?")
    if hidden:
        shown = ", ".join(map(code, hidden))
        yield _kept(f"Groups that reveal themselves: {shown} show a group above a noisy threshold only.")
    else:
        yield _kept("Groups that reveal themselves: every group is listed in the plan, empty ones too.")
    if published.plan.invariants:
        named = "; ".join(f"{line(each.table)}.{line(each.column)}" for each in published.plan.invariants)
        yield _kept(f"Exact numbers beside noisy ones: {named}, typed into the plan and named in `guarantee.md`.")
    else:
        yield _kept("Exact numbers beside noisy ones: there are none.")
