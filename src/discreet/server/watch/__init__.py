"""What watches a server: health, metrics, lines on standard error, and reading the log of decisions."""
