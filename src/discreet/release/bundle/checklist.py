"""A checklist along NIST SP 800-226, which asks what a claim of privacy stands on, from ε down to the data.

The words are ours. What software can show is ticked and says where to look; what only the publisher can know is open.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet.release.bundle.claims import Claim
from discreet.release.bundle.naming import DUMMY
from discreet.release.bundle.prose import code, line, paragraphs
from discreet.release.bundle.telling import noun
from discreet.release.published import Published

__all__ = ["checklist_page"]

_DONE, _OPEN = "- [x] ", "- [ ] "


def checklist_page(published: Published, claim: Claim) -> str:
    """Write the checklist of a release."""
    dummy = [f"**{DUMMY}: nothing was released, and nothing is claimed.**"] if published.ledger is None else []
    head = [
        f"# Checklist along NIST SP 800-226: {line(published.plan.title)}",
        *dummy,
        "*Guidelines for Evaluating Differential Privacy Guarantees* (NIST SP 800-226, doi 10.6028/NIST.SP.800-226) "
        "draws a claim as a pyramid: ε at its top, the collection of the data at its foot, and every layer holds only "
        "as well as those below it. Ticked: kept by the software, and where that can be seen. Not ticked: only the "
        "publisher can know.",
    ]
    parts = (*_top(published, claim), *_middle(published, claim), *_foot(), *_hazards(published, claim))
    return paragraphs([*head, *parts])


def _top(published: Published, claim: Claim) -> Iterator[str]:
    yield "## The guarantee itself"
    yield "\n".join(
        [
            f"{_DONE}**ε and δ** are stated: ε = {claim.epsilon_text}, δ = {claim.delta_text}, rounded up, for the "
            "whole release (`guarantee.md`, `manifest.json`).",
            f"{_DONE}**Variant and relation** are stated: {line(published.relation.value)} one unit; the exact event "
            "is in `manifest.json`.",
            f"{_DONE}**Unit of privacy** is stated: {line(noun(claim))}"
            + (
                ", one row. People with several rows are protected once for each."
                if claim.is_row
                else ", with all rows in all tables."
            ),
            f"{_DONE}**Lifetime**: all releases share one budget, {line(claim.budget.describe())}."
            if claim.lifetime_guess is not None
            else f"{_OPEN}**Lifetime**: there is no lifetime budget; windows add up, and the publisher must watch "
            "their sum.",
            f"{_OPEN}Is ε small enough for this use, and was the choice explained to those whose data it is?",
        ]
    )


def _middle(published: Published, claim: Claim) -> Iterator[str]:
    intervals = all(c.has_interval for t in published.tables for c in t.raw.columns if c.measured)
    yield "## Algorithms, accuracy and bias"
    yield "\n".join(
        [
            f"{_DONE}**Mechanisms** are named: {line('; '.join(claim.mechanisms))}.",
            f"{_DONE}**Sensitivity** follows from declared bounds and limits, never from the data (`dictionary.md`).",
            f"{_DONE}**Composition**: one event for all tables, accounted as a whole.",
            f"{_DONE}**Accuracy** is published with every value: an interval, and the deviation of the noise."
            if intervals
            else f"{_DONE}**Accuracy** is published with every value for which it is public; `dictionary.md` says "
            "where not, and why.",
            f"{_DONE}**Statistical bias**: raw values of counts and sums are unbiased for the counted rows; tidy "
            "values are biased and labelled so; clamping and limits on rows are named as parameters.",
            f"{_OPEN}**Bias in small groups**: noise of one size hides more of a small group. Were those who rely on "
            "small groups asked?",
        ]
    )
    yield "## Trust and threat model"
    yield "\n".join(
        [
            f"{_DONE}**Central model**: the publisher sees the data, readers do not; readers may collude, know "
            "everything else and choose questions by earlier answers.",
            f"{_DONE}**Spent before read**: the charge is durable before the first row is read"
            + (f" (ledger entry {published.ledger.charge})." if published.ledger is not None else "."),
            f"{_DONE}**Numerical side channels**: integers on a public grid, noise sampled exactly from a "
            "cryptographic source.",
            f"{_DONE}**Failures and time**: what fails after the charge looks the same whatever the data are.",
            f"{_OPEN}Could anybody but the publisher time the run or watch the machine?",
        ]
    )


def _foot() -> Iterator[str]:
    yield "## Security, access and collection"
    yield "\n".join(
        [
            f"{_DONE}Nothing exact about private rows is in this bundle; `discreet bundle verify` compares it with "
            "the ledger.",
            f"{_OPEN}Who can read the private tables, the ledger and its anchor? Are they backed up apart from each "
            "other?",
            f"{_OPEN}Was the data set collected lawfully, and no more of it than is needed? Is it deleted in time?",
            f"{_OPEN}Are there other releases of the same data that this ledger does not know?",
        ]
    )


def _hazards(published: Published, claim: Claim) -> Iterator[str]:
    hidden = [table.plan.name for table in published.tables if table.threshold]
    yield "## Hazards that the guide warns of"
    yield "\n".join(
        [
            f"{_DONE}A claim without its unit, or with the unit of an event where people mean a person: see above."
            if not claim.is_row
            else f"{_OPEN}The unit is one row. Is one person never in several rows?",
            f"{_DONE}A large δ: δ = {claim.delta_text}.",
            f"{_OPEN}δ should be far below one over the number of protected units. Is it?"
            if claim.delta
            else f"{_DONE}δ is zero.",
            f"{_DONE}Parameters tuned on the private data: bounds, groups and prices are in the plan (`plan.toml`)."
            if published.plan.written
            else f"{_OPEN}Parameters tuned on the private data: were bounds and groups chosen without looking?",
            f"{_DONE}Groups that reveal themselves: {', '.join(map(code, hidden))} show a group above a noisy "
            "threshold only."
            if hidden
            else f"{_DONE}Groups that reveal themselves: every group is listed in the plan, empty ones too.",
            f"{_DONE}Exact numbers beside noisy ones: {len(published.plan.invariants)} invariant(s), each named in "
            "`guarantee.md`."
            if published.plan.invariants
            else f"{_DONE}Exact numbers beside noisy ones: there are none.",
        ]
    )
