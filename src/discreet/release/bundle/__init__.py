"""Bundles: what is published, in one folder that explains, defends and verifies itself."""
