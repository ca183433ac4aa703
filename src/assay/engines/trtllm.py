"""TensorRT-LLM behind the engine port: `trtllm-serve` of an environment or a container.

    [target]
    engine = "trtllm"
    model = "/models/llama-3.1-8b"
    launch = { kind = "docker", image = "nvcr.io/nvidia/tensorrt-llm/release:1.2.0", gpus = "all" }
    flags = { "--max_batch_size" = 256, "--config.enable_attention_dp" = true }

Flags with a dot go into the YAML file that it is given (`assay.engines.trtllm_options`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from assay.engines import declared_flags, trtllm_options
from assay.engines.folder_engine import FolderEngine
from assay.engines.launch_prefix import serving
from assay.engines.same_value import Spelling
from assay.engines.told import scalar, shown
from assay.engines.trtllm_program import find_build
from assay.engines.trtllm_server import TrtllmServer
from assay.flags.option_check import check_options
from assay.ports import Engine
from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild
from assay.records.spec import Target

OWNED = frozenset(
    {
        "--host", "--port", "--config", "--extra_llm_api_options", "--server_role", "--metadata_server_config_file",
        "--disagg_cluster_uri", "--log_level", "--help", "--served_model_name",
    }
)  # fmt: skip
"""Flags that Assay sets itself, or that make something else of the server than one that answers here."""
CONFIG = ("--config", "--extra_llm_api_options")
"""Newer and older name of the YAML file's flag."""
ADDED = {"--max_num_tokens": 0, "--max_seq_len": 64}
"""Limits that its log repeats, and how many tokens it may add: one for the overlapped step, those of a draft twice.

Source: TensorRT-LLM, _torch/pyexecutor/py_executor_creator.py, `model_engine_max_seq_len`."""
CHOSEN_BY_ENGINE = frozenset({"auto", "none", ""})
SPELLING = Spelling("trtllm", ())
REASON = re.compile(r"\b(?:because|since|due to|when|requires?|needs?)\b", re.IGNORECASE)


class Trtllm(FolderEngine):
    """Implements `assay.ports.Engine`."""

    name = "trtllm"
    title = "TensorRT-LLM"
    owned = OWNED

    def find(self, target: Target) -> EngineBuild:
        """The program named in the target, else the one in PATH."""
        return find_build(self.name, target)

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback; options that no flag has go into a file."""
        plain, options = _parted(flags)
        declared_flags.refuse_owned(build, plain, OWNED)
        words = [*build.argv, model_path, "--host", "127.0.0.1", "--port", str(port)]
        files = [str(trtllm_options.write(options))] if options else []
        words += [word for file in files for word in (_config_flag(build), file)]
        return serving(build, [*words, *declared_flags.rendered(build, plain)], model_path, port, files)

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Unknown, removed, or a value that this build does not take; of the file's options what is recorded."""
        plain, options = _parted(flags)
        return declared_flags.problem(build, plain) or _option_problem(build, options)

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:
        """Main spellings (`--tp_size` becomes `--tensor_parallel_size`); options of the file after `--config.`."""
        return {_canonical(build, name, value): value for name, value in flags.items()}

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> TrtllmServer:
        """Start it in its own session; does not wait. The options' file is kept beside the log."""
        for name in CONFIG:
            if name in argv:
                trtllm_options.keep_copy(Path(argv[argv.index(name) + 1]), log.parent)
        port = int(argv[argv.index("--port") + 1])
        return TrtllmServer(argv, env, log, log_name, port)

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
        """No endpoint tells: a warning that names the flag or option contradicts it, or what its log prints."""
        for name, value in flags.items():
            said = _warned_about(name, value, fallbacks) or _limited(name, value, effective)
            if said := said or _printed_otherwise(name, value, effective):
                return f"{name} {shown(value)} is not in force: {said}"
        return None


def create() -> Engine:
    """The adapter (entry point `assay.engines`)."""
    return Trtllm()


def _parted(flags: Flags) -> tuple[Flags, dict[str, Any]]:
    plain = {name: value for name, value in flags.items() if not trtllm_options.is_option(name)}
    return plain, trtllm_options.tree(flags)


def _option_problem(build: EngineBuild, options: dict[str, Any]) -> str | None:
    """An option that this version is known to refuse; one that is not recorded is its own to judge."""
    version = declared_flags.plain_version(build.version)
    findings, _ = check_options("trtllm", version, options, _config_flag(build))
    refused = next((one for one in findings if one.severity == "error"), None)
    return f"option {refused.flags[0]} {refused.what}: {refused.remedy}" if refused else None


def _config_flag(build: EngineBuild) -> str:
    return next((name for name in CONFIG if build.flag(name)), CONFIG[-1])


def _canonical(build: EngineBuild, name: str, value: FlagValue) -> str:
    if trtllm_options.is_option(name):
        return "--config." + ".".join(trtllm_options.path_of(name))
    return next(iter(declared_flags.canonical(build, {name: value})))


def _warned_about(name: str, value: FlagValue, fallbacks: list[str]) -> str | None:
    if value is False:
        return None
    pattern = re.compile(rf"(?<![\w-]){_subject(name)}(?![\w-])", re.IGNORECASE)
    return next((line for line in fallbacks if pattern.search(REASON.split(line)[0])), None)


def _subject(name: str) -> str:
    """How a warning calls a flag or option: a plain word (`backend`) tells nothing without its section (`moe`)."""
    *sections, word = (re.escape(part).replace("_", "[-_ ]") for part in trtllm_options.path_of(name))
    if not sections or "[-_ ]" in word:
        return word
    return rf"{sections[-1].removesuffix('[-_ ]config')}(?:[-_ ]config)?[-_ .]{word}"


def _printed_otherwise(name: str, value: FlagValue, effective: dict[str, Any]) -> str | None:
    """An option of the file against the executor's configuration, where the log prints that."""
    if not trtllm_options.is_option(name) or str(value).lower() in CHOSEN_BY_ENGINE:
        return None
    key = f"config.{'.'.join(trtllm_options.path_of(name))}"
    if key not in effective or SPELLING.same(effective[key], value):
        return None
    return f"its log prints {key} = {shown(effective[key])}"


def _limited(name: str, value: FlagValue, effective: dict[str, Any]) -> str | None:
    """The two limits that its log repeats."""
    key = f"log.{name.lstrip('-')}"
    reported, asked = effective.get(key), scalar(str(value))
    if name not in ADDED or not isinstance(reported, int) or not isinstance(asked, int):
        return None
    return None if asked <= reported <= asked + ADDED[name] else f"its log says {key} = {reported}"
