"""What a process that uses several GPUs must have in its environment; apart from what needs torch."""

from __future__ import annotations

SAFE_ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""NVLink multicast off: an object of it that a killed program leaves behind can take the switch out of service for
everybody on the host."""
