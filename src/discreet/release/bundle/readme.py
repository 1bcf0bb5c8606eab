"""The first file that somebody opens: what is here, and where to begin."""

from __future__ import annotations

from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.bundle.manifest import verify_command
from discreet.release.bundle.naming import DUMMY
from discreet.release.bundle.telling import guess_words, period_words, signer_words, who_words
from discreet.release.published import Published

__all__ = ["readme_text"]

_FILES = (
    ("report.html", "begin here: every table with its chart, and what it all means; opens in any browser, offline"),
    ("guarantee.md", "who is protected and how well, in words and in formulas"),
    ("tables/", "the tables. NAME.csv: raw values, to compute with; NAME.tidy.csv: tidy values, to print"),
    ("dictionary.md", "what every column means (dictionary.json for programs)"),
    ("tables.json", "every number as an exact fraction"),
    ("plan.toml", "the release plan, as it was run"),
    ("checklist.md", "a checklist along NIST SP 800-226"),
    ("registry.json", "an entry for public registries of differential privacy deployments"),
    ("manifest.json", "hashes of all files, versions, and the place in the ledger"),
)


def readme_text(published: Published, claim: StatedGuarantee) -> str:
    """Write the file."""
    plan = published.plan
    by = [f"Published by {plan.publisher}."] if plan.publisher else []
    contact = [f"Questions: {plan.contact}"] if plan.contact else []
    dummy = [f"{DUMMY}. Made of invented rows to show the shape of a release. No number here is about anybody.", ""]
    signed = [("signature.json", "the signature of manifest.json")] if published.signer is not None else []
    listed = [f"  {name:<15}{what}" for name, what in (*_FILES, *signed)]
    lines = [
        _one_line(plan.title),
        _one_line(period_words(published)),
        "",
        *(dummy if published.ledger is None else []),
        *map(_one_line, [*by, *contact]),
        "",
        _one_line(who_words(claim)),
        _one_line(guess_words(claim)),
        "",
        "In this folder:",
        *listed,
        "",
        "To check it:",
        f"  {verify_command(published)}",
        _one_line(signer_words(published)),
        "",
    ]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
