"""Layers that can be trained privately, and what to do about those that cannot."""
