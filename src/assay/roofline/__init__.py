"""Predicted bounds of a model on a box: pure arithmetic over records."""
