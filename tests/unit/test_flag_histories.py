"""Flags are read out of a package's source, without running any of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.flag_histories import spans, vllm
from benchmarks.flag_histories.consumers import mark_dead
from benchmarks.flag_histories.objects import keys_of
from benchmarks.flag_histories.variables import names_in, with_version

from assay.flags.object_history import lives

CONFIG = """
from dataclasses import field
from typing import Literal
from vllm.engine.choices import Backend, Limits

@config
class KernelConfig:
    moe_backend: Backend = "auto"
    lora_dtype: Literal["auto", "float16"] | torch.dtype = "auto"
    dtype: Literal["auto", "half"] | str = "auto"
    tokens: int | None = None
    length: SkipValidation[int] = None
    chunked: SkipValidation[bool] = None
    budget: float = 2 * 0.45
    prefix: bool | None = None
    shapes: list[int] | None = None
    overrides: dict[str, int] = field(default_factory=dict)
    a2a: Literal["naive", "ring", "hidden"] = "ring"
    later: int = Limits.most
"""
ARGUMENTS = """
from vllm.config.kernel import KernelConfig
HIDDEN = "hidden"

def _compute_kwargs(cls):
    for field in fields(cls):
        human_readable_int_args = {"tokens"}
        if name == "length":
            kwargs[name]["type"] = human_readable_int_or_auto
        if name in human_readable_int_args:
            kwargs[name]["type"] = human_readable_int

class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        kernel_kwargs = get_kwargs(KernelConfig)
        moe_kwargs = kernel_kwargs["moe_backend"]
        moe_kwargs["type"] = lambda text: text.lower().replace("-", "_")
        kernel_kwargs["a2a"]["choices"].remove(HIDDEN)
        group.add_argument("--moe-backend", **moe_kwargs)
        group.add_argument("--a2a", **kernel_kwargs["a2a"])
        group.add_argument("--lora-dtype", **kernel_kwargs["lora_dtype"])
        group.add_argument("--dtype", **kernel_kwargs["dtype"])
        group.add_argument("--tokens", "-t", **kernel_kwargs["tokens"])
        group.add_argument("--length", **kernel_kwargs["length"])
        group.add_argument("--chunked", **kernel_kwargs["chunked"])
        group.add_argument("--budget", **kernel_kwargs["budget"])
        group.add_argument("--prefix", **kernel_kwargs["prefix"])
        group.add_argument("--shapes", **kernel_kwargs["shapes"])
        group.add_argument("--overrides", **kernel_kwargs["overrides"])
        group.add_argument("--later", **kernel_kwargs["later"])
        group.add_argument("--old", action="store_true", help="[DEPRECATED] use `--new` instead")
        group.add_argument("--at-run-time", choices=list(make_them()), default=make_it())
        group.add_argument("model")
"""
CHOICES = """
Backend = Literal["auto", "triton", "flashinfer_b12x"]
class Limits:
    most: int = 7
"""


def package(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return package(tmp_path, config__kernel=CONFIG, engine__arg_utils=ARGUMENTS, engine__choices=CHOICES)


def fields(root: Path) -> dict[str, dict[str, Any]]:
    return {one.names[0]: one.fields() for one in vllm.declared(root)}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("--moe-backend", {"kind": "str", "choices": ["auto", "triton", "flashinfer_b12x"], "loose": True,
                           "default": "auto"}),
        ("--a2a", {"kind": "str", "choices": ["naive", "ring"], "default": "ring"}),
        ("--lora-dtype", {"kind": "str", "choices": ["auto", "float16"], "default": "auto"}),
        ("--dtype", {"kind": "str", "default": "auto"}),
        ("--tokens", {"names": ["--tokens", "-t"], "kind": "size", "default": None}),
        ("--length", {"kind": "size", "words": ["auto"], "default": None}),
        ("--chunked", {"kind": "switch", "default": None, "negatable": True}),
        ("--budget", {"kind": "float", "default": 0.9}),
        ("--prefix", {"kind": "switch", "default": None, "negatable": True}),
        ("--shapes", {"kind": "list:int", "default": None}),
        ("--overrides", {"kind": "json"}),
        ("--later", {"kind": "int", "default": 7}),
        ("--old", {"kind": "switch", "deprecated": True, "new": "--new"}),
        ("--at-run-time", {"kind": "str"}),
    ],
)  # fmt: skip
def test_a_flag_takes_what_its_declaration_says(root: Path, name: str, wanted: dict[str, Any]) -> None:
    assert fields(root)[name] == wanted


def test_a_positional_argument_is_no_flag(root: Path) -> None:
    assert "model" not in fields(root)


def test_a_field_that_only_argument_handling_hands_on_is_dead(root: Path) -> None:
    package(
        root,
        engine__arg_utils=ARGUMENTS + "\ndef make(args):\n    return Config(budget=args.budget, tokens=args.tokens)\n",
        worker="def run(config):\n    config.budget = config.budget\n    return config.tokens + len(config.shapes)\n",
    )
    found = vllm.declared(root)
    mark_dead(found, root)

    dead = {one.names[0] for one in found if one.dead}
    assert {"--budget", "--overrides"} <= dead
    assert not {"--tokens", "--shapes"} & dead


HISTORY = [
    {"engine": "e", "versions": ["1.0", "1.2"], "medium": "wheel", "source": "s"},
    ["--a", [["1.0", "1.2", {"kind": "int"}]]],
    ["--b", [["1.0", "1.0", {"kind": "int"}], ["1.2", "1.2", {"kind": "str"}]]],
    ["--gone", [["1.0", "1.0", {"kind": "int"}]]],
]


def history(folder: Path) -> spans.Recorded:
    path = folder / "e.jsonl"
    path.write_text("\n".join(map(json.dumps, HISTORY)), encoding="utf-8")
    return spans.read(path)


def test_a_version_between_two_others_splits_and_joins_their_runs(tmp_path: Path) -> None:
    between = [vllm.Declared(names=["--a"], kind="int"), vllm.Declared(names=["--b"], kind="str")]

    renewed = history(tmp_path).with_version("1.1", between)

    assert renewed.versions == ["1.0", "1.1", "1.2"]
    assert renewed.flags["--a"] == [["1.0", "1.2", {"kind": "int"}]]
    assert renewed.flags["--b"] == [["1.0", "1.0", {"kind": "int"}], ["1.1", "1.2", {"kind": "str"}]]
    assert renewed.flags["--gone"] == [["1.0", "1.0", {"kind": "int"}]]


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    recorded = history(tmp_path)
    spans.write(tmp_path / "again.jsonl", recorded)
    assert spans.read(tmp_path / "again.jsonl") == recorded


def test_a_version_that_is_read_again_replaces_what_was_recorded_and_says_what_differs(tmp_path: Path) -> None:
    recorded = history(tmp_path)
    renewed = recorded.with_version("1.2", [vllm.Declared(names=["--a"], kind="float")])

    told = list(spans.differences(recorded.at("1.2"), renewed.at("1.2")))

    assert told == ['--a: kind "int" -> "float"', "--b: recorded, and not found"]
    assert renewed.versions == ["1.0", "1.2"]


def test_environment_variables_join_the_table_by_runs_of_versions(tmp_path: Path) -> None:
    package(tmp_path, envs="VLLM_A = os.environ['VLLM_A']\n", test__x="VLLM_ONLY_IN_A_TEST")
    table = "variable\tversions\nVLLM_A\t1.0..1.1\nVLLM_OLD\t1.0\n"

    assert names_in("vllm", tmp_path) == {"VLLM_A"}
    assert with_version(table, ["1.0", "1.1", "1.2"], "1.2", {"VLLM_A", "VLLM_B"}) == (
        "variable\tversions\nVLLM_A\t1.0..1.2\nVLLM_B\t1.2\nVLLM_OLD\t1.0\n"
    )


CLASSES = """
from {origin} import dataclass

Few = Literal["b", 2]
Kind = Literal["a", Few]

class Level(IntEnum):
    NONE = 0
    FULL = 3

@config
@dataclass{mark}
class PassConfig:
    fuse: bool = Field(default=None)

@config
@dataclass{mark}
class CompilationConfig:
    mode: int | None = Field(default=None, ge=0)
    level: Level = None
    kind: Kind | None = "a"
    odd: Kind = "a"
    sizes: list[Few] | None = None
    passes: "Optional[PassConfig]" = None
    either: dict[str, Any] | PassConfig = None
    traced: set[str] = field(default_factory=set, init=False)
    many: ClassVar[int] = 3

    @field_validator("level", mode="before")
    def by_name(cls, value):
        if isinstance(value, str):
            return Level[value.upper()]
        return value

    @field_validator("odd", mode="before")
    def otherwise(cls, value):
        return value[0]

class SpeculativeConfig(CompilationConfig):
    method: str = ""

    def _validate_limit_per_prompt(cls, value):
        for k, v in value.items():
            if k == "video":
                out[k] = PassConfig(**v)

    def get_diff_sampling_param(self):
        available_params = ["top_k", "top_p"]
"""
ENGINE_ARGUMENTS = """
class EngineArgs:
    compilation_config: CompilationConfig = None
    speculative_config: dict[str, Any] | None = None
    hf_overrides: dict[str, Any] = None

    def create_speculative_config(self):
        {read}
        return SpeculativeConfig(**{{k.replace("-", "_"): v for k, v in self.speculative_config.items()}})
"""


def objects(folder: Path, *, origin: str = "pydantic.dataclasses", mark: str = "", read: str = "TypeAdapter()") -> Any:
    text = CLASSES.format(origin=origin, mark=mark).replace("class Spec", "@config\nclass Spec")
    return keys_of("vllm", package(folder, config__all=text, engine__arg_utils=ENGINE_ARGUMENTS.format(read=read)))


def test_the_objects_of_json_flags_are_read_with_the_objects_in_them(tmp_path: Path) -> None:
    assert objects(tmp_path) == {
        "--compilation-config": {"class": "CompilationConfig"},
        "--limit-mm-per-prompt": {"class": "limit_mm_per_prompt"},
        "--override-generation-config": {"class": "override_generation_config"},
        "--speculative-config": {"class": "SpeculativeConfig"},
        "CompilationConfig": {"extra": "ignored"},
        "CompilationConfig.either": {"types": ["object"]},
        "CompilationConfig.kind": {"choices": ["a", "b", 2]},
        "CompilationConfig.level": {"choices": ["NONE", 0, "FULL", 3], "loose": True},
        "CompilationConfig.mode": {"types": ["int"], "ge": 0},
        "CompilationConfig.odd": {},
        "CompilationConfig.passes": {"class": "PassConfig", "types": ["object"]},
        "CompilationConfig.sizes": {"types": ["list"], "items": {"choices": ["b", 2]}},
        "PassConfig": {"extra": "ignored"},
        "PassConfig.fuse": {"types": ["bool"]},
        "SpeculativeConfig": {"extra": "refused", "dashes": True},
        "SpeculativeConfig.either": {"types": ["object"]},
        "SpeculativeConfig.kind": {"choices": ["a", "b", 2]},
        "SpeculativeConfig.level": {"choices": ["NONE", 0, "FULL", 3], "loose": True},
        "SpeculativeConfig.mode": {"types": ["int"], "ge": 0},
        "SpeculativeConfig.odd": {},
        "SpeculativeConfig.passes": {"class": "PassConfig", "types": ["object"]},
        "SpeculativeConfig.sizes": {"types": ["list"], "items": {"choices": ["b", 2]}},
        "SpeculativeConfig.method": {"types": ["str"]},
        "limit_mm_per_prompt": {"extra": "taken"},
        "limit_mm_per_prompt.video": {"class": "PassConfig"},
        "override_generation_config": {"extra": "ignored"},
        "override_generation_config.top_k": {},
        "override_generation_config.top_p": {},
    }


@pytest.mark.parametrize(
    ("given", "extra"),
    [
        ({}, "ignored"),
        ({"mark": "(config=ConfigDict(extra='forbid'))"}, "refused"),
        ({"mark": "(config=ConfigDict(extra='allow'))"}, "taken"),
        ({"origin": "dataclasses"}, "ignored"),
        ({"origin": "dataclasses", "read": "json.loads(text)"}, "refused"),
    ],
)
def test_what_becomes_of_other_keys_hangs_on_how_a_class_is_declared(
    tmp_path: Path, given: dict[str, str], extra: str
) -> None:
    assert objects(tmp_path, **given)["CompilationConfig"]["extra"] == extra


def test_the_objects_of_sglang_are_read_where_their_keys_are_checked(tmp_path: Path) -> None:
    package(
        tmp_path / "srt",
        server_args="cuda_graph_config = limit_mm_data_per_request = 1\nallowed_modalities = {'image'}\n",
        model_executor__cuda_graph_config="class Phase:\n    ONE = 'one'\n"
        "ALLOWED_KEYS_PER_PHASE = {Phase.ONE: ('bs', 'backend')}\n"
        "ALLOWED_BACKENDS_PER_PHASE = {Phase.ONE: ('full',)}\n",
        sampling__sampling_params="class SamplingParams:\n    def __init__(self, top_k=1): ...\n",
    )

    assert keys_of("sglang", tmp_path) == {
        "--cuda-graph-config": {"class": "cuda_graph_config"},
        "--limit-mm-data-per-request": {"class": "limit_mm_data_per_request"},
        "cuda_graph_config": {"extra": "refused"},
        "cuda_graph_config.one": {"class": "cuda_graph_config_one", "types": ["object"]},
        "cuda_graph_config_one": {"extra": "refused"},
        "cuda_graph_config_one.backend": {"choices": ["full"]},
        "cuda_graph_config_one.bs": {},
        "limit_mm_data_per_request": {"extra": "refused"},
        "limit_mm_data_per_request.image": {},
    }


@pytest.mark.parametrize(("engine", "at_least"), [("vllm", 29), ("sglang", 36)])
def test_every_class_that_is_recorded_is_known_with_its_keys(engine: str, at_least: int) -> None:
    past = lives(engine)
    rows = {version: past.at(version) for version in past.checked}

    assert len(past.checked) >= at_least
    for at in rows.values():
        named = {row["class"] for row in at.values() if "class" in row}
        assert named <= {name for name, row in at.items() if "extra" in row}
        assert all(any(name.startswith(f"{one}.") for name in at) for one in named)
