"""One kit for every HTML page and every drawing on it: no page loads anything, runs anything or trusts a text."""
