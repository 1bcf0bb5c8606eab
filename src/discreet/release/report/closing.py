"""The end of the page: hidden groups, what is not protected, notes, and how to check all of it."""

from __future__ import annotations

from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.bundle.manifest import sha256, verify_command
from discreet.release.bundle.telling import bounded_words, invariant_words, signer_words, unprotected
from discreet.release.published import Published
from discreet.release.report.marks import bullets, code, paragraph, section, words

__all__ = ["hidden_part", "limits_part", "verify_part"]


def hidden_part(published: Published) -> str:
    """Write which groups stay hidden; nothing if all are listed."""
    hidden = [table for table in published.tables if table.threshold]
    if not hidden:
        return ""
    told = paragraph(
        "Where nobody listed the groups in advance, even the name of a small group could give somebody away. Such a "
        "group appears only if enough people are in it, counted with noise of its own. How many are hidden is not told."
    )
    return section(
        "hidden", "Groups that stay hidden", [told, bullets(f"{t.plan.title}: {t.threshold}" for t in hidden)]
    )


def limits_part(published: Published, claim: StatedGuarantee) -> str:
    """Write what the promise does not cover, and the notes of all tables, each once."""
    invariants = [invariant_words(each) for each in published.plan.invariants]
    notes = dict.fromkeys(note for table in published.tables for note in table.raw.notes)
    parts = [
        "<h3>Not protected</h3>",
        bullets(unprotected(published, claim)),
        *(["<h3>Exact numbers</h3>", _typed(), bullets(invariants)] if invariants else []),
        "<h3>What to know when you use the numbers</h3>",
        paragraph(bounded_words(published)),
        bullets(notes),
    ]
    return section("limits", "Limits and notes", parts)


def _typed() -> str:
    return paragraph("These were typed into the plan, never read from the data, and tidy values respect them:")


def verify_part(published: Published) -> str:
    """Write how anybody checks the bundle, and how the holder of the ledger does."""
    mark = published.ledger
    parts = [
        paragraph(
            "Beside this page are the tables, the plan, the guarantee in formulas, and the hash of every file. Run:"
        ),
        f"<pre><code>{words(verify_command(published))}</code></pre>",
        paragraph(
            "It finds every file that was changed, added or lost, and every number that differs between files. Whoever "
            "holds the ledger adds --ledger FILE: then each raw number is compared with what was stored, to the last "
            "digit, the price with what was paid, and every file with the digest that was recorded."
        ),
        paragraph(signer_words(published)),
    ]
    if mark is not None:
        facts = [f"charge {mark.charge} of data set {mark.dataset}", f"hash {mark.hash}"]
        parts.append(f'<p class="note">Ledger: {code(", ".join(facts))}</p>')
    parts.append(f'<p class="note">Plan: {code(f"SHA-256 {sha256(published.plan.written.encode())}")}</p>')
    return section("verify", "How to check it", parts)
