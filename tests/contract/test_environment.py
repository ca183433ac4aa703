"""A campaign goes on only where it began: on that machine, with that engine build and that model file."""

from __future__ import annotations

import pytest

from assay.api.environment import host, refuse_another
from assay.errors import UsageError
from assay.records.spec import Target
from tests.unit.simulated_world import World, drive, hypothesis, start


def test_a_campaign_of_another_machine_build_and_model_is_refused_with_what_differs():
    journal = start([hypothesis("a")])
    drive(journal, World())
    with pytest.raises(UsageError) as refused:
        refuse_another(journal.state, Target())
    assert journal.state.machine.fingerprint in refused.value.message
    assert "build" in refused.value.message
    assert "model file" in refused.value.message
    assert "new folder" in (refused.value.hint or "")


def test_before_the_first_run_there_is_nothing_to_pool():
    refuse_another(start([hypothesis("a")]).state, Target())


def test_a_host_is_the_same_for_as_long_as_it_is_up():
    assert host() == host()
    assert len(host()) == 8
