"""Ed25519 keys and signatures: who vouches for a bundle (RFC 8032).

A private key is a PEM file (PKCS #8) that only its owner may read, locked with a passphrase if one is given. A public
key is one line of text, and its fingerprint is short enough to print in a report, or to read out over a telephone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter, NotAuthorised, Refused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["ALGORITHM", "PublicKey", "SigningKey", "new_key", "read_public_key", "read_signing_key"]

ALGORITHM = "Ed25519"
_CONTEXT = b"discreet bundle signature v1\n"  # A signature of ours is good for nothing else.
_MARK = "discreet-ed25519"
_FINGERPRINT = re.compile(r"(?:ed25519:)?([a-z2-7]{4}(?:-?[a-z2-7]{4}){7})", re.IGNORECASE | re.ASCII)
_LONGEST = 16_384  # Bytes of a key file.
_LONGEST_PASSPHRASE = 1_023  # Bytes that OpenSSL takes.


@final
@dataclass(frozen=True, slots=True)
class PublicKey:
    """The half of a key that everybody may have: 32 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.raw, bytes) or len(self.raw) != 32:
            raise InvalidParameter("a public Ed25519 key has 32 bytes")

    @property
    def fingerprint(self) -> str:
        """160 bits of the SHA-256 of the key, in groups of four: as hard to meet by another key as it is short."""
        digest = hashlib.sha256(_MARK.encode() + b"\0" + self.raw).digest()[:20]
        letters = base64.b32encode(digest).decode().lower()
        return "ed25519:" + "-".join(letters[at : at + 4] for at in range(0, 32, 4))

    @property
    def text(self) -> str:
        """The key as base64."""
        return base64.b64encode(self.raw).decode()

    @property
    def line(self) -> str:
        """The key as the one line of a public key file."""
        return f"{_MARK} {self.text} {self.fingerprint}\n"

    @classmethod
    def from_text(cls, text: object) -> PublicKey:
        """Read what `text` wrote, and nothing that only decodes to the same bytes."""
        try:
            key = cls(base64.b64decode(text.encode("ascii"), validate=True)) if isinstance(text, str) else None
        except (UnicodeEncodeError, binascii.Error):
            key = None
        if key is None or key.text != text:
            raise InvalidParameter("this is no public Ed25519 key")
        return key

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Whether the owner of this key signed a message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, _CONTEXT + message)
        except (InvalidSignature, ValueError):
            return False
        return True


@final
class SigningKey:
    """A private key, as it was read. It is never shown and never copied; what it signs has the same bytes each time."""

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Sign a message."""
        return self._key.sign(_CONTEXT + message)

    def __repr__(self) -> str:
        return f"SigningKey({self.public.fingerprint})"

    def __reduce__(self) -> str:
        raise TypeError("a private key is not copied")


def new_key(path: str | Path, *, passphrase: str | None = None) -> PublicKey:
    """Make a key: the private half in `path`, which only its owner may read, the public one beside it as `.pub`.

    Args:
        path: Where the private half is written; nothing may be there yet.
        passphrase: Locks the private half; without it the file alone is enough to sign.

    Returns:
        The public half; people compare its `fingerprint`.

    Raises:
        InvalidParameter: If one of the two files is there already.
        Refused: On a system where a file cannot be kept to its owner.

    Examples:
        >>> key = dp.release.new_key("office.key")
        >>> dp.release.read_signing_key("office.key").public == key
        True
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    _refuse_without_owners()
    place = Path(path)
    public = place.with_name(f"{place.name}.pub")
    secret = None if passphrase is None else _passphrase(passphrase)
    if any(each.exists() or each.is_symlink() for each in (place, public)):
        raise InvalidParameter(f"{place.name} or {public.name} is there already: a key is never written over")
    key = Ed25519PrivateKey.generate()
    lock = serialization.NoEncryption() if secret is None else serialization.BestAvailableEncryption(secret)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    _write_new(place, pem, 0o600)
    signing = SigningKey(key)
    _write_new(public, signing.public.line.encode(), 0o644)
    return signing.public


def _refuse_without_owners() -> None:
    if not hasattr(os, "fchmod") or not hasattr(os, "geteuid"):
        raise Refused(
            "a private key cannot be made on this system",
            reason="its file must be for its owner's eyes only, and permissions are those of Linux and macOS",
            way_out="make it on Linux, macOS, or the Linux subsystem of Windows (WSL 2)",
        )


def _passphrase(said: str) -> bytes:
    try:
        secret = said.encode()
    except UnicodeEncodeError:
        raise InvalidParameter("a passphrase is text: this one has bytes that are none") from None
    if not secret:
        raise InvalidParameter("the passphrase must not be empty: give one, or None")
    if len(secret) > _LONGEST_PASSPHRASE:
        raise InvalidParameter(f"a passphrase has at most {_LONGEST_PASSPHRASE:,} bytes")
    return secret


def _write_new(place: Path, held: bytes, mode: int) -> None:
    file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(file, "wb") as opened:
        os.fchmod(opened.fileno(), mode)  # Whatever the mask of the process takes or leaves.
        opened.write(held)
        opened.flush()
        os.fsync(opened.fileno())


def read_signing_key(path: str | Path, *, passphrase: str | None = None) -> SigningKey:
    """Read a private key; one that others may read, or that needs another passphrase, is refused.

    Args:
        path: The file, as `new_key` or `discreet key new` wrote it.
        passphrase: What it is locked with, if it is.

    Returns:
        The key, for `publish(…, key=…)`. It never prints.

    Raises:
        NotAuthorised: If the key is locked and no passphrase is given.
        InvalidParameter: If this is no such key, or the passphrase is another one.
        Refused: If others may read the file.

    Examples:
        >>> key = dp.release.new_key("office.key", passphrase="long and secret")
        >>> dp.release.read_signing_key("office.key", passphrase="long and secret").public == key
        True
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    pem = _private_bytes(Path(path))
    locked = b"BEGIN ENCRYPTED PRIVATE KEY" in pem
    if locked and not passphrase:
        raise NotAuthorised(f"the key {Path(path).name} is locked: give its passphrase")
    try:
        key = load_pem_private_key(pem, _passphrase(passphrase) if locked and passphrase else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "its passphrase is another one" if locked else "it is damaged, or no key that `discreet key new` wrote"
        raise InvalidParameter(f"the key {Path(path).name} cannot be read: {wrong}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(f"{Path(path).name} is a key of another kind: bundles are signed with {ALGORITHM}")
    return SigningKey(key)


def _private_bytes(path: Path) -> bytes:
    """Read a file that nobody but its owner may read. The file that is looked at is the one that is read."""
    with open(path, "rb") as opened:
        state = os.fstat(opened.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise InvalidParameter(f"{path.name} is no plain file")
        if state.st_mode & 0o077:
            raise Refused(
                f"others may read the private key {path.name}",
                reason="whoever reads it can sign in your name",
                way_out=f"chmod 600 {path.name}; if somebody may have read it, make a new key",
            )
        return opened.read(_LONGEST)


def read_public_key(said: str | Path) -> PublicKey | str:
    """Read whom somebody trusts: a public key file, or a fingerprint, which is returned in its one form."""
    written = _FINGERPRINT.fullmatch(str(said).strip())
    if written:
        letters = written[1].replace("-", "").lower()
        return "ed25519:" + "-".join(letters[at : at + 4] for at in range(0, 32, 4))
    path = Path(said)
    if not path.is_file():
        raise InvalidParameter("name a public key file, or a whole fingerprint such as `discreet key show` prints")
    parts = path.read_bytes()[:_LONGEST].decode("ascii", "replace").split()
    if len(parts) < 2 or parts[0] != _MARK:
        beside = path.with_name(f"{path.name}.pub")
        meant = f"; did you mean {beside.name}?" if beside.is_file() else ""
        raise InvalidParameter(f"{path.name} is no public key file: such a file begins with {_MARK}{meant}")
    key = PublicKey.from_text(parts[1])
    if parts[2:3] not in ([], [key.fingerprint]):
        raise InvalidParameter(f"{path.name} names a fingerprint that is not the one of its key")
    return key
