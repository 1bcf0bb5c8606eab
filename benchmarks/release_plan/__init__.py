"""A plan of twelve tables over three real data sets, and how their rows are prepared."""
