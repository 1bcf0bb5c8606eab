"""Training plans: how examples are sampled, clipped and noised, and what that costs; no framework needed."""
