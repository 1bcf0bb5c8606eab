"""A key that signs bundles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.release import PublicKey

__all__ = ["KeyAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAnswer:
    """A public key, its fingerprint, and where its files are if they were just made."""

    fingerprint: str
    public_key: str  # base64
    private_file: str | None
    public_file: str | None

    @classmethod
    def of(cls, key: PublicKey, *, private: str | None = None, public: str | None = None) -> KeyAnswer:
        """Describe a key."""
        return cls(fingerprint=key.fingerprint, public_key=key.text, private_file=private, public_file=public)

    def blocks(self) -> Iterator[Block]:
        yield f"fingerprint  {self.fingerprint}"
        yield f"public key   {self.public_key}"
        if self.private_file is not None:
            yield f"private key in {self.private_file}: only you may read it, and there is no other copy"
            yield f"public key in {self.public_file}: make it known where readers trust it"
