"""The optimizations Assay knows, as data, and the improvement documents written from them."""
