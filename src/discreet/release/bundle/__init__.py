"""Bundles: what is published, in one folder that explains, defends and verifies itself."""

from __future__ import annotations

from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.bundle.verification import BundleFinding, Verified, verify_bundle

__all__ = ["BundleFinding", "Verified", "verify_bundle", "write_bundle"]
