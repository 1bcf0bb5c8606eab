"""The auditor: it tries to prove a claim wrong, ours or anybody's, from nothing but outputs."""

from discreet.audit.auditing import Mechanism, audit
from discreet.audit.canaries import Errors, epsilon_from_errors, errors_of, mu_from_errors
from discreet.audit.claimed import Claimed
from discreet.audit.findings import Audit, AuditFinding
from discreet.audit.one_run import Guesses, epsilon_from_guesses, epsilon_from_guesses_gdp, guess, mu_from_guesses
from discreet.audit.testers import hockey_stick_at_least, renyi_at_least
from discreet.audit.training import TrainingAudit, audit_one_run, audit_steps

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
