"""Answers about sensitive data, with a proven bound on what anyone can learn about one person."""
