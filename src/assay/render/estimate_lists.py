"""What `assay estimate` knows: models and devices in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.device import Device
from assay.render.estimate_words import rate_words, size_words
from assay.render.words import NOTHING


def known_view(models: Sequence[str], devices: Iterable[Device]) -> RenderableType:
    """Names of models, then devices with what matters most of each."""
    table = Table.grid(padding=(0, 1))
    for justify in ("left", "left", "right", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_row(*(Text(heading, style="bold") for heading in ("device", "", "memory", "read", "bf16")))
    for device in devices:
        table.add_row(device.id, device.name, *_facts(device))
    names = Columns([Text(name) for name in models if "/" not in name], padding=(0, 2), column_first=True)
    also = Text("also by the names of their repositories, such as deepseek-ai/deepseek-v3", style="dim")
    return Group(Text("models", style="bold"), names, also, Text(""), table)


def _facts(device: Device) -> list[str]:
    memory, read = device.fact("memory_bytes"), device.fact("memory_read_bytes_per_s")
    bf16 = device.fact("bf16_flop_per_s")
    return [
        size_words(memory.value) if memory else NOTHING,
        rate_words(read.value, "bytes/s") if read else NOTHING,
        rate_words(bf16.value, "flop/s") if bf16 else NOTHING,
    ]
