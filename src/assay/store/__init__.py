"""The campaign folder: the hash-chained record, its projections, the sample files."""
