"""Totals so far, day by day: one price for all days, and errors that grow with the logarithm of their number."""
