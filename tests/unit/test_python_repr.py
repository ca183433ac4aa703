"""Configurations in logs are read as text: nothing is evaluated."""

from __future__ import annotations

from assay.engines.python_repr import pairs


def test_nested_configurations_become_dotted_names() -> None:
    text = "a='x, y', b=Config(c=None, d=[1, 2], e=Inner(f=0.5)), g={'h': <Mode.FULL: 2>, \"i\": True, 'j': {}}"
    assert pairs(text) == {"a": "x, y", "b.d": "[1, 2]", "b.e.f": 0.5, "g.h": "FULL", "g.i": True}


def test_a_dictionary_is_read_with_its_braces() -> None:
    assert pairs("{'port': 8100, 'names': ['m']}", "args") == {"args.port": 8100, "args.names": "['m']"}


def test_what_is_cut_short_gives_what_was_whole() -> None:
    assert pairs("a=1, b=Config(c=2, d='unfin")["a"] == 1


def test_depth_is_bounded() -> None:
    assert isinstance(pairs("a=" + "C(b=" * 500 + "1" + ")" * 500), dict)
