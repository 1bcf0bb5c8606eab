"""Everything in a bundle as bytes: a function of the plan, the stored answers and the ledger mark alone."""

from __future__ import annotations

import math

from discreet.errors import InvalidParameter
from discreet.release.bundle.checklist import checklist_page
from discreet.release.bundle.claims import claim_of
from discreet.release.bundle.dictionary import dictionary_of, dictionary_page
from discreet.release.bundle.exact_tables import EXACT, exact_tables, table_files, written_exactly
from discreet.release.bundle.guarantee import guarantee_page
from discreet.release.bundle.manifest import MANIFEST, json_bytes, manifest_of
from discreet.release.bundle.naming import check_tables
from discreet.release.bundle.readme import readme_text
from discreet.release.bundle.registry import registry_entry
from discreet.release.published import Published

__all__ = ["contents_of"]


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
