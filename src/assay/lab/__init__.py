"""What kernels can do on this GPU at a model's shapes: the expert-GEMM lab, what-if prices, the fused-MoE tuner."""
