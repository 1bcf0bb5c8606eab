"""Accounts and ways in: people and their tokens, a provider (OpenID Connect), and codes for notebooks."""
