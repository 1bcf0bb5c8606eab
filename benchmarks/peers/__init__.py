"""One script for each subject and topic, run inside that subject's environment; it prints JSON lines."""
