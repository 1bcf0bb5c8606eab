"""Endpoints of programs that have no token yet: they ask for a code, and get a token when a person has allowed it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from discreet.server.app import ApiCall, Endpoint
from discreet.server.sign_in.device_flow import DeviceCodes

__all__ = ["DEVICE_ENDPOINTS"]


class _DeviceRequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class DeviceAskModel(_DeviceRequestModel):
    """What a program asks for: scopes, and what it calls itself."""

    scopes: Annotated[list[Annotated[str, Field(max_length=20)]], Field(min_length=1, max_length=10)] = ["read", "ask"]
    label: Annotated[str, Field(max_length=60)] = ""


class DeviceCodeModel(BaseModel):
    """Two codes: the long one is the program's, the short one is typed by a person on the page."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: int
    interval: int


class DeviceTokenAskModel(_DeviceRequestModel):
    """The long code."""

    device_code: Annotated[str, Field(min_length=1, max_length=100)]


class DeviceTokenModel(BaseModel):
    """A token, told this once, what a person allowed, and for how many seconds."""

    token: str
    scopes: list[str]
    expires_in: int


def _begin(call: ApiCall) -> Any:
    made = DeviceCodes(call.server.state, call.server.accounts).begin(call.body.label, call.body.scopes)
    return made | {"verification_uri": "/device"}


def _redeem(call: ApiCall) -> Any:
    return DeviceCodes(call.server.state, call.server.accounts).redeem(call.body.device_code)


DEVICE_ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/device",
        operation="device",
        handler=_begin,
        summary="Codes for a program that has no token: a person types the short one on /device",
        body=DeviceAskModel,
        answer=DeviceCodeModel,
        anybody="sign in",
    ),
    Endpoint(
        method="POST",
        path="/v1/device/token",
        operation="device",
        handler=_redeem,
        summary="The token, once a person has allowed it; until then a problem that says how it stands",
        body=DeviceTokenAskModel,
        answer=DeviceTokenModel,
        anybody="ask",
    ),
)
