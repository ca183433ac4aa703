"""Intervals and tests; arrays in, values with uncertainty out."""
