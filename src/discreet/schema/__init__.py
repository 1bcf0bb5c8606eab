"""Declarations: of columns, for all floors above, and in TOML files, with the line of every mistake."""
