"""Where the data live. One engine a file; each is imported only when it is used."""
