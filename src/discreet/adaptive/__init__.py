"""Mechanisms that look at the data: local and smooth sensitivity, noise that may follow it, tests of stability."""
