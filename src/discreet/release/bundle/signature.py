"""The signature of a bundle: over its manifest, which has the hash of every other file."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from discreet.errors import InvalidParameter
from discreet.release.bundle.manifest import MANIFEST, json_bytes, key_facts
from discreet.release.signatures import ALGORITHM, PublicKey, SigningKey

__all__ = ["SIGNATURE", "check_signature", "signature_file", "signer_of"]

SIGNATURE = "signature.json"


def signature_file(manifest: bytes, key: SigningKey) -> bytes:
    """Sign a manifest."""
    return _written(key.public, key.sign(manifest))


def _written(key: PublicKey, signature: bytes) -> bytes:
    facts = {
        "format": 1,
        "algorithm": ALGORITHM,
        "signs": MANIFEST,
        "public_key": key.text,
        "fingerprint": key.fingerprint,
        "signature": base64.b64encode(signature).decode(),
    }
    return json_bytes(facts)


def signer_of(manifest: Mapping[str, Any]) -> PublicKey | None:
    """Return the key that a manifest says it is signed with; None for a bundle without a signature."""
    said = manifest.get("signer")
    if said is None:
        return None
    key = PublicKey.from_text(said.get("public_key")) if isinstance(said, dict) else None
    if key is None or said != key_facts(key):
        raise InvalidParameter(f"{MANIFEST} names a key that is none")
    return key


def check_signature(
    files: Mapping[str, bytes], signer: PublicKey | None, trusted: PublicKey | str | None
) -> Iterator[str]:
    """Tell every way in which a bundle is not signed as it says, or not by whom the reader trusts."""
    held = files.get(SIGNATURE)
    if signer is None:
        if held is not None:
            yield f"{SIGNATURE} is there, but {MANIFEST} names no signer"
        elif trusted is not None:
            yield "it is not signed"
        return
    if held is None:
        yield f"{SIGNATURE} is missing: {MANIFEST} says that it is signed by {signer.fingerprint}"
        return
    signature = _signature(held)
    # Written again it must have the same bytes: nothing is in the file but a signature by the key of the manifest.
    if signature is None or held != _written(signer, signature):
        yield f"{SIGNATURE} is not a signature by the key that {MANIFEST} names"
    elif not signer.has_signed(files[MANIFEST], signature):
        yield f"the signature is not one of this {MANIFEST}"
    if trusted is not None and trusted not in (signer, signer.fingerprint):
        yield f"it is signed by another key: {signer.fingerprint}"


def _signature(held: bytes) -> bytes | None:
    try:
        return base64.b64decode(json.loads(held)["signature"].encode("ascii"), validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
        return None
