"""The auditor: statistical lower bounds on epsilon, from nothing but outputs."""

from discreet.lab.audit.black_box import audit
from discreet.lab.audit.confidence_limits import hockey_stick_at_least, renyi_at_least
from discreet.lab.audit.model_audit import audit_model
from discreet.lab.audit.training_audit import (
    Errors,
    Guesses,
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
    "Errors",
    "Guesses",
    "audit",
    "audit_model",
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
