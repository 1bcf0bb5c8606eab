"""Running totals, day by day (continual release): one price for all days, and errors that grow with the logarithm of their number."""
