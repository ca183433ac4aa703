"""Assay: LLM inference optimization from research to execution.

The public names are the verbs of `assay.api`, loaded when they are first used: importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.api.assess import assess
    from assay.api.demo import demo
    from assay.api.init import init, init_from_command, init_from_url
    from assay.api.inspect import export, next_step, report, status, todo, verify
    from assay.api.plan import plan
    from assay.api.run import run

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "assess",
    "demo",
    "export",
    "init",
    "init_from_command",
    "init_from_url",
    "next_step",
    "plan",
    "report",
    "run",
    "status",
    "todo",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from assay import api  # noqa: PLC0415 - the whole point

        return getattr(api, name)
    raise AttributeError(f"module 'assay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
