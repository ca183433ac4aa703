"""Verbs that calculate without a server: estimate, search_layouts, known_models, known_devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.api import estimate_parts as parts

if TYPE_CHECKING:
    from assay.records.device import Device
    from assay.records.estimate import Host, Layout, Routing
    from assay.records.estimate_report import EstimateReport, Load
    from assay.roofline.search_report import SearchReport

CACHE_BYTES = {"bf16": 2.0, "fp8": 1.0}
"""Formats of the cache, and bytes of an element."""
CONVERTED = (
    "A format of weights other than the stored one means another checkpoint, whose answers differ (embedding, head, "
    "routers and indexers stay as stored); one that gives less than 5% more is not listed."
)
"""Assumed in every search."""
MANY = 100_000


def estimate(
    model: str,
    on: str,
    *,
    load: Load,
    layout: Layout | None = None,
    concurrencies: Sequence[int] = (),
    routing: Routing | None = None,
    cache_dtype: str = "bf16",
    memory_fraction: float = 0.9,
    measured: Path | None = None,
    devices: Path | None = None,
    host: Host | None = None,
) -> EstimateReport:
    """What a model would do on a box, from arithmetic alone: nothing is started.

    Args:
        model: a folder with config.json, a GGUF, or a known name.
        on: the box, as `8xRTX-PRO-6000`.
        load: what every request is (`assay.roofline.serving.load_of_requests`, `load_at_context`).
        layout: how the model is spread; None: the whole box under TP where that is possible.
        concurrencies: requests in flight; none: 1, 8, 64, 256, 2048 as far as the cache holds them.
        routing: how tokens spread over experts; None: evenly.
        cache_dtype: bf16 or fp8.
        memory_fraction: part of the memory that the engine may use.
        measured: a JSON file of ceilings measured here, which go before what is known.
        devices: a folder of more devices.
        host: how the engine schedules; None: as engines of today do by default.

    Raises:
        UsageError: model or box unknown, layout impossible, or it does not fit into the memory.
    """
    from assay import models
    from assay.records.estimate import Routing
    from assay.records.estimate_report import EstimateReport
    from assay.roofline import layout_choice
    from assay.roofline import memory as memories

    setting = parts.Setting(
        shape=models.load(model),
        box=parts.box_of(on, measured, devices),
        load=load,
        routing=routing or Routing(),
        cache_bytes=CACHE_BYTES[cache_dtype],
        memory_fraction=memory_fraction,
        host=host,
    )
    parts.refuse_routing_without_experts(setting)
    choice = parts.choose_layout(setting, layout)
    box = layout_choice.used(setting.box, choice.layout)
    memory = memories.budget(
        setting.shape,
        box,
        choice.layout,
        memory_fraction=memory_fraction,
        cache_bytes_per_element=setting.cache_bytes,
    )
    parts.refuse_what_does_not_fit(setting, choice.layout, memory)
    points = [
        parts.point_at(setting, box, choice.layout, memory, asked)
        for asked in concurrencies or parts.worth_showing(memory, load)
    ]
    return EstimateReport(
        model=parts.facts_of(setting),
        box=box,
        layout=choice.layout,
        layout_reason=choice.reason,
        load=load,
        routing=setting.routing,
        cache_dtype=cache_dtype,
        memory=memory,
        memory_fraction=memory_fraction,
        points=points,
        chosen=len(points) - 1,
        assumptions=parts.assumptions_of(setting, memory, points[-1]),
    )


def search_layouts(
    model: str,
    on: str,
    *,
    load: Load,
    gpus: int | None = None,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    routing: Routing | None = None,
    cache_dtype: str = "bf16",
    memory_fraction: float = 0.9,
    measured: Path | None = None,
    devices: Path | None = None,
    host: Host | None = None,
) -> SearchReport:
    """Layouts, and formats of weights that the device computes in, with the most expected output tokens/s first.

    Args:
        model: as of `estimate`, and so are the others.
        on: the box.
        load: whole requests.
        gpus: devices to use at most; None: all.
        ttft_s: bound on the time to the first token.
        tpot_s: bound on the time of an output token.
        routing: how tokens spread over experts.
        cache_dtype: bf16 or fp8.
        memory_fraction: part of the memory that the engine may use.
        measured: a JSON file of ceilings.
        devices: a folder of more devices.
        host: as of `estimate`.

    Raises:
        UsageError: model or box unknown, a load without prompts and answers, or nothing fits into the memory.
    """
    from assay import models
    from assay.errors import UsageError
    from assay.records.estimate import Routing
    from assay.roofline import search, search_report

    if load.input_tokens is None or load.output_tokens is None:
        raise UsageError("a search wants whole requests", hint="give --input and --output in place of --context")
    setting = parts.Setting(
        shape=models.load(model),
        box=parts.box_of(on, measured, devices),
        load=load,
        routing=routing or Routing(),
        cache_bytes=CACHE_BYTES[cache_dtype],
        memory_fraction=memory_fraction,
        host=host,
    )
    parts.refuse_routing_without_experts(setting)
    used = min(gpus or setting.box.count, setting.box.count)
    found = search.rank(
        setting.shape,
        setting.box,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        devices=used,
        memory_fraction=memory_fraction,
        cache_bytes_per_element=setting.cache_bytes,
        routing=setting.routing,
        host=host,
        limit=MANY,
    )
    parts.refuse_if_nothing_fits(setting, used, found=bool(found.candidates or found.misses))
    listed = search_report.worth_another_format(found.candidates)
    left_out = search_report.refused(
        setting.shape,
        setting.box,
        used,
        {(each.storage, each.layout) for each in found.candidates},
        found.misses,
        request_tokens=load.reserved_tokens,
        memory_fraction=memory_fraction,
        cache_bytes_per_element=setting.cache_bytes,
    )
    return search_report.SearchReport(
        model=parts.facts_of(setting),
        box=setting.box,
        devices=used,
        load=load,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        cache_dtype=cache_dtype,
        memory_fraction=memory_fraction,
        candidates=listed,
        misses=found.misses,
        refused=left_out,
        assumptions=[
            *parts.too_long(setting),
            *setting.shape.assumed,
            *search_report.layout_notes(setting.shape, listed),
            parts.scheduling_words(host),
            parts.EVERY_ESTIMATE,
            CONVERTED,
        ],
    )


def known_models() -> list[str]:
    """Names of models that need no file."""
    from assay import models

    return models.known()


def known_devices(devices: Path | None = None) -> list[Device]:
    """Every known device, by id.

    Args:
        devices: a folder of more.

    Raises:
        UsageError: the folder is missing, or a file in it is broken.
    """
    from assay.probes.devices import load_devices

    return [device for _, device in sorted(load_devices(devices).items())]


def write_page(report: EstimateReport, path: Path) -> None:
    """The estimate as one HTML file.

    Raises:
        RecordError: it cannot be written.
    """
    from assay.errors import RecordError
    from assay.render.estimate_page import estimate_html
    from assay.store.atomic import atomic_write

    try:
        atomic_write(path, estimate_html(report).encode())
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error}", hint="give another path with --html") from error
