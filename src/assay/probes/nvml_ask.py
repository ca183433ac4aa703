"""Asking a management library call by call: what it will not say is None, with the reason."""

from __future__ import annotations

from typing import Any


class Asker:
    """Asks one GPU; keeps the reasons of what it does not answer."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self.nvml = nvml
        self.handle = handle
        self.missing: dict[str, str] = {}
        self.lost: str | None = None

    def ask(self, field: str, call: str, *arguments: Any) -> Any:
        """The answer of `nvml.<call>(handle, ...)`, else None with the reason under the field's name."""
        try:
            return getattr(self.nvml, call)(self.handle, *arguments)
        except AttributeError:
            self.missing[field] = f"this pynvml has no {call}"
        except self.nvml.NVMLError as error:
            self.missing[field] = str(error)
            if getattr(error, "value", None) in (self.nvml.NVML_ERROR_GPU_IS_LOST, self.nvml.NVML_ERROR_RESET_REQUIRED):
                self.lost = str(error)
        return None
