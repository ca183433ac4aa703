"""Programs that run on the GPU, each in a process of its own; they need PyTorch, and nothing else of ours."""
