"""What whoever runs a server declares of a provider that people sign in by: a TOML file, read once, at the start."""

from __future__ import annotations

import ipaddress
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import urlsplit

from discreet.errors import InvalidParameter, Refused
from discreet.names import check_name
from discreet.server.accounts import AccountRole

__all__ = ["OidcGroup", "OidcSettings", "is_loopback_address", "read_oidc_settings"]

_WORDS = frozenset(
    {
        "issuer",
        "client_id",
        "client_secret_file",
        "client_secret_variable",
        "button",
        "scope",
        "name_claim",
        "create",
        "groups_claim",
        "groups",
        "endpoint_hosts",
    }
)
# Owners are made here, and agents are programs: no provider makes one.
_BY_PROVIDER = frozenset(AccountRole) - {AccountRole.OWNER, AccountRole.AGENT}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OidcGroup:
    """What members of a group of the provider are here."""

    name: str
    role: AccountRole
    datasets: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """A provider, and who of its people gets in."""

    issuer: str
    client_id: str
    client_secret: str | None
    button: str = "Sign in with your organisation"
    scope: str = "openid profile"
    name_claim: str = "preferred_username"
    create: AccountRole | None = None  # what people become who are unknown and in no group; None refuses them
    groups_claim: str = "groups"
    groups: tuple[OidcGroup, ...] = ()
    endpoint_hosts: tuple[str, ...] = ()  # hosts of the provider beside that of the issuer

    def __post_init__(self) -> None:
        said = urlsplit(self.issuer)
        plain = not (said.query or said.fragment or said.username or said.password) and said.hostname
        if not plain or not (said.scheme == "https" or (said.scheme == "http" and is_loopback_address(said.hostname))):
            raise InvalidParameter("the issuer of --oidc is an https address, without a query")
        if not self.client_id:
            raise InvalidParameter("--oidc needs a client_id")
        if "openid" not in self.scope.split():
            raise InvalidParameter("the scope of --oidc has openid among its words")


def is_loopback_address(host: str | None) -> bool:
    """Tell whether a host of an address is this machine: by its number, since a name can be made to point elsewhere."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def read_oidc_settings(file: Path) -> OidcSettings:
    """Read the file of a provider; the secret comes from a file of its own or from the environment."""
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidParameter(f"{file.name} cannot be read: {type(error).__name__}") from None
    unknown = sorted(set(said) - _WORDS)
    if unknown:
        raise InvalidParameter(f"{file.name}: there is no setting {', '.join(unknown)}; there are {', '.join(_WORDS)}")
    texts = {name: _text(said, name) for name in ("issuer", "client_id")}
    more = {name: _text(said, name) for name in ("button", "scope", "name_claim", "groups_claim") if name in said}
    create = None if "create" not in said else _role(said["create"])
    hosts = tuple(_texts(said.get("endpoint_hosts", [])))
    groups = tuple(_group(name, rule) for name, rule in said.get("groups", {}).items())
    secret = _secret(file.parent, said)
    return OidcSettings(**texts, client_secret=secret, create=create, groups=groups, endpoint_hosts=hosts, **more)


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 500:
        raise InvalidParameter(f"--oidc needs {name}, a text")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise InvalidParameter("endpoint_hosts and datasets of --oidc are lists of texts")
    return value


def _role(value: Any) -> AccountRole:
    found = next((one for one in _BY_PROVIDER if one.value == value), None)
    if found is None:
        allowed = ", ".join(sorted(one.value for one in _BY_PROVIDER))
        raise InvalidParameter(f"people who come by a provider become one of {allowed}: owners are made here")
    return found


def _group(name: str, rule: Any) -> OidcGroup:
    if not isinstance(rule, dict) or set(rule) - {"role", "datasets"}:
        raise InvalidParameter(f"the group {name} of --oidc has a role and datasets")
    datasets = tuple(check_name(one, name="dataset") for one in _texts(rule.get("datasets", [])))
    return OidcGroup(name=name, role=_role(rule.get("role")), datasets=datasets)


def _secret(folder: Path, said: Mapping[str, Any]) -> str | None:
    if "client_secret_file" in said and "client_secret_variable" in said:
        raise InvalidParameter("say client_secret_file or client_secret_variable, not both")
    if "client_secret_variable" in said:
        found = os.environ.get(_text(said, "client_secret_variable"), "")
    elif "client_secret_file" in said:
        found = _private_text(folder / _text(said, "client_secret_file"))
    else:
        return None  # A public client: the proof is that of PKCE alone.
    if not found.strip():
        raise InvalidParameter("the client secret of --oidc is empty")
    return found.strip()


def _private_text(file: Path) -> str:
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise Refused(f"others may read {file.name}, the client secret", way_out="chmod 600")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file.name}, the client secret, cannot be read") from None
