"""Improvement documents: written once, edited by people, read back, never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.catalogue.about import About
from assay.catalogue.documents import FolderDocuments
from assay.errors import RecordError, UsageError
from assay.records.estimate import Range
from assay.records.hypothesis import Hypothesis, Optimization
from assay.records.reasoning import CeilingHere, Condition, RangeBasis, Reasoning, Surroundings


def hypothesis_of(**changes: object) -> Hypothesis:
    fields: dict[str, object] = {
        "id": "try-this",
        "title": "Try this",
        "tier": 1,
        "engine": "llamacpp",
        "flags": {"--flash-attn": "off", "--parallel": 8, "--swa-full": True},
        "mechanism": "It changes something.",
        "rationale": "Because.",
        "predicted": (0.0, 0.1),
        "numerics": "reordered",
        "risk": "Little.",
    }
    return Hypothesis(
        number=1,
        optimization=Optimization.model_validate({**fields, **changes}),
        predicted=(0.0, 0.1),
        document="improvements/01-try-this.md",
    )


def test_what_was_written_is_read_back_the_same_even_values_that_yaml_would_bend(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    assert documents.read() == [hypothesis_of()]


SAFE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=30)
VALUES = st.one_of(st.booleans(), st.integers(-(2**31), 2**31), SAFE)


@given(st.dictionaries(st.sampled_from(["--a", "--b-c", "-d"]), VALUES), SAFE)
def test_any_flags_and_titles_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, flags: dict[str, object], title: str
) -> None:
    documents = FolderDocuments(tmp_path_factory.mktemp("campaign"))
    hypothesis = hypothesis_of(flags=flags, title=title)
    documents.write([hypothesis])
    assert documents.read() == [hypothesis]


def test_a_persons_edits_are_honoured_and_never_overwritten(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    path = tmp_path / "improvements" / "01-try-this.md"
    text = path.read_text().replace("--parallel: 8", "--parallel: 16").replace("approved: false", "approved: true")
    path.write_text(text.replace("## Notes\n", "## Notes\n\nmind the context size\n"))
    documents.write([hypothesis_of()])
    read = documents.read()[0]
    assert read.optimization.flags["--parallel"] == 16
    assert read.approved
    documents.note_verdict(read, "**adopted** at last")
    final = path.read_text()
    assert "mind the context size" in final
    assert "**adopted** at last" in final
    assert "not tried yet" not in final


def test_noting_a_verdict_twice_changes_nothing_more(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    path = tmp_path / "improvements" / "01-try-this.md"
    documents.note_verdict(hypothesis_of(), "**worse** by far")
    once = path.read_text()
    documents.note_verdict(hypothesis_of(), "**worse** by far")
    assert path.read_text() == once


def test_a_document_that_a_person_dropped_in_becomes_a_hypothesis(tmp_path: Path) -> None:
    folder = tmp_path / "improvements"
    folder.mkdir()
    (folder / "50-my-idea.md").write_text("---\nid: my-idea\ntitle: Mine\nflags:\n  --poll: 0\n---\n\nJust try.\n")
    read = FolderDocuments(tmp_path).read()[0]
    assert (read.id, read.number, read.optimization.flags) == ("my-idea", 50, {"--poll": 0})


@pytest.mark.parametrize(
    ("front", "words"),
    [
        ("id: x\ntitle: [", "line"),
        ("id: x\ntitle: t\nflags: {--poll: 0}\nnonsense: 1", "nonsense"),
        ("id: x\ntitle: t\ntier: nine", "tier"),
        ("id: x\ntitle: t\nflags:\n  --flash-attn: off", "bare on, off"),
        ("id: x\ntitle: t\nstatus: perhaps", "status"),
    ],
)
def test_a_broken_document_is_refused_with_its_name_and_what_to_mend(tmp_path: Path, front: str, words: str) -> None:
    folder = tmp_path / "improvements"
    folder.mkdir()
    path = folder / "01-x.md"
    path.write_text(f"---\n{front}\n---\nprose\n")
    with pytest.raises(UsageError) as caught:
        FolderDocuments(tmp_path).read()
    assert "improvements/01-x.md" in caught.value.message
    assert words in caught.value.message
    assert caught.value.hint
    assert "prose" in path.read_text()


def test_two_documents_with_one_id_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "improvements"
    folder.mkdir()
    for name in ("01-a.md", "02-b.md"):
        (folder / name).write_text("---\nid: same\ntitle: t\nflags: {--poll: 0}\n---\n")
    with pytest.raises(UsageError, match="both have the id"):
        FolderDocuments(tmp_path).read()


ODD = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PROSE = st.one_of(ODD, st.sampled_from(["## Risks", "# x\n\\## y", "<!-- assay:verdict -->", "---", "a\n---\nb"]))
PROSE = PROSE.map(lambda text: text.replace("\r", "\n").strip())
PROOFS = ODD.filter(lambda text: text.strip() and not {";", "|"} & set(text)).map(lambda text: f"log.x = {text}")
SCALARS = st.one_of(
    st.sampled_from(
        ["off", "on", "yes", "null", "~", "0x3", "010", "1:30", "1e5", "1_000", "2026-01-01", "", "=", "-"]
    ),
    st.sampled_from(["# no", "a: b", "'", '"', "{", "---", "*x", "&x", "!t", "true", "1.0", ".5", ".inf", "<<"]),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    ODD,
)


@settings(deadline=None)
@given(
    flags=st.dictionaries(ODD.filter(bool), SCALARS, max_size=4),
    title=ODD,
    risk=PROSE,
    rationale=PROSE,
    verify=PROOFS,
    expectation=ODD,
)
def test_odd_values_and_odd_prose_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    flags: dict[str, object],
    title: str,
    risk: str,
    rationale: str,
    verify: str,
    expectation: str,
) -> None:
    documents = FolderDocuments(tmp_path_factory.mktemp("campaign"))
    hypothesis = hypothesis_of(
        flags=flags,
        title=title,
        risk=risk,
        rationale=rationale,
        verify=verify,
        remove_flags=[title],
        expectation=expectation,
    )
    documents.write([hypothesis])

    (read,) = documents.read()

    assert read == hypothesis
    assert [type(value) for value in read.optimization.flags.values()] == [type(value) for value in flags.values()]
    documents.note_verdict(read, "**worse**")
    assert documents.read() == [hypothesis]


def document(tmp_path: Path, front: str, name: str = "01-x.md", body: str = "prose\n") -> Path:
    path = tmp_path / "improvements" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(f"---\n{front}\n---\n{body}".encode())
    return path


def test_a_value_in_quotes_stays_the_word_it_is(tmp_path: Path) -> None:
    document(tmp_path, 'id: x\nflags:\n  --flash-attn: "off"\n  --cpu-mask: 0xff\n  --repack: false')

    assert FolderDocuments(tmp_path).read()[0].optimization.flags == {
        "--flash-attn": "off",
        "--cpu-mask": "0xff",
        "--repack": False,
    }


@pytest.mark.parametrize(
    ("front", "line", "words"),
    [
        ("id: x\nflags:\n  --poll: [1]", 4, "flags.--poll"),
        ("id: x\ntitel: t\nflags: {--poll: 0}", 3, "titel"),
        ("id: x\n\nflags:\n  --poll: 0\npredicted: [0.2, 0.1]", 6, "0.2 is above 0.1"),
        ("id: x\nflags: {--poll: 0}\nid: y", 4, "stands twice"),
        ("id: x\nflags:\n  --poll: no", 4, "bare on, off"),
        ("id: x\ntitle: a: b", 3, "mapping values"),
        ("id: X Y", 2, "id"),
        ("- a\n- b", 2, "key: value"),
        ("id: x\nartifact: {type: Q9_9}", 3, "artifact.type"),
        ("id: x\nflags: {--poll: 0}\nverify: look at the log", 4, "'look at the log' is not `path = value`"),
        ("id: x\nflags:\n  --poll: " + 21 * "[" + 21 * "]", 4, "nested deeper than 20"),
        ("id: x\nflags: " + 2000 * "{a: ", 3, "nested deeper than 20"),
    ],
)
def test_a_mistake_in_a_document_is_named_with_its_line(tmp_path: Path, front: str, line: int, words: str) -> None:
    path = document(tmp_path, front)
    before = path.read_bytes()
    with pytest.raises(UsageError) as caught:
        FolderDocuments(tmp_path).read()
    assert f"improvements/01-x.md:{line}: " in caught.value.message
    assert words in caught.value.message
    assert caught.value.hint
    assert path.read_bytes() == before


def test_brackets_in_a_text_are_no_nesting(tmp_path: Path) -> None:
    value = 40 * "[" + 40 * "]"
    document(tmp_path, f"id: x\nflags: {{--poll: '{value}'}}")

    assert FolderDocuments(tmp_path).read()[0].optimization.flags == {"--poll": value}


@pytest.mark.parametrize("text", ["", "just prose\n", "---\nid: x\n", "prose\n---\nid: x\n---\n"])
def test_a_document_without_front_matter_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "improvements").mkdir()
    (tmp_path / "improvements" / "01-x.md").write_text(text)
    with pytest.raises(UsageError, match="front matter"):
        FolderDocuments(tmp_path).read()


def test_prose_that_a_person_rewrites_is_read_back(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    path = tmp_path / "improvements" / "01-try-this.md"
    path.write_text(path.read_text().replace("Little.", "Much,\nafter all."))
    assert documents.read()[0].optimization.risk == "Much,\nafter all."


def test_an_edited_prediction_leaves_the_catalogues_own_beside_it(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    path = tmp_path / "improvements" / "01-try-this.md"
    path.write_text(path.read_text().replace("predicted: [0.0, 0.1]", "predicted: [0.2, 0.4]"))
    read = documents.read()[0]
    assert (read.predicted, read.optimization.predicted) == ((0.2, 0.4), (0.0, 0.1))


def test_a_document_saved_by_another_system_reads_the_same(tmp_path: Path) -> None:
    document(tmp_path, "id: x\r\nflags: {--poll: 0}\r", body="## Risks\r\n\r\nMany.\r\n")
    path = tmp_path / "improvements" / "01-x.md"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"---\n", b"---\r\n"))
    read = FolderDocuments(tmp_path).read()[0]
    assert (read.optimization.flags, read.optimization.risk) == ({"--poll": 0}, "Many.")


def test_documents_without_a_number_come_last_with_numbers_of_their_own(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    document(tmp_path, "flags: {--poll: 0}", name="an-idea.md")
    document(tmp_path, "flags: {--poll: 1}", name="better.md")
    assert [(h.number, h.id) for h in documents.read()] == [(1, "try-this"), (2, "an-idea"), (3, "better")]


def test_a_persons_own_document_stands_for_the_catalogues(tmp_path: Path) -> None:
    document(tmp_path, "id: try-this\nflags: {--poll: 0}", name="mine.md")
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    assert [h.document for h in documents.read()] == ["improvements/mine.md"]


def test_a_verdict_whose_markers_were_damaged_takes_nothing_of_the_text_with_it(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    path = tmp_path / "improvements" / "01-try-this.md"
    path.write_text(path.read_text().replace("<!-- /assay:verdict -->", "a person's last words"))
    for verdict in ("**worse** <!-- /assay:verdict -->", "**better**"):
        documents.note_verdict(hypothesis_of(), verdict)
    text = path.read_text()
    assert "a person's last words" in text
    assert "**better**" in text
    assert "**worse**" not in text


def test_a_document_that_was_removed_stays_removed(tmp_path: Path) -> None:
    FolderDocuments(tmp_path).note_verdict(hypothesis_of(), "**worse**")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_and_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "improvements").write_text("a file")
    with pytest.raises(RecordError, match="cannot write"):
        FolderDocuments(tmp_path).write([hypothesis_of()])
    assert [path.name for path in tmp_path.iterdir()] == ["improvements"]


def test_noting_a_verdict_keeps_the_permissions_and_leaves_one_file(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()])
    path = tmp_path / "improvements" / "01-try-this.md"
    path.chmod(0o640)
    documents.note_verdict(hypothesis_of(), "**worse**")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_document_in_the_guide_is_a_valid_one(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "catalogue-entry.md").read_text()
    (tmp_path / "improvements").mkdir()
    (tmp_path / "improvements" / "busy.md").write_text(guide.split("```markdown\n")[1].split("```")[0])
    read = FolderDocuments(tmp_path).read()[0]
    assert (read.id, read.optimization.flags) == ("busy-poll", {"--poll": 100})
    assert read.optimization.rationale == "The steps are very short here."


OLD = """---
id: old
title: Old
tier: 1
flags:
  --poll: 1
numerics: exact
predicted: [0.0, 0.1]
---

# Old

## Rationale

Because.

## Mechanism

It changes something.

## Risks

Little.
"""


def test_a_document_of_an_earlier_assay_is_read_by_its_own_headings(tmp_path: Path) -> None:
    (tmp_path / "improvements").mkdir()
    (tmp_path / "improvements" / "01-old.md").write_text(OLD)

    (read,) = FolderDocuments(tmp_path).read()

    assert (read.optimization.rationale, read.optimization.mechanism) == ("Because.", "It changes something.")
    assert read.optimization.risk == "Little."


def about() -> About:
    range_ = RangeBasis(low=0.0, high=0.03, low_from="the prior", high_from="the estimate's ceiling (Amdahl)")
    ceiling = CeilingHere(
        mechanism="mscclpp", title="MSCCL++", gain=Range(low=0.0, mid=0.01, high=0.03), touched_share=0.14,
        applies=True, reason="157 all-reduces of 786 kB",
    )  # fmt: skip
    reasoning = Reasoning(
        id="try-this", title="Try this", tier=1, outcome="planned", prior=(0.0, 0.1), ceiling=ceiling, range=range_,
        conditions=[Condition(text="layout.tp > 1", holds=True, values={"layout.tp": "8"})], in_regime=False,
    )  # fmt: skip
    return About(
        reasoning=reasoning, surroundings=Surroundings(sentences=["8x a GPU."]), command="serve --poll 1",
        objective="output tokens/s", min_effect=0.02,
    )  # fmt: skip


def test_the_numbers_of_the_target_stand_in_the_document_and_are_not_read_back(tmp_path: Path) -> None:
    documents, written = FolderDocuments(tmp_path), hypothesis_of(regime="Small batches.")
    documents.write([written], {"try-this": about()})
    text = (tmp_path / "improvements" / "01-try-this.md").read_text()

    for words in (
        "- 8x a GPU.",
        "It touches 14% of that step: 157 all-reduces of 786 kB.",
        "`layout.tp > 1` (layout.tp is 8)",
        "The prior alone said 0% to +10%.",
        "Small batches. This workload lies outside of that.",
        "```sh\nserve --poll 1\n```",
        "within ±2% (no-effect)",
        "A gain shown to be above +3% would refute the estimate",
    ):
        assert words in text, words
    assert documents.read() == [written]


def test_variables_requirements_and_risks_survive_the_round_trip(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    changes = {
        "env": {"NCCL_PROTO": "LL", "A": "1"},
        "requires": ["other"],
        "risks": [{"what": "It crashes", "source": "a/b#1"}],
        "needs_work": "a patch",
        "versions": ">=1",
    }
    written = hypothesis_of(**changes, risk="").model_copy(update={"waits_for": ["other"]})
    documents.write([written])
    text = (tmp_path / "improvements" / "01-try-this.md").read_text()

    assert "- It crashes (a/b#1)" in text
    assert "It cannot be launched yet. What has to be made first: a patch" in text
    assert "waits until other is adopted" in text
    assert documents.read() == [written]


def test_what_a_person_writes_above_the_numbers_is_kept(tmp_path: Path) -> None:
    documents = FolderDocuments(tmp_path)
    documents.write([hypothesis_of()], {"try-this": about()})
    path = tmp_path / "improvements" / "01-try-this.md"
    path.write_text(path.read_text().replace("Because.", "Because I measured it."))

    assert documents.read()[0].optimization.rationale == "Because I measured it."
