"""How each kind of layer tells the norms of its gradients, and their weighted sums."""
