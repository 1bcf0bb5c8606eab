"""Draft plans: what is inferred from a file is shown to the custodian only, and public once confirmed."""
