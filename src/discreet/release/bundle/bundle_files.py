"""Everything in a bundle as bytes: a function of the plan, the stored answers and the ledger's mark."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping

from discreet.errors import InvalidParameter
from discreet.release.bundle.claims import StatedGuarantee, claim_of
from discreet.release.bundle.dictionary import dictionary_of, dictionary_page
from discreet.release.bundle.guarantee_page import checklist_page, guarantee_page
from discreet.release.bundle.manifest import DUMMY, MANIFEST, check_tables, json_bytes, manifest_of, verify_command
from discreet.release.bundle.registry_entry import registry_entry
from discreet.release.bundle.table_files import EXACT, exact_tables, table_files, written_exactly
from discreet.release.bundle.wording import bounded_words, guess_words, period_words, signer_words, who_words
from discreet.release.published import Published

__all__ = ["contents_of", "readme_text", "zip_bytes"]

# --- contents ---
# Everything in a bundle as bytes: a function of the plan, the stored answers and the ledger mark alone.


def contents_of(published: Published) -> dict[str, bytes]:
    """Return every file of a bundle by its path within it. No clock is read and nothing is drawn."""
    from discreet.release.report import report_page

    if not published.tables:
        raise InvalidParameter("a bundle has at least one table")
    if not math.isfinite(published.epsilon):
        raise InvalidParameter(f"no ε holds at δ = {published.delta}: nothing could be promised; say a δ above zero")
    tables = exact_tables(published)
    check_tables(table.name for table in tables)
    claim, dictionary, dummy = claim_of(published), dictionary_of(published), published.ledger is None
    files = {
        "README.txt": readme_text(published, claim).encode(),
        "report.html": report_page(published, claim).encode(),
        "guarantee.md": guarantee_page(published, claim).encode(),
        "checklist.md": checklist_page(published, claim).encode(),
        "dictionary.md": dictionary_page(published, dictionary).encode(),
        "dictionary.json": json_bytes(dictionary),
        "plan.toml": published.plan.written.encode(),
        "registry.json": json_bytes(registry_entry(published, claim)),
        EXACT: written_exactly(tables, dummy=dummy),
        **table_files(tables, published.plan.output.formats, dummy=dummy),
    }
    return {**files, MANIFEST: json_bytes(manifest_of(published, claim, files))}


# --- readme: The first file that somebody opens: what is here, and where to begin. ---


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
        _one_line(bounded_words(published)),
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


# --- archive: A bundle as one .zip file: sorted, without times, so that the same files make the same bytes. ---


_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # The first moment that the format knows.
_READABLE = 0o100644 << 16


def zip_bytes(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Pack files below one folder."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, held in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{folder}/{name}", _FIRST_DAY)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _READABLE, 3
            archive.writestr(entry, held)
    return packed.getvalue()
