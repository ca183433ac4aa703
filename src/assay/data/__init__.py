"""Data files: optimizations, texts, templates."""
