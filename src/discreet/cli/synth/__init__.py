"""`discreet synth`: synthetic data on the command line, one file for each step."""
