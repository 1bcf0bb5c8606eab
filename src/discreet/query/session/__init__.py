"""The session: whom to protect, how much may be spent, and the one order in which anything is answered."""
