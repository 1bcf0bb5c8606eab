"""One file for each group of commands: read the words, call one function, show what came."""
