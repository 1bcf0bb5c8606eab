"""Networks that guess what is under the noise."""
