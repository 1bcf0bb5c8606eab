"""The audit of this library by itself: what is audited, how, and the report."""

from discreet.lab.audit.self_audit.audit_run import self_audit

__all__ = ["self_audit"]
