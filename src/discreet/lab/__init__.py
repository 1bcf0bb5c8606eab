"""The laboratory: attacks, audits, checks by brute force, evaluation of synthetic data, the demo."""
