"""A state that is being read: what one question computes from it, the next one finds.

Each step asks the same things of one state many times over: which runs count, what they scored, which brackets they
make. A `Reading` is made where a step begins and goes when the step is decided; functions marked `once` keep their
answers in it. Of a plain `CampaignState` they are computed anew each time, with the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from assay.records.state import CampaignState

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class Reading(CampaignState):
    """A campaign's state that remembers what was computed from it."""

    @cached_property
    def answers(self) -> dict[Any, Any]:
        """By function and arguments."""
        return {}

    @classmethod
    def of(cls, state: CampaignState) -> Reading:
        """The state itself when it is being read already."""
        return state if isinstance(state, Reading) else cls.model_construct(**state.__dict__)

    def __copy__(self) -> Any:
        """A plain state: `model_copy` may change it, and then no answer would hold."""
        return CampaignState.model_construct(**{name: self.__dict__[name] for name in CampaignState.model_fields})


def once(
    function: Callable[Concatenate[CampaignState, Asked], Answer],
) -> Callable[Concatenate[CampaignState, Asked], Answer]:
    """Of a pure function of a state and hashable arguments: computed once for each reading.

    Callers share the answer, so it must not be changed.
    """

    @wraps(function)
    def remembered(state: CampaignState, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        if not isinstance(state, Reading):
            return function(state, *args, **kwargs)
        answers, key = state.answers, (function, args, tuple(kwargs.items()))
        if key not in answers:
            answers[key] = function(state, *args, **kwargs)
        answer: Answer = answers[key]
        return answer

    return remembered
