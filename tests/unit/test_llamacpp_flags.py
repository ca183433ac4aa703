"""Flags against the build's help, and against what the server says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from assay.engines.flag_check import problem
from assay.engines.llamacpp_flags import canonical, refuse_owned, rendered
from assay.engines.llamacpp_help import parse_help
from assay.engines.llamacpp_in_force import contradiction
from assay.engines.llamacpp_log import facts, fallbacks
from assay.errors import UsageError
from assay.records.base import Flags
from assay.records.machine import EngineBuild

HELP = """\
-m,    --model FNAME                    model path to load
--port PORT                             port to listen on
-t,    --threads N                      number of threads (default: -1)
-lm,   --load-mode MODE                 how the model is loaded (default: auto)
                                        - mmap: map it
                                        - mlock: keep it in RAM
--kind one,two,three                    comma-separated list of kinds (default: one)
--levels N                              how much is said. Values:
                                        - quiet: nothing
-fa,   --flash-attn [on|off|auto]       flash attention (default: 'auto')
-cb,   --batching, -nocb, --no-batching whether to batch (default: enabled)
--repack, -nr, --no-repack              whether to repack (default: enabled)
--no-host                               bypass the host buffer
--old N                                 the argument has been removed. use --new
"""
BUILD = EngineBuild(engine="llamacpp", argv=["x"], version="build 1", source="test", flags=parse_help(HELP))
READY = {"total_slots": 4, "log.n_ctx_slot": 512, "log.kv_unified": "false", "log.n_threads": 2}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"--repack": True}, ["--repack"]),
        ({"--repack": False}, ["--no-repack"]),
        ({"-nr": False}, ["--repack"]),
        ({"-cb": False}, ["--no-batching"]),
        ({"-nocb": False}, ["--batching"]),
        ({"--no-host": False}, []),
        ({"-t": 3, "-fa": "on"}, ["-t", "3", "-fa", "on"]),
    ],
)
def test_a_switch_set_to_false_is_written_as_its_opposite(flags: Flags, words: list[str]) -> None:
    assert rendered(BUILD, flags) == words


def test_a_negative_spelling_becomes_its_positive_one_set_to_false() -> None:
    found = canonical(BUILD, {"-nr": True, "-nocb": True, "-t": 3, "--no-host": True, "--unknown": "x"})
    assert found == {"--repack": False, "--batching": False, "--threads": 3, "--no-host": True, "--unknown": "x"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"--thread": 3}, "no flag --thread (nearest: --threads"),
        ({"--old": 3}, "use --new"),
        ({"--flash-attn": "perhaps"}, "one of on, off, auto"),
        ({"--flash-attn": True}, "needs a value"),
        ({"--load-mode": "dma"}, "one of auto, mmap, mlock"),
        ({"--kind": "one,four"}, "one of one, two, three"),
        ({"--repack": 4}, "takes no value"),
    ],
)
def test_what_the_build_does_not_take_is_refused_with_the_reason(flags: Flags, words: str) -> None:
    assert words in str(problem(BUILD, flags))


@pytest.mark.parametrize(
    "flags", [{"--kind": "three,one"}, {"--load-mode": "auto"}, {"--levels": 5}, {"--repack": False}, {"-t": -1}]
)
def test_what_the_build_takes_is_not_refused(flags: Flags) -> None:
    assert problem(BUILD, flags) is None


def test_a_flag_of_assays_own_is_refused_under_any_spelling() -> None:
    with pytest.raises(UsageError, match="--port, -m"):
        refuse_owned(BUILD, {"--port": 1, "-m": "x", "-t": 1})


@pytest.mark.parametrize(
    ("flags", "effective", "words"),
    [
        ({"--parallel": 7}, READY, "total_slots = 4"),
        ({"-t": 8}, READY, "log.n_threads = 2"),
        ({"--ctx-size": 4096}, READY, "512 tokens of context, 1024 were asked for"),
        ({"--kv-unified": True}, READY, "log.kv_unified = false"),
        ({"--no-kv-unified": True}, {"log.kv_unified": "true"}, "log.kv_unified = true"),
        ({"--spec-type": "ngram-simple"}, {"slots.speculative": False}, "slots.speculative = false"),
        ({"--spec-type": "none"}, {"slots.speculative": True}, "slots.speculative = true"),
        ({"--flash-attn": "on"}, {"log.flash_attention": "disabled"}, "log.flash_attention = disabled"),
    ],
)
def test_a_flag_that_the_server_reports_otherwise_is_not_in_force(
    flags: Flags, effective: dict[str, Any], words: str
) -> None:
    assert words in str(contradiction(flags, effective, []))


@pytest.mark.parametrize(
    ("flags", "effective"),
    [
        ({"--parallel": 4, "--threads": 2, "--ctx-size": 2000}, READY),
        ({"--parallel": -1, "--threads": 0, "--ctx-size": 0, "--flash-attn": "auto"}, READY),
        ({"--ctx-size": 512}, {**READY, "log.kv_unified": "true"}),
        ({"--kv-unified": False}, READY),
        ({"--spec-type": "ngram-simple"}, {"slots.speculative": True, "props.speculative.types": "none"}),
        ({"--spec-type": "ngram-simple", "--parallel": 9}, {}),
    ],
)
def test_a_flag_is_not_accused_without_the_servers_own_word(flags: Flags, effective: dict[str, Any]) -> None:
    assert contradiction(flags, effective, []) is None


LOG = """\
warning: no usable accelerator found, --gpu-layers option will be ignored
0.00.001.000 W srv init: no API key is set and CORS allows all origins, ignoring that
0.00.002.000 I srv init: caches will be ignored for this reason
0.00.003.000 W warning: failed to mlock 1000-byte buffer (after previously locking 0 bytes): Cannot allocate memory
0.00.004.000 W cmn set_process_: failed to set process priority 3 : Permission denied (13)
warn: failed to set affinity mask 0x7f01 : Invalid argument (22)
warn: failed to set affinity mask 0x7f02 : Invalid argument (22)
0.00.005.000 W srv init: --cache-idle-slots requires --cache-ram, disabling
0.00.006.000 E srv load_model: failed to initialize drafts: draft-simple requires a draft context
0.00.007.000 I llama threadpool init, n_threads = 6
0.00.008.000 I srv load_model: initializing, n_slots = 4, n_ctx_slot = 512, kv_unified = 'false'
"""


def test_each_fallback_is_found_once_and_advice_is_none() -> None:
    found = fallbacks(LOG)
    assert len(found) == 6
    assert sum("affinity" in line for line in found) == 1
    assert not any("CORS" in line or "for this reason" in line for line in found)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"--gpu-layers": 99}, "no usable accelerator"),
        ({"-ngl": 99}, "no usable accelerator"),
        ({"--load-mode": "mlock"}, "failed to mlock"),
        ({"--load-mode": "mmap+mlock"}, "failed to mlock"),
        ({"--mlock": True}, "failed to mlock"),
        ({"--prio": 3}, "process priority"),
        ({"--cpu-mask": "0xff"}, "affinity"),
        ({"--cache-idle-slots": True}, "disabling"),
        ({"--spec-type": "draft-simple"}, "draft context"),
    ],
)
def test_a_warning_about_what_a_flag_is_for_says_that_it_is_not_in_force(flags: Flags, words: str) -> None:
    assert words in str(contradiction(flags, {}, fallbacks(LOG)))


@pytest.mark.parametrize(
    "flags",
    [{"--cache-ram": 0}, {"--load-mode": "mmap"}, {"--flash-attn": "on"}, {"--ctx-size": 1000}, {"--poll": 3}],
)
def test_a_warning_about_something_else_accuses_no_flag(flags: Flags) -> None:
    assert contradiction(flags, {}, fallbacks(LOG)) is None


def test_what_only_the_log_tells_is_read_from_it() -> None:
    assert facts(LOG) == {"log.n_threads": 6, "log.n_slots": 4, "log.n_ctx_slot": 512, "log.kv_unified": "false"}
