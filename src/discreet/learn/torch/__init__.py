"""DP-SGD for PyTorch."""
