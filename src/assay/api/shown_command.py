"""An arm's launch command as a person would type it, for documents, reports and what is shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.engines.launch_prefix_shown import Typed
    from assay.records.run import Arm
    from assay.records.state import CampaignState

PORT = 8080


def shown_command(state: CampaignState, arm: Arm, model: str | None = None) -> Typed:
    """The command of an arm; secrets among its variables are masked, those among its words are not.

    Args:
        state: the campaign.
        arm: what is served.
        model: path or name of the model, where the arm made its own; None: the target's.

    Raises:
        AssayError: the engine is not there, or cannot be started so.
    """
    from assay import wiring
    from assay.engines.launch_prefix_shown import typed
    from assay.plan.arms import build_for
    from assay.store.redact import redact

    engine = wiring.engine(state.spec.target.engine)
    argv = engine.argv(build_for(state.build, arm), model or state.model.path, arm.flags, PORT)
    return typed(argv, redact({**state.spec.target.env, **arm.env}))
