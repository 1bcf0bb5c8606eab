"""The audit of this library by itself: what is audited, how, and the report."""

from discreet.lab.audit.self_audit.audit_run import Row, SelfAudit, self_audit
from discreet.lab.audit.self_audit.subjects import BlackBox, ListedSubject, Subject

__all__ = ["BlackBox", "ListedSubject", "Row", "SelfAudit", "Subject", "self_audit"]
