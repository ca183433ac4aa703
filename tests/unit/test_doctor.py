"""`assay.api.doctor`: the cases of the histories, and an engine that is installed."""

from __future__ import annotations

import stat
import sys
import textwrap
from pathlib import Path

import pytest
from benchmarks.doctor_cases import CASES, Case, miss
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.api.doctor import Question, doctor
from assay.errors import UsageError
from assay.records.doctor import DoctorReport, Finding


def ask(words: str, **given: object) -> DoctorReport:
    return doctor(Question(words=[words], **{"ask_installed": False, **given}))  # type: ignore[arg-type]


def one(report: DoctorReport, kind: str) -> Finding:
    return next(finding for finding in report.findings if finding.kind == kind)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.engine}-{case.version}-{case.flags[32:62]}")
def test_the_doctor_agrees_with_the_histories(case: Case) -> None:
    assert miss(case) is None


def test_forty_cases_and_more_over_nine_versions() -> None:
    assert len(CASES) >= 40
    assert {(case.engine, case.version) for case in CASES} == {
        ("sglang", "0.5.4"), ("sglang", "0.5.9"), ("sglang", "0.5.12"), ("sglang", "0.5.23"),
        ("vllm", "0.9.0"), ("vllm", "0.11.0"), ("vllm", "0.14.0"), ("vllm", "0.20.0"), ("vllm", "0.33.0"),
    }  # fmt: skip


def test_every_finding_has_evidence_and_says_what_to_do() -> None:
    report = ask("vllm serve M --swap-space 4 --all2all-backend naive --max-num-seq x", engine_version="0.20.0")

    assert report.findings
    assert all(finding.evidence and finding.remedy for finding in report.findings)


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ("--gpu-memory-utilization 1.5", ["--gpu-memory-utilization"]),
        ("--gpu-memory-utilization 0", ["--gpu-memory-utilization"]),
        ("--max-num-seqs 0", ["--max-num-seqs"]),
        ("--gpu-memory-utilization 0.95 --max-num-seqs 1", None),
    ],
)
def test_a_number_outside_of_what_the_engine_takes_is_an_error(given: str, flags: list[str] | None) -> None:
    report = ask(f"vllm serve M {given}", engine_version="0.33.0")

    assert [finding.flags for finding in report.findings if finding.kind == "bad-value"] == ([flags] if flags else [])


def test_the_worst_comes_first() -> None:
    report = ask("vllm serve M --all2all-backend naive --seed 0 --swap-space 4", engine_version="0.20.0")

    assert report.findings[0].severity == "error"
    assert report.num_errors == 1


def test_what_cannot_be_decided_without_a_machine_is_said() -> None:
    report = ask(
        "python -m sglang.launch_server --model-path M --tp-size 8 --attention-backend fa3", engine_version="0.5.9"
    )

    assert [entry.flags for entry in report.undecided] == [["--attention-backend"]]
    assert "gpu" in report.undecided[0].reason


@pytest.mark.parametrize(
    ("version", "gpu", "stops"),
    [("0.5.17", "H100-SXM", True), ("0.5.17", "RTX-PRO-6000", False), ("0.5.9", "H100-SXM", False)],
)
def test_an_overlap_that_the_engine_refuses_on_hopper_is_an_error_there_alone(
    version: str, gpu: str, stops: bool
) -> None:
    report = ask(
        "python -m sglang.launch_server --model-path M --tp-size 8 --enable-single-batch-overlap",
        engine_version=version,
        gpu=gpu,
        gpus=8,
    )

    assert any(finding.rule == "sbo-hopper" for finding in report.findings) is stops
    assert (report.num_errors > 0) is stops


def test_a_value_that_is_none_is_not_told_to_be_undecided_as_well() -> None:
    report = ask("vllm serve M --max-num-seqs x", engine_version="0.33.0")

    assert one(report, "bad-value").flags == ["--max-num-seqs"]
    assert report.undecided == []


def test_variables_that_nothing_reads_are_told_with_the_flag_that_took_their_place() -> None:
    report = ask("VLLM_ATTENTION_BACKEND=FLASHINFER VLLM_LOGGING_LEVEL=INFO vllm serve M", engine_version="0.20.0")

    finding = one(report, "removed")
    assert finding.flags == ["VLLM_ATTENTION_BACKEND"]
    assert finding.replacement == "--attention-backend"
    assert any("config/attention.py" in each.source for each in finding.evidence)
    assert len(report.findings) == 1


def test_a_type_that_does_not_exist_is_refused_with_the_nearest() -> None:
    report = ask("vllm serve M --dtype float17", engine_version="0.33.0")

    assert one(report, "bad-value").replacement == "--dtype float16"
    assert ask("vllm serve M --dtype bfloat16", engine_version="0.9.0").num_errors == 0


def test_the_tag_of_the_image_decides_the_version() -> None:
    report = ask("docker run vllm/vllm-openai:v0.11.0 --model M")

    assert (report.version, report.version_from) == ("0.11.0", "tag of vllm/vllm-openai:v0.11.0")


def test_a_version_older_or_newer_than_the_record_is_said_to_be_stood_for() -> None:
    assert "newer" in ask("vllm serve M", engine_version="7.0").notes[0]
    assert "older" in ask("vllm serve M", engine_version="0.1.0").notes[0]


def test_secrets_do_not_reach_the_report() -> None:
    report = ask(
        "HF_TOKEN=hf_abcdefghijklmnopqrstuv1 vllm serve M --api-key topsecret1 --hf-token=hf_zyxwvutsrqponmlkj12345"
    )

    text = report.model_dump_json()
    assert "topsecret1" not in text
    assert "hf_abc" not in text
    assert "hf_zyx" not in text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine_version": "the new one"}, "no version"),
        ({"gpu": "no-such-gpu"}, "no device"),
        ({"model": "no-such-model"}, "no-such-model"),
    ],
)
def test_what_is_not_known_is_an_error_of_the_user(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask("vllm serve M", **given)


@pytest.mark.parametrize(
    ("command", "written", "version"),
    [("vllm serve M", "v0.33.0", "0.33.0"), ("llama-server -m M", "b11549", "11549")],
)
def test_a_version_is_taken_as_the_engine_writes_it(command: str, written: str, version: str) -> None:
    assert ask(command, engine_version=written).version == version


def test_a_value_that_a_shell_would_fill_in_fits() -> None:
    report = ask("vllm serve $MODEL --port $PORT --max-num-seqs ${N} --tensor-parallel-size 2", engine_version="0.33.0")

    assert report.num_errors == 0


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A package `sglang` with its own help, beside a Python that finds it: what an engine in a venv looks like."""
    package = tmp_path / "lib" / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "launch_server.py").write_text(
        textwrap.dedent(
            """
            import argparse
            from dataclasses import dataclass
            @dataclass
            class ServerArgs:
                model_path: str = ""
                tp_size: int = 1
                flux_capacitor: int = 0
            parser = argparse.ArgumentParser()
            parser.add_argument("--model-path")
            parser.add_argument("--tp-size", type=int, default=ServerArgs.tp_size)
            parser.add_argument("--flux-capacitor", type=int, default=ServerArgs.flux_capacitor)
            if __name__ == "__main__":
                args = parser.parse_args()
                print(args.model_path, args.tp_size)
            """
        )
    )
    about = tmp_path / "lib" / "sglang-0.9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.9.9\n")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path / "lib"}" exec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return python


def test_the_installed_engine_is_asked_and_its_source_scanned(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = f"{installed} -m sglang.launch_server --model-path M --tp-size 2 --flux-capacitor 88 --enable-mixed-chunk"

    for _ in range(2):  # the second time from the cache
        report = ask(words, ask_installed=True)

        assert (report.version, report.version_from) == ("0.9.9", "installed here")
        assert one(report, "dead").flags == ["--flux-capacitor"]
        assert "scan of" in one(report, "dead").evidence[0].source
        missing = next(finding for finding in report.findings if finding.flags == ["--enable-mixed-chunk"])
        assert missing.severity == "error"
        assert any(evidence.basis == "help" for evidence in missing.evidence)
        assert report.clean == ["--model-path", "--tp-size"]
    assert list((tmp_path / "cache" / "assay").iterdir())


def test_an_installed_engine_whose_help_fails_is_checked_against_the_record(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "lib" / "sglang" / "launch_server.py").write_text("raise SystemExit(3)\n")

    report = ask(f"{installed} -m sglang.launch_server --model-path M --enable-mixed-chunk", ask_installed=True)

    assert report.num_errors == 0
    assert report.version == "0.9.9"
    assert any("exit code 3" in note for note in report.notes)


NAMES = st.sampled_from(
    ["--tp", "--tp-size", "--enable-mscclpp", "--moe-a2a-backend", "--max-running-requests", "--ep-size", "--dp-size",
     "--kv-cache-dtype", "--cuda-graph-bs", "--unknown-thing", "--no-x", "--mem-fraction-static", "--cuda-graph-max-bs"]
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(["8", "-1", "0", "deepep", "none", "1e999", "nan", "{", "true"]), st.text(max_size=8)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAMES, VALUES), max_size=8), st.sampled_from(["0.5.4", "0.5.12", "0.5.23"]))
def test_any_flags_with_any_values_are_judged(pairs: list[tuple[str, str]], version: str) -> None:
    words = ["python", "-m", "sglang.launch_server", *(word for pair in pairs for word in pair)]

    report = doctor(
        Question(
            words=words, engine_version=version, ask_installed=False, gpu="RTX-PRO-6000", gpus=8, model="glm-5-nvfp4"
        )
    )

    names = {flag.name for flag in report.launch.flags}
    assert names <= {name for finding in report.findings for name in finding.flags} | set(report.clean)


@pytest.mark.parametrize(
    ("command", "version", "flags"),
    [
        ("python -m sglang.launch_server --model-path M --tp-size $((${N}*8)) --dp-size 2", "0.5.9", 3),
        ("python -m sglang.launch_server --model-path M --node-rank $(hostname -i | cut -f4) --tp-size 8", "0.5.9", 3),
        ('trtllm-serve "$M" --port="$PORT" --backend=pytorch > "$LOG" 2>&1 &', "1.1.0", 2),
        ("llama serve -hf org/model -np 1", "11549", 2),
    ],
)
def test_what_a_shell_would_expand_or_redirect_takes_no_flag_away(command: str, version: str, flags: int) -> None:
    report = ask(command, engine_version=version)

    assert report.launch.num_given == flags
    assert [one.kind for one in report.findings if one.kind != "default"] == []


@pytest.mark.parametrize(
    ("command", "version", "remedy"),
    [
        (
            "vllm serve M --enable-reasoning --reasoning-parser qwen3",
            "0.11.0",
            "leave it out: --reasoning-parser qwen3",
        ),
        ("sglang serve --model-path M --context-length 16K", "0.5.23", "write --context-length 16Ki"),
        ("llama-server -m m.gguf --flash-attn --jinja", "11549", "write --flash-attn on or"),
        ("sglang serve --model-path M --enable-flashmla", "0.5.9", "write --attention-backend flashmla"),
        ("sglang serve --model-path M --enable-piecewise-cuda-graph", "0.5.17", "=tc_piecewise"),
        ("sglang serve --model-path M --enable-piecewise-cuda-graph", "0.5.23", "=breakable"),
        ("sglang serve --model-path M --cuda-graph-backend-prefill tc_piecewise", "0.5.22", "correct the value"),
        ("vllm serve M --max-model-len auto", "0.13.0", "correct the value"),
    ],
)
def test_a_remedy_is_what_can_be_written(command: str, version: str, remedy: str) -> None:
    report = ask(command, engine_version=version)

    assert remedy in next(one for one in report.findings if one.kind != "default").remedy


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("vllm serve M --enable-chunked-prefill --max-model-len 32k --max-num-batched-tokens 16K", "0.10.0"),
        (
            "vllm serve M --enable-auto-tool-choice --tool-call-parser one_of_a_plugin --mm-processor-device cuda:1",
            "0.28.0",
        ),
        ("vllm serve M --max-model-len auto", "0.14.0"),
        ("sglang serve --model-path M --context-length 1M --tool-call-parser qwen25", "0.5.10"),
        ("python -m sglang.launch_server --model-path M --enable-deepep-moe --deepep-mode normal", "0.4.7"),
        ('exec llama-server -m "$MODEL" -fa on --temp 0.7 --min-p 0 ${MMPROJ:+--mmproj "$MMPROJ"} $SPEC "$@"', "11549"),
    ],
)
def test_what_real_commands_say_is_no_finding(command: str, version: str) -> None:
    assert ask(command, engine_version=version).findings == []


@pytest.mark.parametrize(
    ("command", "flag", "remedy"),
    [
        ("vllm serve M --port 1 \\ \n", "' '", "has to be the last character"),
        ("vllm serve M \u2014max-num-seqs=4", "\u2014max-num-seqs=4", "write --max-num-seqs=4: "),
        ("vllm serve M --served-model-name \u201ca b\u201d", "b\u201d", "straight quotation marks"),
    ],
)
def test_a_command_that_a_text_editor_changed_is_told_what_to_change_back(command: str, flag: str, remedy: str) -> None:
    found = ask(command, engine_version="0.26.0").findings

    assert [(one.kind, one.flags) for one in found] == [("stray-word", [flag])]
    assert remedy in found[0].remedy


@pytest.mark.parametrize(
    "between", ["\n  ", " \\\n  # --max-model-len 4096 \\\n  "], ids=["no backslash", "a comment between"]
)
def test_flags_behind_the_end_of_the_command_are_told(between: str) -> None:
    report = ask(f"vllm serve M \\\n  --max-num-seqs 4{between}--port 1 --seed 2\necho done", engine_version="0.26.0")

    assert [(one.kind, one.severity, one.flags) for one in report.findings] == [("stray-word", "warning", ["--port"])]
    assert report.clean == ["--max-num-seqs"]


def test_a_flag_that_is_wrong_in_the_same_way_twice_is_told_once() -> None:
    found = ask("vllm serve M --foo 1 --foo 2", engine_version="0.26.0").findings

    assert [one.flags for one in found] == [["--foo"]]


def test_words_that_a_shell_fills_in_are_listed_as_not_decided() -> None:
    report = ask("llama-server -m m.gguf $SPEC --temp 0.7 stray", engine_version="11549")

    assert [(one.flags, one.reason) for one in report.undecided] == [(["$SPEC"], "a shell fills it in")]
    assert [one.kind for one in report.findings] == ["stray-word"]


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ("""--compilation-config '{"level": 3}'""", "renamed", "0.17.0 was the last checked version that has it"),
        ("--compilation-config.bogus 1", "unknown", "takes no key bogus"),
        ("""--attention-config '{"bakend": "FLASHINFER"}'""", "unknown", "nearest: backend"),
        ("""--speculative-config '{"num_spec_tokens": 5}'""", "unknown", "nearest: num_speculative_tokens"),
        ("""--kv-transfer-config '{"foo": 1}'""", "unknown", "takes no key foo"),
        ("--compilation-config.pass_config.enable_sp true", "removed", "0.31.0 was the last checked version"),
        ("""-cc.pass_config '{"fuse_norm_quan": true}'""", "unknown", "nearest: pass_config.fuse_norm_quant"),
        ("""--compilation-config '{"static_forward_context": {}}'""", "unknown", "takes no key static_forward_context"),
    ],
)
def test_a_key_that_the_class_of_a_flag_does_not_have_is_an_error(given: str, kind: str, told: str) -> None:
    report = ask(f"vllm serve M {given}", engine_version="0.32.0")

    assert (one(report, kind).severity, report.clean) == ("error", [])
    assert told in one(report, kind).what


def test_a_level_that_is_none_is_an_error() -> None:
    report = ask("vllm serve M -O9", engine_version="0.32.0")

    assert (one(report, "bad-value").severity, report.clean) == ("error", [])


@pytest.mark.parametrize(
    ("version", "severity", "told"),
    [
        ("0.9.0", "error", "takes no key kv_conector; nearest: kv_connector"),
        ("0.11.0", "warning", "and leaves it out; nearest: kv_connector"),
        ("0.16.0", "error", "takes no key kv_conector; nearest: kv_connector"),
        ("0.34.0", "warning", "0.34.0 itself was not read"),
    ],
)
def test_a_key_that_a_version_leaves_out_and_one_of_a_version_that_was_not_read_are_warnings(
    version: str, severity: str, told: str
) -> None:
    report = ask("""vllm serve M --kv-transfer-config '{"kv_conector": "x"}'""", engine_version=version)

    assert one(report, "unknown").severity == severity
    assert told in one(report, "unknown").what


@pytest.mark.parametrize(
    "given",
    [
        """--kv-transfer-config '{"kv_connector_extra_config": {"anything": {"at": "all"}}}'""",
        """--limit-mm-per-prompt '{"image": 4, "thermal": 1}'""",
        """--hf-overrides '{"anything": 1}'""",
        "--compilation-config.inductor_compile_config.anything true",
        "--compilation-config.cudagraph_capture_sizes+ 1,2",
        "--speculative-config $SPEC",
    ],
)
def test_what_is_in_an_object_of_no_known_class_is_not_judged(given: str) -> None:
    assert ask(f"vllm serve M {given}", engine_version="0.33.0").findings == []


@pytest.mark.parametrize(
    ("given", "version", "reason"),
    [
        ("""--speculative-config '{"quantization": "fp8"}'""", "0.32.0", "values inside were not checked"),
        ("""--speculative-config '{"num_speculative_tokens": 5}'""", "0.9.0", "values inside were not checked"),
        ("""--mm-processor-kwargs '{"num_crops": 5}'""", "0.26.0", "keys and values inside were not checked"),
        ("""--compilation-config.inductor_passes '{"a": 1}'""", "0.32.0", "values inside were not checked"),
        ("-O.level $LEVEL", "0.11.0", "values inside were not checked"),
        ("--speculative-config eagle", "0.26.0", "a word in place of JSON was not checked"),
    ],
)
def test_what_is_inside_of_json_and_was_not_checked_is_not_counted_as_right(
    given: str, version: str, reason: str
) -> None:
    report = ask(f"vllm serve M {given}", engine_version=version)

    assert (report.findings, report.clean) == ([], [])
    assert [each.reason for each in report.undecided] == [reason]


def test_the_value_of_a_key_that_holds_a_secret_is_not_repeated() -> None:
    report = ask("""vllm serve M --watermark-config '{"key": "hunter2"}'""", engine_version="0.33.0")

    assert "hunter2" not in one(report, "bad-value").what


def test_pairs_in_place_of_json_are_told_with_the_json_that_they_are() -> None:
    command = "vllm serve M --limit-mm-per-prompt image=5,video=2"

    found = one(ask(command, engine_version="0.11.0"), "bad-value")

    assert (found.severity, found.replacement) == ("error", """--limit-mm-per-prompt '{"image": 5, "video": 2}'""")
    assert ask(command, engine_version="0.9.2").findings == []


COMPOSE = """
services:
  web:
    image: nginx:1.27
    command: nginx
  llm:
    image: vllm/vllm-openai:v0.14.0
    environment: [VLLM_USE_V1=0]
    command: >
      --model org/model
      --swap-space 8 --foo
"""
POD = """
kind: Pod
spec:
  containers:
  - name: llm
    image: lmsysorg/sglang:v0.5.9
    env:
    - {name: SGLANG_ENABLE_SPEC_V2, value: "1"}
    command: ["python3", "-m", "sglang.launch_server"]
    args: ["--model-path", "org/model", "--tp", "8", "--foo"]
"""


@pytest.mark.parametrize(
    ("text", "engine", "version", "variable"),
    [(COMPOSE, "vllm", "0.14.0", "VLLM_USE_V1"), (POD, "sglang", "0.5.9", "SGLANG_ENABLE_SPEC_V2")],
)
def test_a_container_that_a_file_describes_is_read_as_the_command_that_it_is(
    text: str, engine: str, version: str, variable: str
) -> None:
    report = ask(text)

    assert (report.engine, report.version, report.model) == (engine, version, "org/model")
    assert [one.flags for one in report.findings if one.kind == "unknown"] == [["--foo"]]
    assert list(report.launch.environment) == [variable]


TWO = (
    COMPOSE
    + """
  other:
    image: ${REGISTRY:-lmsysorg}/sglang:${TAG:-v0.5.9}
    command: [python3, -m, sglang.launch_server, --model-path, org/other, --tp, "${TP:-8}", --bar]
"""
)


@pytest.mark.parametrize(
    ("words", "version", "unknown", "note"),
    [
        ("docker compose -f {} up -d", "0.14.0", ["--foo"], "it is the first of 2 that start an engine"),
        ("docker-compose --file={} -p x up other && sleep 3", "0.5.9", ["--bar"], "in place of ${...} is not known"),
        ("sudo podman compose -f {} -f {}.more run --rm llm", "0.20.0", [], "read of "),
    ],
)
def test_the_files_that_a_command_of_compose_names_are_read(
    tmp_path: Path, words: str, version: str, unknown: list[str], note: str
) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text(TWO, encoding="utf-8")
    (tmp_path / "compose.yaml.more").write_text(
        "services: {llm: {image: 'vllm/vllm-openai:v0.20.0', command: '--model M'}}", encoding="utf-8"
    )

    report = ask(words.replace("{}", str(path)))

    assert (report.version, [one.flags[0] for one in report.findings if one.kind == "unknown"]) == (version, unknown)
    assert note in report.notes[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("docker compose -f {}/none.yaml up", "is not here"),
        ("docker compose -f {}/compose.yaml up web", "no container .* as web"),
        ("kubectl apply -f {}/compose.yaml -n llm", "no container"),
        ("docker compose -f {}/broken.yaml up", "broken.yaml is no YAML: line 2: mapping values are not allowed"),
        ("kubectl apply -f https://u:pw-1234@x.org/{}.yaml", r"https://u:\[redacted\]@x.org/.* is an address"),
        ("docker compose -f - up", "the file is standard input"),
    ],
)
def test_a_file_that_is_not_here_or_starts_no_engine_is_said(tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "compose.yaml").write_text("services: {web: {image: nginx, command: nginx}}", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("image: vllm\ncommand: --profiler-config {a: 1}\n", encoding="utf-8")

    with pytest.raises(UsageError, match=said):
        ask(words.replace("{}", str(tmp_path)))


@pytest.mark.parametrize(
    "text", ["image: x\ncommand: [a", "image: &a [*a]\nargs: *a", "image: nginx:1\ncommand: nginx"]
)
def test_a_file_that_describes_no_engine_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        ask(text)


@pytest.mark.parametrize("command", ["[[--seed, '1']]", "[--model, M, --port: 8000]"])
def test_a_command_with_more_than_words_in_its_list_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match="`command` of the container with an engine holds a list or a mapping"):
        ask(f"image: vllm/vllm-openai:v0.20.0\ncommand: {command}")


@pytest.mark.parametrize(
    "given",
    [
        "--max-num-seqs '${N}'",
        "--max-num-seqs=$N --max-num-batched-tokens 64",
        "--max-num-seqs 64 --max-num-batched-tokens '$B'",
        "--gpu-memory-utilization '{{ g }}'",
    ],
)
def test_a_value_that_something_else_fills_in_fits_every_rule(given: str) -> None:
    report = ask(f"vllm serve M {given}", engine_version="0.33.0", gpu="h100", gpus=8)

    assert (report.findings, report.undecided) == ([], [])


def test_a_text_in_place_of_a_number_is_one_finding_and_decides_no_rule() -> None:
    report = ask("vllm serve M --max-num-seqs abc --max-num-batched-tokens '$B'", engine_version="0.33.0")

    assert [one.kind for one in report.findings] == ["bad-value"]
    assert report.undecided == []


def test_an_engine_that_is_elsewhere_or_installed_for_the_command_is_not_sought_here() -> None:
    for command, version_from in (
        ("ssh box vllm serve M", "newest recorded version"),
        ("uv run --with vllm==0.20.0 vllm serve M", "vllm==0.20.0 of the command"),
    ):
        assert doctor(Question(words=[command])).version_from == version_from


@pytest.mark.parametrize("value", ['{"level": 3', 'level": 3}', "{level: 3}", "[1, 2"])
def test_json_that_is_none_is_an_error(value: str) -> None:
    report = doctor(
        Question(
            words=["vllm", "serve", "M", "--compilation-config", value], engine_version="0.26.0", ask_installed=False
        )
    )

    assert one(report, "bad-value").severity == "error"


@pytest.mark.parametrize("value", ["{method:ngram}", "{'method':'ngram'}"])
def test_json_that_a_shell_took_the_marks_from_is_told_how_to_be_written(value: str) -> None:
    words = ["vllm", "serve", "M", "--speculative-config", value]

    found = one(doctor(Question(words=words, engine_version="0.20.0", ask_installed=False)), "bad-value")

    assert "the whole in single ones" in found.remedy


def test_words_in_place_of_a_number_of_layers_are_taken_and_flags_of_an_older_build_have_their_new_form() -> None:
    report = ask("llama-server -m m.gguf -ngl all --no-mmap", engine_version="11549")

    assert [(each.kind, each.replacement) for each in report.findings] == [("renamed", "--load-mode none")]


def test_the_beginning_of_a_flag_is_near_to_it() -> None:
    assert one(ask("trtllm-serve M --tp 8", engine_version="1.1.0"), "unknown").replacement == "--tp_size"


def test_a_rule_names_the_newest_wheel_that_it_was_read_in() -> None:
    report = ask("vllm serve M --enforce-eager --max-cudagraph-capture-size 16", engine_version="0.26.0")

    assert "up to the 0.33.0 wheel" in one(report, "contradiction").evidence[0].source


def test_an_option_of_the_file_that_is_written_as_a_flag_is_told_its_place() -> None:
    report = ask("trtllm-serve M --kv_cache_dtype fp8", engine_version="1.0.0")

    assert "it is the option kv_cache_config.dtype of the file" in one(report, "unknown").what
    assert "`kv_cache_config: {dtype: fp8}`" in one(report, "unknown").remedy


def test_of_a_version_that_was_not_read_what_is_not_there_yet_is_a_warning_and_an_absent_file_is_not_right() -> None:
    report = ask("trtllm-serve M --config nowhere.yaml", engine_version="1.0.0")

    assert (one(report, "not-yet").severity, report.clean) == ("warning", [])
    assert [each.flags for each in report.undecided] == [["--config"]]
