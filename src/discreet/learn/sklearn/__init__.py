"""Estimators in the shape of scikit-learn, each with a proven price."""
