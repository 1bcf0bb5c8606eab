"""Work that is more than a question: plans, profiles, synthetic rows and models, each priced, tried and done here."""
