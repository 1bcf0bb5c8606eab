"""The auditor: it tries to prove a claim wrong, ours or anybody's, from nothing but outputs."""

from discreet.audit.auditing import Mechanism, audit
from discreet.audit.claimed import Claimed
from discreet.audit.findings import Audit, Finding

__all__ = ["Audit", "Claimed", "Finding", "Mechanism", "audit"]
