"""Tables and columns of any library, by one total rule: what a cell becomes depends on its type and on itself alone."""
