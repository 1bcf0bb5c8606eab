"""From SQL to a question: an allow-list, facts by rule, and refusals that say where, why and what to do instead."""

from __future__ import annotations

from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.parse.select import Reading, read

__all__ = ["PrivacyOptions", "Reading", "read"]
