"""GPU kernels of ours (Triton); imported only where a GPU is used, also inside an engine's process."""
