"""The matrix mechanism: linear queries, the sums that are measured for them, and the search for these."""
