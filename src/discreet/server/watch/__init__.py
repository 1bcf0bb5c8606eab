"""What keeps a server well: health, metrics, lines on standard error, reading the log of decisions, and copies."""
