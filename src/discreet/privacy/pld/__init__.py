"""Privacy-loss distributions: numerical accounts with a proven upper and a proven lower end."""
