"""Tables that are elsewhere, as streams of Arrow batches. One source a file; each is imported only when it is used."""
