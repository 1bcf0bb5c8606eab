"""Consistent post-processing: released tables made of whole, non-negative numbers that add up."""
