"""Sums of clipped gradients, one forward and one backward pass."""
