"""The help of the installed build is the only list of flags that counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.engines.llamacpp_help import parse_help

HELP = """\
----- shared params -----

-h,    --help                           print this and leave
-w,    --workers N                      number of workers (default: -1)
                                        (env: LLAMA_ARG_WORKERS)
-at,   --attention [yes|no|auto]        set attention ('yes', 'no', or 'auto', default: 'auto')
--strict <0|1>                          strict placement (default: 0)
--scaling {none,linear}                 a method
-kt,   --kind-of-cache TYPE             data type
                                        allowed values: f32, f16, q8_0
                                        (default: f16)
--mode MODE                             how to do it (default: auto)
                                        - fast: at once
                                        - slow+safe: later,
                                        with care
--batching, --no-batching               whether to batch (default: enabled)
--gone, --gone-n N                      the argument has been removed. use --other
--a-very-long-flag-name-that-needs-its-own-line, -vl PATH
                                        where it is

----- other params -----

--last N                                the last one
"""


def test_every_spelling_value_choice_and_default_is_read() -> None:
    flags = {name: flag for flag in parse_help(HELP) for name in flag.names}
    assert flags["-w"] is flags["--workers"]
    assert (flags["--workers"].value, flags["--workers"].default) == ("N", "-1")
    assert flags["--attention"].choices == ["yes", "no", "auto"]
    assert flags["--strict"].choices == ["0", "1"]
    assert flags["--scaling"].choices == ["none", "linear"]
    assert flags["--kind-of-cache"].choices == ["f32", "f16", "q8_0"]
    assert flags["--mode"].choices == ["auto", "fast", "slow+safe"]
    assert flags["--no-batching"] is flags["--batching"]
    assert flags["--batching"].value is None
    assert flags["--a-very-long-flag-name-that-needs-its-own-line"].value == "PATH"
    assert flags["--last"].help == "the last one"


def test_a_flag_that_is_only_parsed_to_say_it_is_gone_is_marked_as_removed() -> None:
    flags = {name: flag for flag in parse_help(HELP) for name in flag.names}
    assert flags["--gone"].removed
    assert not flags["--workers"].removed


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=400))
def test_arbitrary_text_never_breaks_the_parser(text: str) -> None:
    for flag in parse_help(text):
        assert flag.names
