"""Sums of clipped per-example gradients, in one forward and one backward pass (book-keeping)."""
