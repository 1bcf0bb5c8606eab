"""Reads without an answer, in every account of a policy's ledger that belongs to its data set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.policies import read_any_policy
from discreet.errors import InvalidParameter
from discreet.ledger import Ledger, ReadClaim, look

if TYPE_CHECKING:
    from discreet.query import Policy

__all__ = ["claims_of", "released", "reopened"]


def claims_of(path: Path) -> tuple[ReadClaim, ...]:
    """List them; a ledger that is not there yet has none."""
    policy = read_any_policy(path)
    if not policy.ledger.exists():
        return ()
    seen = look(policy.ledger, anchor=policy.anchor)
    return tuple(claim for claim in seen.claims() if claim.dataset in _datasets(policy))


def released(path: Path, charge: int, *, reason: str, principal: str) -> tuple[ReadClaim, ...]:
    """Release one, and list what is left."""
    policy = read_any_policy(path)
    dataset = next((claim.dataset for claim in claims_of(path) if claim.charge.id == charge), None)
    if dataset is None:
        raise InvalidParameter("no read without an answer is claimed under this charge: see `discreet ledger claims`")
    with _opened(policy, dataset) as ledger:
        ledger.release_claim(charge, reason=reason, principal=principal)
    return claims_of(path)


def reopened(path: Path, analyst: str, *, reason: str, principal: str) -> tuple[ReadClaim, ...]:
    """Count the failures of somebody no more, and list what is left."""
    policy = read_any_policy(path)
    closed = {claim.dataset for claim in claims_of(path) if claim.counts and claim.principal == analyst}
    if not closed:
        raise InvalidParameter(f"no read for {analyst!r} has failed since anybody looked: see `discreet ledger claims`")
    for dataset in sorted(closed):
        with _opened(policy, dataset) as ledger:
            ledger.reopen(analyst, reason=reason, principal=principal)
    return claims_of(path)


def _datasets(policy: Policy) -> tuple[str, str]:
    """The account of a data set, and the one of its series that protect each day by itself."""
    return policy.dataset, f"{policy.dataset} by day"


@contextmanager
def _opened(policy: Policy, dataset: str) -> Iterator[Ledger]:
    account = look(policy.ledger, anchor=policy.anchor).account(dataset)
    with Ledger.open(policy.ledger, account, anchor=policy.anchor) as ledger:
        yield ledger
