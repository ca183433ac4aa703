"""Signals that would end a command wait while what it started is ended."""

from __future__ import annotations

import signal

import pytest

from assay.process.undisturbed import undisturbed


def test_a_block_is_carried_to_its_end_and_the_interrupt_follows() -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)

    @undisturbed()
    def end() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("ended")

    with pytest.raises(KeyboardInterrupt):
        end()

    assert done == ["ended"]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_a_signal_nothing_is_raised_and_what_goes_wrong_in_it_is_told() -> None:
    with undisturbed():
        pass
    with pytest.raises(OSError, match="disk"), undisturbed():
        raise OSError("disk")


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with undisturbed():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
