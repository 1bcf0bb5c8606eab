"""The auditor: it tries to prove a claim wrong, ours or anybody's, from nothing but outputs."""

from discreet.audit.black_box import Audit, AuditFinding, Mechanism, audit
from discreet.audit.confidence_limits import Claimed
from discreet.audit.divergence_tests import hockey_stick_at_least, renyi_at_least
from discreet.audit.training_audit import (
    Errors,
    Guesses,
    TrainingAudit,
    audit_one_run,
    audit_steps,
    epsilon_from_errors,
    epsilon_from_guesses,
    epsilon_from_guesses_gdp,
    errors_of,
    guess,
    mu_from_errors,
    mu_from_guesses,
)

__all__ = [
    "Audit",
    "AuditFinding",
    "Claimed",
    "Errors",
    "Guesses",
    "Mechanism",
    "TrainingAudit",
    "audit",
    "audit_one_run",
    "audit_steps",
    "epsilon_from_errors",
    "epsilon_from_guesses",
    "epsilon_from_guesses_gdp",
    "errors_of",
    "guess",
    "hockey_stick_at_least",
    "mu_from_errors",
    "mu_from_guesses",
    "renyi_at_least",
]
