"""`assay.toml`: written so that it teaches, read so that a mistake is found at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import RecordError, UsageError
from assay.records.launch import LaunchPrefix
from assay.records.spec import (
    Budget,
    CampaignSpec,
    Constraint,
    LoadPoint,
    Objective,
    Policy,
    Quality,
    Statistics,
    Target,
    Workload,
)
from assay.store.redact import redact
from assay.store.spec_file import WANTED, read_spec, spec_hash, write_spec
from assay.store.spec_text import spec_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(min_value=1e-6, max_value=1e6)
SHARE = st.floats(min_value=1e-6, max_value=0.49)
COUNT = st.integers(min_value=1, max_value=4096)
LENGTHS = st.tuples(COUNT, COUNT).map(sorted).map(tuple)
POINTS = st.builds(
    LoadPoint,
    name=st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True).filter(lambda name: name != "main"),
    concurrency=COUNT,
    input_tokens=st.none() | LENGTHS,
    output_tokens=st.none() | LENGTHS,
    weight=SHARE,
)
SPECS = st.builds(
    CampaignSpec,
    name=TEXT,
    target=st.builds(
        Target,
        model=TEXT,
        executable=st.none() | TEXT,
        flags=st.dictionaries(TEXT, st.booleans() | st.integers() | FINITE | TEXT, max_size=4),
        env=st.dictionaries(TEXT, TEXT, max_size=3),
        start_timeout_s=POSITIVE,
    ),
    workload=st.builds(
        Workload,
        concurrency=COUNT,
        input_tokens=LENGTHS,
        output_tokens=LENGTHS,
        seed=st.integers(),
        points=st.lists(POINTS, max_size=3, unique_by=lambda point: point.name),
    ),
    objective=st.builds(
        Objective,
        metric=st.sampled_from(["ttft_p50_s", "output_tokens_per_s"]),
        min_effect=SHARE,
        max_loss=st.none() | SHARE,
        constraints=st.lists(st.builds(Constraint, metric=st.just("ttft_p95_s"), max_s=POSITIVE), max_size=2),
    ),
    budget=st.builds(Budget, total_s=POSITIVE),
    statistics=st.builds(Statistics, adopt_alpha=SHARE),
    quality=st.builds(Quality, min_agreement=SHARE),
    policy=st.builds(Policy, only=st.lists(TEXT, max_size=3), builtin_catalogue=st.booleans()),
)


def write(tmp_path, text: str):
    path = tmp_path / "assay.toml"
    path.write_text(text)
    return path


@settings(max_examples=40, deadline=None)
@given(SPECS)
def test_what_is_written_reads_back_as_the_same_spec(tmp_path_factory, spec):
    path = tmp_path_factory.mktemp("spec") / "assay.toml"
    write_spec(path, spec)
    assert read_spec(path) == spec


def test_the_written_file_explains_every_key_and_names_the_default_of_a_changed_one(tmp_path):
    path = tmp_path / "new" / "assay.toml"
    spec = CampaignSpec(workload=Workload(windows=7), target=Target(flags={"--ctx-size": 4096}))
    write_spec(path, spec, {"target.flags": "From the command in service.sh.", "target.flags.--ctx-size": "per server"})
    text = path.read_text()
    lines = text.splitlines()
    keys = [number for number, line in enumerate(lines) if line and line[0] not in "#["]
    assert all(lines[number - 1].startswith("# ") for number in keys)
    assert "# Measured windows a run. Default: 3.\nwindows = 7\n" in text
    assert "Default: 8" not in text
    assert '# executable = "..."\n' in text
    assert "# From the command in service.sh.\n# per server\n--ctx-size = 4096\n" in text
    assert max(map(len, lines)) <= 120


def test_an_empty_file_is_the_default_spec(tmp_path):
    assert read_spec(write(tmp_path, "")) == CampaignSpec()


def test_an_existing_file_is_never_overwritten(tmp_path):
    path = write(tmp_path, "name = 'mine'\n")
    with pytest.raises(UsageError, match="exists already"):
        write_spec(path, CampaignSpec())
    assert path.read_text() == "name = 'mine'\n"


def test_a_place_that_cannot_be_written_is_a_record_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError) as refusal:
        write_spec(tmp_path / "file" / "assay.toml", CampaignSpec())
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[workload]\nwindws = 3\n", ":2: workload.windws: unknown key; did you mean 'windows'?"),
        ("\n[workloads]\nwindows = 3\n", ":2: workloads: unknown key; did you mean 'workload'?"),
        ("zzz = 1\n", ":1: zzz: unknown key; known here: name, target, workload"),
        ("workload.windws = 3\n", ":1: workload.windws: unknown key; did you mean 'windows'?"),
        ("[workload]\nconcurrency = '8'\n", ":2: workload.concurrency: '8': input should be a valid integer"),
        ("[workload]\nconcurrency = 8.0\n", ":2: workload.concurrency: 8.0: input should be a valid integer"),
        ("[workload]\nconcurrency = 0\n", ":2: workload.concurrency: 0: input should be greater than or equal to 1"),
        ("[policy]\nbuiltin_catalogue = 1\n", ":2: policy.builtin_catalogue: 1: input should be a valid boolean"),
        ("[objective]\nmetric = 'speed'\n", ":2: objective.metric: 'speed': input should be 'output_tokens_per_s'"),
        ("[objective]\nmin_effect = 2\n", ":2: objective.min_effect: 2: input should be less than 1"),
        ("[budget]\n# all night\ntotal_s = inf\n", ":3: budget.total_s: inf: want a finite number"),
        ("[workload]\ninput_tokens = [60, 24]\n", ":1: workload: input_tokens = [60, 24]: want 1 <= low <= high"),
        (
            "[workload]\ninput_tokens = [60, 'x']\n",
            ":2: workload.input_tokens[1]: 'x': input should be a valid integer",
        ),
        ("[workload]\ninput_tokens = [1, 2, 3]\n", ":2: workload.input_tokens: [1, 2, 3]: "),
        (
            "[target.flags]\n'--a b' = [1]\n",
            ":2: target.flags.--a b: [1]: a flag's value is true, false, a number or a str",
        ),
        ("[target.flags]\n'--a' = nan\n", ":2: target.flags.--a: nan: want a finite number"),
        ("[target]\nengine = 'openai'\nurl = 'x'\n", ":3: target.url: 'x': want an address such as \"http://127.0.0.1"),
        ("[target]\napi_key_env = 'my-key'\n", ":2: target.api_key_env: this: want the name of an environment varia"),
        ("[target.launch]\nkind = 'ssh'\nhost = 'a b'\n", ":3: target.launch.host: 'a b': want a name of ~/.ssh/co"),
        ("[target.launch]\nkind = 'docker'\nimage = '-x'\n", ":3: target.launch.image: '-x': want a container image"),
        ("[target.env]\nA = 1\n", ":2: target.env.A: 1: input should be a valid string"),
        ("name = 2026-01-01\n", ":1: name: datetime.date(2026, 1, 1): input should be a valid string"),
        ("target = 3\n", ":1: target: 3: input should be an object"),
        ("budget = { total = 3.0 }\n", ": budget.total: unknown key; did you mean 'total_s'?"),
    ],
)
def test_a_mistake_is_named_with_line_key_value_and_what_was_meant(tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as refusal:
        read_spec(path)
    assert refusal.value.message.startswith(f"{path}{said}")
    assert refusal.value.hint


def fields_with_a_pattern(record):
    """Names of the fields below a record that a regular expression checks."""
    for name, schema in record.model_json_schema(by_alias=False).get("properties", {}).items():
        if any("pattern" in kind for kind in (schema, *schema.get("anyOf", ()))):
            yield name


def test_what_a_pattern_wants_is_said_in_words():
    named = {name for record in (Target, LaunchPrefix, LoadPoint) for name in fields_with_a_pattern(record)}
    assert named == set(WANTED)


def test_all_mistakes_are_named_at_once_each_on_its_line(tmp_path):
    text = spec_text(CampaignSpec(target=Target(flags={"--a": 1})), {})
    for right, wrong in (("seed = 1", "seed = 'x'"), ("windows = 3", "windws = 3"), ("--a = 1", "--a = [1]")):
        assert right in text
        text = text.replace(right, wrong)
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as refusal:
        read_spec(path)
    lines = text.splitlines()
    found = sorted(lines[int(problem.split(":")[1]) - 1] for problem in refusal.value.message.splitlines())
    assert found == ["--a = [1]", "seed = 'x'", "windws = 3"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"name = \n", "line 1"), (b"name = 'a'\nname = 'b'\n", "line 2"), (b"name = '\xff'\n", "UTF-8")],
)
def test_a_file_that_is_not_toml_is_refused_with_the_place(tmp_path, content, said):
    path = tmp_path / "assay.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said) as refusal:
        read_spec(path)
    assert str(path) in refusal.value.message
    assert refusal.value.hint


def test_a_missing_file_points_to_init(tmp_path):
    with pytest.raises(UsageError, match=r"assay\.toml") as refusal:
        read_spec(tmp_path / "assay.toml")
    assert "assay init" in refusal.value.hint


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path):
    path = tmp_path / "assay.toml"
    path.write_bytes(b"\xef\xbb\xbfname = 'a'\r\n[workload]\r\nwindows = 4\r\n")
    assert read_spec(path) == CampaignSpec(name="a", workload=Workload(windows=4))


def test_the_spec_hash_knows_every_value_but_no_secret():
    spec = CampaignSpec(target=Target(env={"HF_TOKEN": "one"}))
    other = CampaignSpec(target=Target(env={"HF_TOKEN": "two"}))
    recorded = CampaignSpec.model_validate(redact(spec.model_dump(mode="json")))
    assert spec_hash(spec) == spec_hash(other) == spec_hash(recorded)
    assert spec_hash(spec) != spec_hash(CampaignSpec())
    assert spec_hash(CampaignSpec(objective=Objective(min_effect=0.06))) != spec_hash(CampaignSpec())
