"""What assay.toml of an existing campaign leaves out is what its record says, whatever today's defaults are."""

import shutil
from pathlib import Path

import pytest

from assay.api.init import init
from assay.api.plan import plan
from assay.errors import UsageError
from assay.records.spec import Budget, CampaignSpec, Constraint, LoadPoint, Objective, Policy, Target, Workload
from assay.store.spec_declared import differences
from assay.store.spec_file import read_spec, spec_hash


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign whose file says a block that is no default."""
    folder = tmp_path_factory.mktemp("planned")
    target = Target(model="embedded", executable="embedded")
    init(folder, CampaignSpec(target=target, budget=Budget(block=2), policy=Policy(builtin_catalogue=False)))
    plan(folder)
    return folder


@pytest.fixture
def demo(planned: Path, tmp_path: Path) -> Path:
    return shutil.copytree(planned, tmp_path / "demo")


def written(folder: Path, text: str) -> Path:
    path = folder / "assay.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_campaign_of_other_defaults_goes_on_although_its_file_leaves_them_out(demo: Path) -> None:
    text = (demo / "assay.toml").read_text(encoding="utf-8")
    assert "\nblock = 2\n" in text
    assert Budget().block != 2
    written(demo, text.replace("\nblock = 2\n", "\n"))

    assert plan(demo).spec.budget.block == 2


def test_a_key_that_was_changed_is_named_with_what_is_recorded(demo: Path) -> None:
    text = (demo / "assay.toml").read_text(encoding="utf-8")
    written(demo, text.replace("\nblock = 2\n", "\nblock = 3\n"))

    with pytest.raises(UsageError, match=r"changed .*: budget\.block = 3 \(recorded: 2\)$"):
        plan(demo)


def test_what_is_absent_by_default_counts_as_removed_when_it_is_left_out(tmp_path: Path) -> None:
    declared = CampaignSpec(
        target=Target(flags={"--threads": 2}),
        objective=Objective(max_loss=0.1, constraints=[Constraint(metric="ttft_p95_s", max_s=1.0)]),
    )

    found = read_spec(written(tmp_path, ""), declared=declared)

    assert [told.split(" (")[0] for told in differences(found, declared)] == [
        "target.flags.--threads = nothing",
        "objective.max_loss = nothing",
        "objective.constraints = []",
    ]


def test_tables_in_a_list_are_filled_as_well(tmp_path: Path) -> None:
    declared = CampaignSpec(workload=Workload(points=[LoadPoint(name="one", concurrency=1, weight=0.5)]))
    path = written(tmp_path, '[workload]\npoints = [{ name = "one", concurrency = 1 }]\n')

    assert spec_hash(read_spec(path, declared=declared)) == spec_hash(declared)
    assert read_spec(path).workload.points[0].weight == 1.0


def test_a_changed_secret_is_neither_a_change_nor_told() -> None:
    one, other = (CampaignSpec(target=Target(env={"HF_TOKEN": value})) for value in ("hf_aaaaaa1", "hf_bbbbbb2"))

    assert differences(one, other) == []
