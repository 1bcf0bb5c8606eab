"""`discreet attack`: the attack lab on the command line, one file for each attack."""
