"""Declarations in TOML files: documents that name the line of every mistake."""
