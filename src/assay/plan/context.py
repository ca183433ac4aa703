"""Whether the requests of a workload fit into the context that the server has, as far as that is known beforehand."""

from __future__ import annotations

from assay.plan import spellings
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.spec import MAIN_POINT, CampaignSpec

FLAG = {
    "llamacpp": "--ctx-size",
    "rehearsal": "--context-length",
    "sglang": "--context-length",
    "trtllm": "--max_seq_len",
    "vllm": "--max-model-len",
}
"""What each engine calls the longest sequence; llama.cpp's is shared out over its slots."""


def beyond_context(spec: CampaignSpec, build: EngineBuild, model: ModelFacts) -> str | None:
    """The longest request, where the server has no room for it; None where it has, or where nobody knows.

    A server refuses such requests (HTTP 400), or answers with fewer tokens than were asked for.
    """
    known = _context(spec, build, model)
    if known is None:
        return None
    context, whence = known
    main = spec.workload
    for name, load in [(MAIN_POINT, main), *((point.name, main.at(point)) for point in main.points)]:
        prompt, answer = load.prompt_tokens[1], load.output_tokens[1]
        if prompt + answer > context:
            where = "" if name == MAIN_POINT else f" at the point {name}"
            shared = f", {load.shared_prefix_tokens:,} of them shared," if load.shared_prefix_tokens else ""
            return (
                f"workload: prompts of up to {prompt:,} tokens{shared} and answers of up to {answer:,}{where} need "
                f"{prompt + answer:,} tokens of context, and the server has {context:,} ({whence})"
            )
    return None


def _context(spec: CampaignSpec, build: EngineBuild, model: ModelFacts) -> tuple[int, str] | None:
    """Tokens that one request may have, and who says so."""
    flags, flag = spec.target.flags, FLAG.get(spec.target.engine)
    given = spellings.value(build, flags, flag) if flag else None
    context, whence = model.context_length, "by the model"
    if given is None and flag is not None and any(name in flags for name in spellings.same_side(build, flag)):
        return None  # "auto"
    if given is not None and given != 0:
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            return None  # left to the engine ("auto", -1), or no number to it
        context, whence = given, f"by {flag}"
    if context is None:
        return None
    slots = spellings.value(build, flags, "--parallel") if spec.target.engine == "llamacpp" else None
    if isinstance(slots, int) and slots > 1 and spellings.value(build, flags, "--kv-unified") is not True:
        return context // slots, f"{context:,} {whence}, over {slots} slots (--parallel)"
    return context, whence
