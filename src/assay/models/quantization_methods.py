"""One reader for each quantization method: what it stores weights in, and which modules it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assay.errors import UsageError
from assay.models.config import Config
from assay.models.storages import ALGORITHMS, FP8, compute_of, fp8_blocks, integers, mxfp4, nvfp4
from assay.records.model_shape import Compute, Part, Storage

SKIPPED_KEYS = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
WIDEST = 8
BLOCK_SIDES = 2
NVFP4_GROUP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What one quantization_config says."""

    default: Storage | None
    skipped: list[str] = field(default_factory=list)
    parts: frozenset[Part] | None = None
    """What is quantized when it is less than usual."""
    single: Mapping[str, Storage] = field(default_factory=dict)
    lists_head: bool = False
    """The head is quantized unless it is listed."""


def _skipped(told: Config) -> list[str]:
    return [name for key in SKIPPED_KEYS for name in told.words(key) or []]


def _fp8(told: Config) -> Method:
    block = told.wholes("weight_block_size")
    if block is None:
        return Method(default=FP8, skipped=_skipped(told))
    if len(block) != BLOCK_SIDES or min(block) < 1:
        raise told.wrong("weight_block_size", "rows and columns of a block, as [128, 128]")
    return Method(default=fp8_blocks(*block), skipped=_skipped(told))


def _mxfp4(told: Config) -> Method:
    return Method(default=mxfp4(), skipped=_skipped(told), parts=frozenset({"routed_experts"}))


def _grouped_integers(told: Config) -> Method:
    """AWQ, GPTQ, AutoRound: both write zero points, symmetric or not."""
    bits = told.whole("bits", "w_bit", most=WIDEST)
    if bits is None:
        raise _missing(told, "bits")
    group = told.whole("group_size", "q_group_size", least=-1) or 0
    zeros = told.flag("zero_point") is not False
    return Method(default=integers(bits, group if group > 0 else None, zeros=zeros), skipped=_skipped(told))


def _bitsandbytes(told: Config) -> Method:
    """NF4 or FP4: an FP32 maximum for 64 weights, or an 8-bit one where scales are quantized too.

    Source: QLoRA, arXiv 2305.14314, section 3 (0.5 and 0.127 bits a weight).
    """
    if told.flag("load_in_8bit"):
        return Method(default=Storage(name="bnb-int8", bits_per_weight=8, compute="int8"), skipped=_skipped(told))
    if not told.flag("load_in_4bit"):
        raise _missing(told, "load_in_4bit")
    double = told.flag("bnb_4bit_use_double_quant")
    bits = 4 + 8 / 64 + 32 / (64 * 256) if double else 4 + 32 / 64
    kind = told.text("bnb_4bit_quant_type") or "fp4"
    return Method(default=Storage(name=f"bnb-{kind[:8]}", bits_per_weight=bits), skipped=_skipped(told))


def _algorithm(told: Config) -> Storage:
    name = told.text("quant_algo") or ""
    if name.upper() not in ALGORITHMS:
        raise told.wrong("quant_algo", f"one of {', '.join(sorted(ALGORITHMS))}, MIXED_PRECISION")
    return ALGORITHMS[name.upper()](told.whole("group_size") or 128)


def _modelopt(told: Config) -> Method:
    """`ignore` and `exclude_modules` are the two spellings of what is left alone; mixed models list each module."""
    single = {}
    modules = told.child("quantized_layers")
    for name in modules.data if modules else ():
        if modules and (own := modules.child(name)):
            single[name] = _algorithm(own)
    mixed = (told.text("quant_algo") or "").upper() == "MIXED_PRECISION"
    return Method(
        default=None if mixed else _algorithm(told), skipped=_skipped(told), single=single, lists_head=not mixed
    )


def _compressed_tensors(told: Config) -> Method:
    """Groups of modules; the first that aims at linear layers is the default, named modules have their own."""
    default: Storage | None = None
    single: dict[str, Storage] = {}
    for group in told.children("config_groups"):
        storage = _group_storage(group)
        targets = group.words("targets") or ["Linear"]
        names = [name for name in targets if "." in name and not name.startswith("re:")]
        if default is None and len(names) < len(targets):
            default = storage
        single.update(dict.fromkeys(names, storage))
    if default is None and not single:
        raise _missing(told, "config_groups")
    return Method(default=default, skipped=_skipped(told), single=single, lists_head=True)


def _group_storage(group: Config) -> Storage:
    weights = group.child("weights")
    if weights is None:
        raise _missing(group, "weights")
    bits, sort = weights.whole("num_bits", most=WIDEST), weights.text("type") or "int"
    if bits is None:
        raise _missing(weights, "num_bits")
    compute = compute_of(bits, _activation(group.child("input_activations")))
    size = weights.whole("group_size", least=-1)
    size = size if size and size > 0 else None
    if sort != "float":
        return integers(bits, size, zeros=weights.flag("symmetric") is False, compute=compute)
    return _float_storage(weights, bits, size, compute)


def _float_storage(weights: Config, bits: int, group: int | None, compute: Compute) -> Storage:
    if bits < WIDEST:
        return nvfp4(compute) if group == NVFP4_GROUP else mxfp4(compute)
    block = weights.wholes("block_structure") or []
    if len(block) == BLOCK_SIDES and min(block) > 0:
        return fp8_blocks(*block)
    return FP8 if compute == "fp8" else FP8.model_copy(update={"compute": compute})


def _activation(told: Config | None) -> tuple[int, str] | None:
    if told is None or not told.data:
        return None
    bits = told.whole("num_bits")
    return None if bits is None else (bits, told.text("type") or "int")


def _none(told: Config) -> Method:
    """No method is named: groups tell it (ModelOpt, compressed-tensors), or nothing does."""
    if "config_groups" in told:
        return _compressed_tensors(told)
    return unknown_method(told)


def unknown_method(told: Config) -> Method:
    """A method that is not known is read by its bits, and that is said.

    Raises:
        UsageError: it has no bits either.
    """
    name = (told.text("quant_method") or "without a name")[:40]
    bits = told.whole("bits", "w_bit", "weight_bits", "nbits", most=WIDEST)
    if bits is None:
        raise UsageError(
            f"{told.file}: {told.prefix}quant_method {name!r} is not known, and no key gives the bits of a weight",
            hint=f"known are {', '.join(sorted(METHODS))}; add `bits` and `group_size` to read it as grouped integers",
        )
    told.assume(f"the quantization {name!r} is not known: read as {bits}-bit integers in groups")
    return _grouped_integers(Config({**told.data, "bits": bits}, told.file, prefix=told.prefix, assumed=told.assumed))


def _missing(told: Config, key: str) -> UsageError:
    return UsageError(
        f"{told.file} has no {told.prefix}{key}, and it cannot be assumed",
        hint="fetch config.json (and hf_quant_config.json) of the quantized model again",
    )


METHODS: dict[str, Callable[[Config], Method]] = {
    "fp8": _fp8,
    "fbgemm-fp8": _fp8,
    "mxfp4": _mxfp4,
    "awq": _grouped_integers,
    "gptq": _grouped_integers,
    "auto-round": _grouped_integers,
    "bitsandbytes": _bitsandbytes,
    "modelopt": _modelopt,
    "modelopt-fp4": _modelopt,
    "compressed-tensors": _compressed_tensors,
    "none": _none,
}
