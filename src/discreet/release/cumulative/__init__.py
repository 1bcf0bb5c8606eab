"""Running totals, day by day (continual release): one price for all days, errors logarithmic in their number."""
