"""An entry for public registries of differential privacy deployments.

The fields are those of the Differential Privacy Deployments Registry (opendp/deployments-registry-data, its schema of
July 2026), filled up to its third tier. What only the publisher knows says so and must be written by hand;
docs/bundle.md tells where each field comes from.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import UnsupportedEvent
from discreet.ledger.prices import concentrated_price
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.bundle.manifest import DUMMY
from discreet.release.bundle.wording import (
    apart_words,
    invariant_words,
    lifetime_words,
    period_words,
    seen_words,
    signer_words,
    who_words,
)
from discreet.release.plan import Every
from discreet.release.published import Published

__all__ = ["registry_entry"]

_BY_HAND = "To be written by the publisher: a release plan does not say it."


def registry_entry(published: Published, claim: StatedGuarantee) -> dict[str, Any]:
    """Return the entry as JSON has it; the registry itself keeps the same as YAML."""
    return {
        "url_slug": f"{DUMMY}-" * (published.ledger is None)
        + f"{published.plan.name}-{published.period.label}".lower(),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(published),
            "dp_variant": _variant(published, claim),
            "privacy_loss": _loss(published, claim),
            "deployment_model": _model(published),
            "accounting": _accounting(published, claim),
            "implementation": _implementation(published, claim),
            "administrative": _administrative(published),
        },
    }


def _basic(published: Published) -> dict[str, Any]:
    plan, mark = published.plan, published.ledger
    tables = "; ".join(f"{table.plan.name}: {table.plan.title}" for table in published.tables)
    dated = {} if mark is None else {"publication_date": mark.time.date().isoformat()}  # A dummy is never published.
    return {
        "name": plan.title if mark is not None else f"{DUMMY}: {plan.title}",
        "data_curators": [plan.publisher or _BY_HAND],
        "intended_use": _BY_HAND,
        "data_product_type": "Summary statistics",
        "data_product_region": _BY_HAND,
        "description": f"Tables with noise and intervals ({period_words(published)}). {tables}",
        **dated,
    }


def _variant(published: Published, claim: StatedGuarantee) -> dict[str, Any]:
    seen = [f"read from the data when the plan was drafted: {seen_words(each)}" for each in claim.from_data]
    exact = "; ".join([*(invariant_words(each) for each in published.plan.invariants), *seen])
    return {
        "variant_name": _variant_name(claim),
        "data_domain": f"All tables with the declared columns of data set {published.plan.policy.dataset}.",
        "unprotected_quantities": exact or "None: no number was published without noise.",
    }


def _variant_name(claim: StatedGuarantee) -> str:
    if claim.budget.kind == "concentrated":
        return "Zero-concentrated DP"
    return "Pure DP" if claim.delta == 0 else "Approximate DP"


def _loss(published: Published, claim: StatedGuarantee) -> dict[str, Any]:
    numbers = {"epsilon": claim.epsilon, "delta": float(claim.delta)}
    if published.plan.allowance.rho is not None and _is_concentrated(claim.event, published.relation):
        numbers["rho"] = float(published.plan.allowance.rho)
    return {
        "privacy_unit": _unit_level(claim),
        "privacy_unit_details": f"{who_words(claim)} Neighbours differ {_differ(claim)} "
        f"({published.relation.value}).{apart_words(claim)}",
        "privacy_parameters": numbers,
        "privacy_parameters_details": f"Of this release; ε is rounded up. {lifetime_words(claim)}",
    }


def _unit_level(claim: StatedGuarantee) -> str:
    if claim.is_row:
        return "Event-level (one row)"
    inner = "" if claim.within is None else f" and {claim.within.noun}-level"
    return f"{claim.noun}-level{inner}, over all rows and tables"


def _differ(claim: StatedGuarantee) -> str:
    if not claim.is_exchanged:
        return f"by one {claim.noun}"
    return "in one row" if claim.is_row else f"in the rows of one {claim.noun}"


def _is_concentrated(event: Event, relation: Relation) -> bool:
    """Whether an event has a rho: one with a delta of its own, such as for groups that nobody listed, has none."""
    try:
        concentrated_price(event, relation)
    except UnsupportedEvent:
        return False
    return True


def _model(published: Published) -> dict[str, Any]:
    every = published.plan.schedule.every
    repeats = every is not Every.ONCE
    return {
        "model_name": "Central",
        "model_name_details": "Noise is added by the publisher, who holds the data.",
        "actors": "The publisher holds the data and runs the release. Readers of the bundle, and anyone they give it "
        "to, see noisy values only; nobody among them needs to be trusted.",
        "release_type": "Many releases" if repeats else "One release",
        "release_type_details": f"Once per {every.value}." if repeats else "Once.",
        "data_source_type": "Dynamic" if repeats else "Static",
        "data_source_type_details": _source_words(published),
        "access_type": "Non-interactive",
        "access_type_details": "Tables that were fixed in a public plan beforehand; readers ask no questions.",
    }


def _source_words(published: Published) -> str:
    schedule = published.plan.schedule
    if schedule.every is Every.ONCE:
        return "The tables as they were when the plan was released."
    if schedule.column is None:
        return "Each release is about all rows that are there at that time."
    return f"Each release is about the rows of its period, by the column {schedule.column}."


def _accounting(published: Published, claim: StatedGuarantee) -> dict[str, Any]:
    tidied = any(table.tidy is not None for table in published.tables) and published.plan.output.tidy
    return {
        "post_processing": "Tidy tables: whole, not negative, adding up, by weighted least squares on the noisy "
        "values; the raw values are published beside them."
        if tidied
        else "None.",
        "composition": "All tables are one event, charged once to a ledger before the data are read. The event is "
        "composed exactly: closed forms, or privacy loss distributions with proven error; a lifetime filter stands "
        "above it.",
    }


def _implementation(published: Published, claim: StatedGuarantee) -> dict[str, Any]:
    return {
        "preprocessing_and_hyperparameter_tuning": f"{_declared_words(claim)} Values outside of bounds are clamped. "
        "What else the publisher did: to be written by hand.",
        "mechanisms": f"{'; '.join(claim.mechanisms)}. Sampled exactly on integers from a cryptographic source, by the "
        "package discreet (version in manifest.json); no floating point number decides a probability.",
        "justification": _BY_HAND,
    }


def _declared_words(claim: StatedGuarantee) -> str:
    if not claim.from_data:
        return "Bounds, groups and prices were declared before the release; the plan marks none as read from the data."
    fields = ", ".join(fact.field for fact in claim.from_data)
    return f"These fields of the plan were read from the data, without noise or price: {fields}."


def _administrative(published: Published) -> dict[str, Any]:
    notes = (
        "manifest.json has hashes, the exact event and the place in the ledger; guarantee.md explains it. "
        f"{signer_words(published)}"
    )
    return {
        "sources": "The bundle that this file is in: README.txt, report.html, guarantee.md, plan.toml.",
        "notes": notes if published.ledger is not None else f"{DUMMY}: invented rows. Not to be registered. {notes}",
        "registry_authors": [published.plan.contact or published.plan.publisher or _BY_HAND],
    }
