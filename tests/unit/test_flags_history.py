"""Recorded histories: whole, readable, and answering what a version takes."""

from __future__ import annotations

import re

import pytest

from assay.flags import versions
from assay.flags.check import check
from assay.flags.command import launch, parse
from assay.flags.consumers import unread
from assay.flags.dialect import dialects
from assay.flags.existence import missing
from assay.flags.facts import Facts
from assay.flags.history import history
from assay.flags.knowledge import from_history
from assay.flags.rules import rules
from assay.flags.spec import KINDS
from assay.plan.expression import evaluate
from assay.plan.expression_syntax import parse as parse_expression
from assay.records.doctor import GivenFlag, Launch


@pytest.mark.parametrize("engine", ["sglang", "vllm", "trtllm", "llamacpp"])
def test_every_life_of_a_flag_is_a_run_of_checked_versions(engine: str) -> None:
    past = history(engine)

    assert list(past.checked) == sorted(past.checked, key=versions.key)
    for name, spans in past.spans.items():
        assert spans, name
        for span in spans:
            assert {span.first, span.last} <= set(past.checked), name
            assert versions.key(span.first) <= versions.key(span.last), name
            assert span.spec.kind in KINDS
        edges = [versions.key(edge) for span in spans for edge in (span.first, span.last)]
        assert edges == sorted(edges), name


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_the_versions_that_were_asked_for_are_recorded(engine: str) -> None:
    wanted = {"sglang": {"0.5.4", "0.5.9", "0.5.12", "0.5.23"}, "vllm": {"0.11.0", "0.14.0", "0.20.0", "0.33.0"}}

    assert wanted[engine] <= set(history(engine).checked)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_every_rule_reads_and_names_flags_that_once_existed(engine: str) -> None:
    past = history(engine)

    assert len({rule.id for rule in rules(engine)}) == len(rules(engine))
    for rule in rules(engine):
        for name in rule.flags:
            assert past.of(name), f"{rule.id}: {name}"
        for text in (rule.when, *rule.values.values()):
            parse_expression(text)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_every_condition_has_an_answer_or_asks_for_a_fact(engine: str) -> None:
    """On an empty command and an unknown machine, nothing raises: conditions are decided or left open."""
    command = Launch(engine=dialects()[engine].engine, program=[])
    for version in ("0.5.9", "0.5.23") if engine == "sglang" else ("0.11.0", "0.33.0"):
        facts = Facts(command, from_history(engine, version))
        for rule in rules(engine):
            if versions.within(version, rule.since, rule.until):
                assert evaluate(rule.when, facts.names) in {True, False, None}, rule.id


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_rule_that_no_version_ended_says_up_to_which_wheel_it_was_read(engine: str) -> None:
    past = history(engine)
    for rule in rules(engine):
        of_a_wheel = any("wheel" in source for source in rule.source)
        assert not of_a_wheel or rule.until or rule.read, f"{rule.id}: until, or read"
        assert rule.read is None or rule.read in past.checked, rule.id
        lives = [span for span in past.of(rule.flags[0]) if versions.within(span.last, rule.since, None)]
        assert any(versions.within(span.first, None, rule.until) for span in lives), f"{rule.id} holds for no version"


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_a_rule_decides_on_flags_that_every_version_of_its_range_has(engine: str) -> None:
    known = {version: from_history(engine, version) for version in history(engine).checked}
    for rule in rules(engine):
        asked = set(re.findall(r'flag\("([^"]+)"\)', " ".join([rule.when, *rule.values.values()])))
        asked -= {name for name in asked if f'flag("{name}") == None' in rule.when}
        holding = [
            each for v, each in known.items() if versions.within(v, rule.since, rule.until) and each.find(rule.flags[0])
        ]
        lacking = {(each.version, name) for each in holding for name in asked if each.find(name) is None}
        assert not lacking, f"{rule.id}: {sorted(lacking)[:3]}"


def test_a_rule_about_a_version_that_was_not_read_warns_and_says_so() -> None:
    words = "--enable-dbo --model M"
    of_newest, of_next = (
        check(launch(parse(f"vllm serve {words}".split()), known), known, box={"vendor": "nvidia"}).findings
        for known in (from_history("vllm", "0.33.0"), from_history("vllm", "0.99.0"))
    )

    assert [(one.rule, one.severity) for one in of_newest if one.rule] == [("dbo-backend-0-33", "error")]
    told = next(one for one in of_next if one.rule == "dbo-backend-0-33")
    assert told.severity == "warning"
    assert told.what.endswith("(so in 0.33.0, the last one read)")


def test_a_patch_release_has_the_flags_of_its_release() -> None:
    checked = history("sglang").checked

    assert versions.standing_for("0.5.9.post1", checked) == "0.5.9"
    assert versions.standing_for("0.5.9+cu130", checked) == "0.5.9"
    assert versions.standing_for("9.0", checked) == history("sglang").newest
    assert versions.standing_for("0.1.0", checked) is None


def test_an_abbreviation_is_one_only_where_it_fits_one_flag() -> None:
    knowledge = from_history("sglang", "0.5.23")

    assert knowledge.resolve("--tp").abbreviated
    assert knowledge.resolve("--cuda-graph-max").candidates
    assert knowledge.resolve("--nothing-like-it").spec is None


def test_vllm_reads_underscores_negations_and_dotted_keys() -> None:
    knowledge = from_history("vllm", "0.33.0")

    assert knowledge.resolve("--max_num_seqs").spec is knowledge.find("--max-num-seqs")
    assert knowledge.resolve("--no-enable-prefix-caching").negated
    assert knowledge.resolve("--compilation-config.cudagraph_mode").key == "cudagraph_mode"
    assert knowledge.resolve("-O3").key == "3"


@pytest.mark.parametrize(
    ("flag", "version", "kind", "said"),
    [
        ("--attention-config", "0.12.0", "not-yet", "does not exist yet: 0.13.0 is the first"),
        (
            "--attention-config.backend",
            "0.12.0",
            "not-yet",
            "is a part of --attention-config, which does not exist yet",
        ),
        ("-ac.backend", "0.12.0", "not-yet", "0.13.0 is the first"),
        ("--no-such-config.key", "0.12.0", "unknown", "is not known"),
    ],
)
def test_a_key_of_a_flag_of_another_version_is_told_with_that_version(
    flag: str, version: str, kind: str, said: str
) -> None:
    knowledge = from_history("vllm", version)

    finding = missing(GivenFlag(name=flag, values=["x"]), knowledge.resolve(flag), knowledge)

    assert (finding.kind, finding.replacement if kind == "not-yet" else None) == (kind, None)
    assert said in finding.what


def test_a_field_that_is_declared_and_handed_on_but_never_used_is_unread(tmp_path) -> None:
    (tmp_path / "server_args.py").write_text(
        "class Args:\n"
        "    used: int = 1\n    handed_on: int = 1\n    dead: int = 1\n    looked_up: int = 1\n    odd: int = 1\n"
        "def add(parser):\n    parser.add_argument('--dead', default=Args.dead)\n"
        "def make(self):\n    return Config(handed_on=self.handed_on)\n"
    )
    (tmp_path / "model.py").write_text("def run(args):\n    return args.used + getattr(args, 'looked_up')\n")
    (tmp_path / "broken.py").write_text("def odd(:\n")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_it.py").write_text("print(args.dead)\n")

    names = ["used", "handed_on", "dead", "looked_up", "odd", "declared_nowhere"]
    assert unread(tmp_path, names) == {"handed_on", "dead"}
