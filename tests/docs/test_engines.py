"""The examples of docs/engines.md, read as assay.toml is read."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from assay.records.launch import LaunchPrefix
from assay.records.spec import CampaignSpec

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_every_target_of_the_page_is_one() -> None:
    targets = [CampaignSpec.model_validate(tomllib.loads(block)).target for block in BLOCKS if "[target]" in block]

    assert {target.engine for target in targets} == {"llamacpp", "vllm", "sglang", "trtllm", "openai"}


def test_every_launch_of_the_page_is_one() -> None:
    lines = [line for block in BLOCKS for line in block.splitlines() if line.startswith("launch = ")]
    kinds = [LaunchPrefix.model_validate(tomllib.loads(line)["launch"]).kind for line in lines]

    assert sorted(kinds) == ["docker", "podman", "srun", "ssh"]


def test_the_page_names_every_adapter() -> None:
    for point in entry_points(group="assay.engines"):
        assert f"| `{point.name}` |" in PAGE
