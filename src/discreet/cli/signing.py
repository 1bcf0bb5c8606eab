"""Keys on the command line: where they are, and what unlocks them."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from discreet.errors import InvalidParameter, NotAuthorised
from discreet.release import read_signing_key
from discreet.release.plan import ReleasePlan
from discreet.release.signatures import PublicKey, SigningKey, read_public_key

__all__ = ["PASSPHRASE", "new_passphrase", "public_half", "signing_key"]

PASSPHRASE = "DISCREET_KEY_PASSPHRASE"


def new_passphrase() -> str:
    """Ask for a new passphrase twice, or take it from the environment."""
    if said := os.environ.get(PASSPHRASE):
        return said
    said = _asked("passphrase: ")
    if _asked("again: ") != said:
        raise InvalidParameter("the two passphrases differ: nothing was written")
    return said


def signing_key(plan: ReleasePlan, file: Path | None) -> SigningKey | None:
    """Return the key that is named on the command line, or else in the plan."""
    named = file if file is not None else plan.output.key
    return None if named is None else _read(named)


def public_half(file: Path) -> PublicKey:
    """Return the public key of a file with either half."""
    with open(file, "rb") as opened:
        is_private = opened.read(11) == b"-----BEGIN "
    key = _read(file).public if is_private else read_public_key(file)
    if not isinstance(key, PublicKey):
        raise InvalidParameter("name a file with a key")
    return key


def _read(file: Path) -> SigningKey:
    try:
        return read_signing_key(file, passphrase=os.environ.get(PASSPHRASE))
    except NotAuthorised:
        return read_signing_key(file, passphrase=_asked(f"passphrase of {file.name}: "))


def _asked(what: str) -> str:
    if not sys.stdin.isatty():
        raise NotAuthorised(f"a passphrase is needed and there is no terminal to ask on: set {PASSPHRASE}")
    said = getpass.getpass(what, stream=sys.stderr)
    if not said:
        raise InvalidParameter("the passphrase must not be empty")
    return said
