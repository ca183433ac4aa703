"""The fused-MoE tuner: which tiles an engine's kernel is best launched with, found with few measurements."""
