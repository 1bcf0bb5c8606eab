"""The audit of this library by itself: what is audited, how, and the report."""

from discreet.audit.own.auditing import self_audit
from discreet.audit.own.report import Row, SelfAudit
from discreet.audit.own.subject import BlackBox, ListedSubject, Subject

__all__ = ["BlackBox", "ListedSubject", "Row", "SelfAudit", "Subject", "self_audit"]
