"""Launch commands as people write them: which engine, which flags, which values, and nothing given to a shell."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.flags.command import image_version, launch, model_of, parse
from assay.flags.dialect import dialects
from assay.flags.knowledge import from_history
from assay.records.doctor import Launch

API_SERVER = "vllm.entrypoints.openai.api_server"
CLI = "vllm.entrypoints.cli.main"
TRTLLM = "tensorrt_llm.commands.serve"
SCRIPT = "/opt/vllm/entrypoints/openai/api_server.py"


def read(*words: str, engine: str | None = None, version: str | None = None) -> Launch:
    found = parse(words, engine)
    return launch(found, from_history(found.dialect.engine, version))


def flags(*words: str, engine: str | None = None) -> dict[str, list[str]]:
    return {flag.name: flag.values for flag in read(*words, engine=engine).flags}


@pytest.mark.parametrize(
    ("command", "engine", "program"),
    [
        ("python3 -m sglang.launch_server --model-path M", "sglang", "python3 -m sglang.launch_server"),
        ("/venv/bin/python -u -m sglang.launch_server --tp 8", "sglang", "/venv/bin/python -u -m sglang.launch_server"),
        ("sglang serve --model-path M", "sglang", "sglang serve"),
        ("vllm serve M --port 1", "vllm", "vllm serve"),
        ("uv run --with x vllm serve M", "vllm", "vllm serve"),
        (f"python -m {API_SERVER} --model M", "vllm", f"python -m {API_SERVER}"),
        (f"python {SCRIPT} --model M", "vllm", f"python {SCRIPT}"),
        (f"python -m {CLI} serve M --port 1", "vllm", f"python -m {CLI} serve"),
        (f"python -m {TRTLLM} M --tp_size 8", "trtllm", f"python -m {TRTLLM}"),
        (f"python -m {TRTLLM} serve M", "trtllm", f"python -m {TRTLLM} serve"),
        ("trtllm-serve M --tp_size 8", "trtllm", "trtllm-serve"),
        ("trtllm-serve serve M", "trtllm", "trtllm-serve serve"),
        ("/usr/local/bin/llama-server -m x.gguf", "llamacpp", "/usr/local/bin/llama-server"),
        ("numactl -N 0 nice -n 5 vllm serve M", "vllm", "vllm serve"),
        ("srun -N 1 --gpus 8 python -m sglang.launch_server --tp 8", "sglang", "python -m sglang.launch_server"),
        ("export A=1 && cd /x; vllm serve M > log.txt 2>&1 &", "vllm", "vllm serve"),
        ("bash -c 'source env; vllm serve M --port 1'", "vllm", "vllm serve"),
        ("torchrun --nproc-per-node 8 -m sglang.launch_server --tp 8", "sglang", "python -m sglang.launch_server"),
        ("/v/bin/torchrun --standalone -m sglang.launch_server", "sglang", "/v/bin/python -m sglang.launch_server"),
        (f"python3 -m torch.distributed.run -m {CLI} serve M", "vllm", f"python -m {CLI} serve"),
        ("accelerate launch -m sglang.launch_server", "sglang", "python -m sglang.launch_server"),
        ("tmux new-session -d -s srv 'vllm serve M 2>&1 | tee log'", "vllm", "vllm serve"),
        ("tmux new -d -s srv vllm serve M --port 1", "vllm", "vllm serve"),
        ("tmux send-keys -t srv 'vllm serve M' C-m", "vllm", "vllm serve"),
        ("screen -dmS srv bash -c 'vllm serve M'", "vllm", "vllm serve"),
        ("ssh me@box 'cd /x && vllm serve M'", "vllm", "vllm serve"),
        ("sbatch --gpus 8 --wrap='vllm serve M --port 1'", "vllm", "vllm serve"),
        ("if true; then vllm serve M; fi", "vllm", "vllm serve"),
        ("echo 'vllm serve N' && vllm serve M \\", "vllm", "vllm serve"),
        ("vllm serve M `\n --port 1 ^\n --seed 2", "vllm", "vllm serve"),
    ],
)  # fmt: skip
def test_an_engine_is_found_whatever_stands_before_it(command: str, engine: str, program: str) -> None:
    found = parse([command])

    assert found.dialect.engine == engine
    assert " ".join(found.program) == program


def test_variables_come_from_before_the_program_from_env_and_from_export() -> None:
    words = "export VLLM_USE_V1=0; CUDA_VISIBLE_DEVICES=0,1 env VLLM_LOGGING_LEVEL=DEBUG vllm serve M"

    assert read(words).environment == {
        "VLLM_USE_V1": "0", "CUDA_VISIBLE_DEVICES": "0,1", "VLLM_LOGGING_LEVEL": "DEBUG",
    }  # fmt: skip


def test_a_container_with_an_entrypoint_gives_all_its_words_to_the_engine() -> None:
    seen = read(
        "docker run -it --rm --gpus all -v /a:/b -p 8000:8000 -e VLLM_USE_V1=1 vllm/vllm-openai:v0.11.0 --model M -tp 2"
    )

    assert (seen.engine, seen.image) == ("vllm", "vllm/vllm-openai:v0.11.0")
    assert seen.environment == {"VLLM_USE_V1": "1"}
    assert [flag.written for flag in seen.flags] == ["--model M", "-tp 2"]


def test_a_container_without_one_is_looked_into() -> None:
    seen = read(
        "podman run --shm-size=32g lmsysorg/sglang:v0.5.9-cu130 bash -c 'python3 -m sglang.launch_server --tp 8'"
    )

    assert (seen.engine, seen.image) == ("sglang", "lmsysorg/sglang:v0.5.9-cu130")
    assert [flag.written for flag in seen.flags] == ["--tp 8"]


def test_a_given_entrypoint_replaces_that_of_the_image() -> None:
    seen = read("docker run --entrypoint vllm vllm/vllm-openai:v0.33.0 serve M --seed 1")

    assert seen.program == ["vllm", "serve"]
    assert seen.positionals == ["M"]


@pytest.mark.parametrize(
    ("image", "engine", "version"),
    [
        ("vllm/vllm-openai:v0.11.0", "vllm", "0.11.0"),
        ("docker.io/vllm/vllm-openai:v0.20.0-cu129@sha256:00", "vllm", "0.20.0"),
        ("lmsysorg/sglang:v0.5.12.post1-cu130", "sglang", "0.5.12.post1"),
        ("lmsysorg/sglang:latest", "sglang", None),
        ("registry:5000/mine:v3.1", "vllm", None),
        ("registry:5000/vllm/vllm-openai", "vllm", None),
        ("docker://vllm/vllm-openai:v0.11.0", "vllm", "0.11.0"),
        ("/images/sglang_v0.5.9.sif", "sglang", "0.5.9"),
        ("mine_v0.5.9.sif", "sglang", None),
    ],
)
def test_the_tag_of_an_engines_own_image_names_its_version(image: str, engine: str, version: str | None) -> None:
    assert image_version(image, dialects()[engine]) == version


@pytest.mark.parametrize(
    ("command", "image", "environment", "wrapper"),
    [
        ("singularity exec --nv -B /a:/b vllm-openai_v0.11.0.sif vllm serve M --port 1", "vllm-openai_v0.11.0.sif", {},
         ["singularity", "exec"]),
        ("C=3 APPTAINERENV_A=1 apptainer run --nv --env B=2 docker://vllm/vllm-openai:v0.11.0 M --port 1",
         "docker://vllm/vllm-openai:v0.11.0", {"A": "1", "B": "2", "C": "3"}, ["apptainer", "run"]),
        ("srun --container-image=vllm/vllm-openai:v0.11.0 vllm serve M --port 1", "vllm/vllm-openai:v0.11.0", {},
         ["srun", "--container-image=vllm/vllm-openai:v0.11.0"]),
    ],
)  # fmt: skip
def test_containers_of_clusters_are_looked_into(
    command: str, image: str, environment: dict[str, str], wrapper: list[str]
) -> None:
    seen = read(command)

    assert (seen.engine, seen.image, seen.environment, seen.wrapper) == ("vllm", image, environment, wrapper)
    assert (seen.positionals, [flag.written for flag in seen.flags]) == (["M"], ["--port 1"])


@pytest.mark.parametrize(
    ("command", "wrapper"),
    [
        ("ssh me@box 'vllm serve M'", ["ssh", "me@box"]),
        ("numactl -N 0 bash -c 'nice vllm serve M'", ["numactl", "-N", "0", "nice"]),
        ("torchrun --nproc-per-node 8 -m sglang.launch_server", ["torchrun", "--nproc-per-node", "8"]),
    ],
)
def test_what_stands_before_the_engine_is_kept_through_every_text(command: str, wrapper: list[str]) -> None:
    assert read(command).wrapper == wrapper


def test_a_container_program_does_not_start_what_an_image_would_start_by_itself() -> None:
    with pytest.raises(UsageError, match="no known engine"):
        parse(["singularity exec vllm-openai_v0.11.0.sif --model M"])


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ("M=org/model\nTP=4\nvllm serve $M --tensor-parallel-size ${TP}", ["--tensor-parallel-size 4"]),
        ('ARGS="--port 1 --seed 2"; vllm serve org/model $ARGS', ["--port 1", "--seed 2"]),
        ('export A="--port 1"; B="$A --seed 2"\nnohup vllm serve org/model $B &', ["--port 1", "--seed 2"]),
        ('A=(--port 1\n  --seed 2)\nA+=(--enforce-eager)\nvllm serve org/model "${A[@]}"',
         ["--port 1", "--seed 2", "--enforce-eager"]),
        ('CMD="vllm serve org/model --port 1"\n$CMD', ["--port 1"]),
        ("docker run -e P=1 --entrypoint bash vllm/vllm-openai:v0.20.0 -c 'vllm serve org/model --port $P'",
         ["--port 1"]),
        ("vllm serve org/model --port $PORT", ["--port $PORT"]),
        ("PORT=1 vllm serve org/model --port $PORT", ["--port $PORT"]),
        ('P="/x y/z"; vllm serve org/model --chat-template $P', ["--chat-template /x y/z"]),
    ],
)  # fmt: skip
def test_what_a_script_sets_stands_where_it_uses_it(script: str, seen: list[str]) -> None:
    found = read(script)

    assert (found.positionals, [flag.written for flag in found.flags]) == (["org/model"], seen)


@pytest.mark.parametrize("mark", ["\\", "`", "^"])
def test_a_line_goes_on_as_any_system_says_it(mark: str) -> None:
    assert flags(f"vllm serve M {mark}\n  --port 1 {mark}\r\n  --seed 2") == {"--port": ["1"], "--seed": ["2"]}


def test_the_return_key_that_a_terminal_is_told_to_press_is_no_part_of_a_flag() -> None:
    assert flags("screen -S x -X stuff 'vllm serve M --enforce-eager\\n'") == {"--enforce-eager": []}


def test_variables_that_double_each_time_stay_short() -> None:
    doubling = "".join(f'A{number + 1}="$A{number}$A{number}"\n' for number in range(40))

    assert len(read(f"A0=x\n{doubling}vllm serve M --seed $A40").flags[0].values[0]) <= 20_000


@pytest.mark.parametrize(
    "text",
    ['["vllm", "serve", "M", "--port", "1"]', 'command: ["vllm", "serve", "M", "--port", "1"]',
     'CMD ["vllm",\n  "serve", "M", "--port", "1"]'],
)  # fmt: skip
def test_a_command_is_read_as_files_of_containers_write_it(text: str) -> None:
    seen = read(text)

    assert (seen.engine, seen.positionals, [flag.written for flag in seen.flags]) == ("vllm", ["M"], ["--port 1"])


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("uv run --with vllm==0.11.0 vllm serve M", "0.11.0"),
        ("uvx --from=vllm[audio]==0.11.0 vllm serve M", "0.11.0"),
        ("uvx vllm serve M", None),
    ],
)
def test_the_version_that_a_command_has_installed_is_known(command: str, version: str | None) -> None:
    assert parse([command]).required == version
    assert read(command).environment == {}


def test_words_belong_to_flags_by_what_the_engine_takes() -> None:
    seen = flags(
        "python -m sglang.launch_server --cuda-graph-bs-decode 1 2 4 --trust-remote-code --chunked-prefill-size -1 "
        "--json-model-override-args '{\"a\": 1}' --log-level=info"
    )

    assert seen == {
        "--cuda-graph-bs-decode": ["1", "2", "4"],
        "--trust-remote-code": [],
        "--chunked-prefill-size": ["-1"],
        "--json-model-override-args": ['{"a": 1}'],
        "--log-level": ["info"],
    }


def test_the_words_of_a_flag_that_is_gone_stay_with_it() -> None:
    read_of = read("vllm", "serve", "M", "--cuda-graph-sizes", "1", "2", "4", version="0.14.0")

    assert read_of.positionals == ["M"]
    assert [(flag.name, flag.values) for flag in read_of.flags] == [("--cuda-graph-sizes", ["1", "2", "4"])]


@pytest.mark.parametrize("version", ["0.9.0", "0.33.0"])
def test_the_short_form_of_an_optimization_level_is_known_in_every_version(version: str) -> None:
    assert from_history("vllm", version).resolve("-O3").key == "3"


def test_a_word_that_looks_like_a_switchs_value_is_kept_with_it() -> None:
    assert flags("vllm serve M --enable-prefix-caching true") == {"--enable-prefix-caching": ["true"]}


@pytest.mark.parametrize(
    ("command", "model"),
    [("vllm serve A --port 1", "A"), ("vllm serve --model B", "B"), ("python -m sglang.launch_server --model C", "C")],
)
def test_the_model_is_read_from_its_flag_or_its_place(command: str, model: str) -> None:
    found = parse([command])
    knowledge = from_history(found.dialect.engine)

    assert model_of(launch(found, knowledge), found.dialect, knowledge) == model


@pytest.mark.parametrize("words", ["ls -la", "python train.py", "docker run ubuntu ls", "vllm bench serve --model M"])
def test_a_command_that_starts_no_engine_is_refused_with_what_would_be_taken(words: str) -> None:
    with pytest.raises(UsageError, match="no known engine") as caught:
        parse([words])

    assert "vllm serve" in str(caught.value.hint)


def test_words_alone_are_taken_for_the_engine_that_is_named() -> None:
    assert flags("VLLM_USE_V1=1", "--max-num-seqs", "4", engine="vllm") == {"--max-num-seqs": ["4"]}


def test_an_engine_that_the_command_contradicts_is_refused() -> None:
    with pytest.raises(UsageError, match="vLLM"):
        parse(["vllm serve M"], "sglang")


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve M \\\r\n  --max-num-seqs 64 \\\r\n  --port 1",
        "# it's the server\nvllm serve M --max-num-seqs 64 --port 1 # --foo \"bar",
        "vllm serve M --max-num-seqs 64 --port 1;# done",
    ],
)
def test_line_ends_of_another_system_and_comments_are_no_words(command: str) -> None:
    assert flags(command) == {"--max-num-seqs": ["64"], "--port": ["1"]}


def test_what_only_looks_like_a_comment_is_a_word() -> None:
    assert flags("vllm serve M --served-model-name 'a #1' --revision v#2") == {
        "--served-model-name": ["a #1"],
        "--revision": ["v#2"],
    }


def test_an_open_quotation_is_an_error_of_the_user() -> None:
    with pytest.raises(UsageError, match="cannot be split"):
        parse(["vllm serve 'M"])


WORD = st.one_of(
    st.sampled_from(["vllm", "serve", "python", "-m", "sglang.launch_server", "docker", "run", "bash"]),
    st.sampled_from(["-c", "&&", ";", "vllm/vllm-openai:v0.11.0", "-e", "A=1", "--tp", "--x=", "=", "--"]),
    st.sampled_from(["-", "{", '{"a":', ">", "2>&1"]),
    st.text(string.printable, max_size=30),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(WORD, max_size=30))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        found = parse(words)
    except UsageError:
        return
    seen = launch(found, from_history(found.dialect.engine))
    total = sum(1 + len(flag.values) for flag in seen.flags) + len(seen.positionals)
    assert total <= len(found.rest) + sum(flag.joined for flag in seen.flags)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse([text])
    except UsageError:
        return


def test_shells_inside_of_shells_are_followed_only_so_far() -> None:
    text = "vllm serve M"
    for _ in range(3):
        text = f"bash -c {text!r}" if "'" not in text else "bash -c " + '"' + text.replace('"', '\\"') + '"'

    assert parse([text]).dialect.engine == "vllm"
    with pytest.raises(UsageError):
        parse(["bash -c " * 400 + "x"])


@pytest.mark.parametrize(
    "words",
    [
        ["vllmx", "serve", "m", "--api-key", "zz0secret"],
        ["HF_TOKEN=zz0secret", "foo"],
        ["curl", "http://me:zz0secret@host/"],
        ["services:\n  a: {image: x\n  environment:\n   HF_TOKEN: zz0secret"],
    ],
)
def test_a_command_that_starts_no_engine_is_refused_without_what_may_be_secret(words: list[str]) -> None:
    with pytest.raises(UsageError, match="no known engine") as refused:
        parse(words)
    assert "zz0secret" not in str(refused.value)
