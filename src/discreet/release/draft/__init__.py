"""A first plan from a file: what is inferred is shown to the custodian only, and is public once it is confirmed."""
