"""All endpoints of the HTTP API: each chapter beside this one lists its own."""

from __future__ import annotations

from discreet.server.approvals_api import APPROVAL_ENDPOINTS
from discreet.server.question_api import QUESTION_ENDPOINTS
from discreet.server.saved_api import SAVED_ENDPOINTS
from discreet.server.sign_in.device_api import DEVICE_ENDPOINTS
from discreet.server.sign_in.people_api import PEOPLE_ENDPOINTS
from discreet.server.watch.operations_api import OPERATIONS_ENDPOINTS
from discreet.server.work.work_api import WORK_ENDPOINTS

__all__ = ["ENDPOINTS"]

ENDPOINTS = (
    *QUESTION_ENDPOINTS,
    *APPROVAL_ENDPOINTS,
    *SAVED_ENDPOINTS,
    *WORK_ENDPOINTS,
    *PEOPLE_ENDPOINTS,
    *OPERATIONS_ENDPOINTS,
    *DEVICE_ENDPOINTS,
)
