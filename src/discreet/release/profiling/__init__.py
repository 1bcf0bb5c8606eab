"""Whole-table profiles: what is in every column, found and counted privately, for a price that is said before."""
