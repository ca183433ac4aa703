"""Devices as data: every file is sound, boxes are found by the names people use, and errors say what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.probes.devices import DATA, box, load_devices, read
from assay.roofline import ceilings

UNITS = {
    "_bytes": "bytes",
    "_bytes_per_s": "bytes/s",
    "_flop_per_s": "flop/s",
    "launch_s": "s",
    "_w": "w",
    "sms": "1",
    "compute_capability": "1",
    "cores": "1",
}
OWN = """
id = "mine"
name = "My Accelerator"
kind = "gpu"
aliases = ["Mine 2000"]
facts = [
  { name = "memory_read_bytes_per_s", value = 1e12, unit = "bytes/s", basis = "measured", source = "here" },
  { name = "bf16_flop_per_s", value = 1e14, unit = "flop/s", basis = "spec", source = "sheet" },
]
"""


def refused(path: Path, text: str) -> UsageError:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize("path", sorted(DATA.glob("*.toml")), ids=lambda path: path.stem)
def test_every_built_in_device_is_sound(path: Path):
    device = read(path).device
    assert device.id == path.stem
    for name, facts in device.facts.items():
        unit = next(
            unit for ending, unit in sorted(UNITS.items(), key=lambda each: -len(each[0])) if name.endswith(ending)
        )
        for fact in facts:
            assert fact.unit == unit, name
            assert fact.value > 0
            assert fact.source
            assert re.fullmatch(r"(\d{4}(-\d{2}(-\d{2})?)?)?", fact.date)
            if "from memory" in fact.source or "not looked up" in fact.source:
                assert fact.basis == "assumed", f"{name}: nobody looked that up"
    assert ceilings.of(device).read.peak > 1e11


@pytest.mark.parametrize("path", sorted(DATA.glob("*.toml")), ids=lambda path: path.stem)
def test_arithmetic_in_fewer_bits_is_no_slower(path: Path):
    device = read(path).device
    rates = [fact.value for name in ("bf16", "fp8", "fp4") if (fact := device.fact(f"{name}_flop_per_s"))]
    assert rates == sorted(rates)


def test_the_gpus_that_people_ask_for_are_there():
    wanted = {
        "rtx-pro-6000",
        "rtx-5090",
        "rtx-4090",
        "l40s",
        "a100-sxm-80gb",
        "h100-sxm",
        "h200-sxm",
        "b200-sxm",
        "gb10",
    }
    assert wanted | {"mi300x", "l4", "rtx-3090"} <= load_devices().keys()


@pytest.mark.parametrize(
    ("text", "count", "id_"),
    [
        ("8xRTX-PRO-6000", 8, "rtx-pro-6000"),
        ("8 x h200", 8, "h200-sxm"),
        ("h200", 1, "h200-sxm"),
        ("2xH100-SXM", 2, "h100-sxm"),
        ("4X NVIDIA H100 80GB HBM3", 4, "h100-sxm"),
        ("RTX 4090", 1, "rtx-4090"),
        ("2 × GeForce RTX 5090", 2, "rtx-5090"),  # noqa: RUF001 - as typed
        ("8*mi300x", 8, "mi300x"),
        ("DGX Spark", 1, "gb10"),
        ("1xA100-SXM4-80GB", 1, "a100-sxm-80gb"),
        (" L4 ", 1, "l4"),
    ],
)
def test_a_box_is_found_by_the_names_in_use(text: str, count: int, id_: str):
    found = box(text)
    assert (found.count, found.device.id) == (count, id_)


def test_no_two_devices_share_a_spelling():
    seen: dict[str, str] = {}
    for key, device in load_devices().items():
        for name in {re.sub(r"[^a-z0-9]", "", one.lower()) for one in (key, device.name, *device.aliases)}:
            assert seen.setdefault(name, key) == key


@pytest.mark.parametrize(
    ("text", "near"), [("8xh20", "h200-sxm"), ("rtx-pro-600", "rtx-pro-6000"), ("2xhopper h100", "h100-sxm")]
)
def test_a_near_miss_is_suggested(text: str, near: str):
    with pytest.raises(UsageError) as caught:
        box(text)
    assert near in (caught.value.hint or "")


def test_an_unknown_device_lists_the_known_ones():
    with pytest.raises(UsageError, match="qqqqqqqq") as caught:
        box("2xqqqqqqqq")
    assert "rtx-4090" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["0xh200", "5000xh200", "", "8x", "   "])
def test_an_impossible_box_is_refused(text: str):
    with pytest.raises(UsageError):
        box(text)


def test_a_box_has_only_curves_that_its_devices_can_make():
    assert {curve.world for curve in box("8xRTX-PRO-6000").curves} == {8}
    assert box("4xRTX-PRO-6000").curves == []


def test_a_folder_of_ones_own_adds_and_replaces(tmp_path: Path):
    (tmp_path / "mine.toml").write_text(OWN, encoding="utf-8")
    (tmp_path / "l4.toml").write_text(OWN.replace('"mine"', '"l4"').replace("Mine 2000", "L4"), encoding="utf-8")
    assert box("2xMine-2000", tmp_path).device.id == "mine"
    assert box("l4", tmp_path).device.name == "My Accelerator"
    assert "h200-sxm" in load_devices(tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="no folder"):
        load_devices(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ("id = ", "cannot be read"),
        (OWN + "\ncolour = 1", "colour"),
        (OWN.replace('kind = "gpu"', 'kind = "tpu"'), "kind"),
        (OWN.replace('basis = "spec"', 'basis = "heard"'), "basis"),
        (OWN.replace('{ name = "bf16_flop_per_s",', "{"), "malformed"),
        (OWN.replace('unit = "bytes/s"', 'unit = "GB/s"'), "only 'bytes/s' is read"),
        (OWN.replace("value = 1e12", "value = 0.0"), "a number above zero"),
        (OWN.replace("memory_read_bytes_per_s", "memory_reads_bytes_per_s"), "no fact of a device"),
        ('id = "x"\nname = "x"\nkind = "gpu"\nfacts = [1]', "malformed"),
        (OWN + '\n[[curves]]\ncollective = "all_reduce"\nworld = 8\npoints = [[1]]', "malformed"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_key(tmp_path: Path, broken: str, word: str):
    error = refused(tmp_path / "broken.toml", broken)
    assert "broken.toml" in error.message
    assert word in error.message
    assert error.hint
