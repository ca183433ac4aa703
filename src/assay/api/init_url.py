"""From a running server's address to a campaign's target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.errors import EngineError, UsageError

if TYPE_CHECKING:
    from assay.records.spec import Target

ASK_TIMEOUT_S = 5.0


def target_at(url: str, *, model: str | None = None, api_key_env: str | None = None) -> Target:
    """What is asked of a campaign on a server that runs already.

    A llama.cpp server tells its model file and its settings (`/props`): Assay starts the same one again, with changes.
    Every other OpenAI-compatible server is somebody else's: it is measured, and left as it is.

    Args:
        url: its address, with or without `/v1`.
        model: as it lists it; where given, the server is measured as it is whatever it is.
        api_key_env: name of the variable that holds the key; likewise.

    Raises:
        UsageError: nobody answers there, or it serves several models and none was named.
    """
    from assay.engines.openai_client import base_url

    base = base_url(url)
    if not base.startswith(("http://", "https://")):
        raise UsageError(f"{url} is not an http URL", hint="for example http://127.0.0.1:8080")
    if model is None and api_key_env is None and (again := _startable(_props(base))):
        return again
    return _somebodys(base, model, api_key_env)


def _props(base: str) -> dict[str, Any]:
    """What llama.cpp's server tells of itself; nothing where another one answers, or nobody."""
    import json

    from assay.load.server import opener

    try:
        with opener().open(f"{base}/props", timeout=ASK_TIMEOUT_S) as response:
            props = json.load(response)
    except (OSError, ValueError):
        return {}
    return props if isinstance(props, dict) else {}


def _startable(props: dict[str, Any]) -> Target | None:
    from assay.records.spec import Target

    model = props.get("model_path")
    if not isinstance(model, str):
        return None
    settings = props.get("default_generation_settings")
    slots, context = props.get("total_slots"), settings.get("n_ctx") if isinstance(settings, dict) else None
    flags: dict[str, bool | int | float | str] = {}
    if isinstance(slots, int):
        flags["--parallel"] = slots
    if isinstance(slots, int) and isinstance(context, int):
        flags["--ctx-size"] = slots * context
    return Target(model=model, flags=flags)


def _somebodys(base: str, model: str | None, api_key_env: str | None) -> Target:
    from pydantic import ValidationError

    from assay import wiring
    from assay.records.spec import EMBEDDED, Target
    from assay.store.redact import redact

    try:
        draft = Target(engine="openai", url=base, model=model or EMBEDDED, api_key_env=api_key_env)
    except ValidationError as error:
        raise UsageError(
            f"{redact(base if api_key_env is None else f'{base} with --api-key-env {api_key_env}')} cannot stand in"
            " assay.toml",
            hint="an address has no user, no question mark and no fragment; a key has the name of a variable",
        ) from error
    try:
        found = wiring.engine("openai").model(draft)
    except EngineError as error:
        raise UsageError(
            f"{base} did not answer as an OpenAI-compatible server does: {error.message}",
            hint="is it up? One that wants a key: --api-key-env NAME. Or give today's launch command: --command '...'",
        ) from error
    return draft.model_copy(update={"model": found.path})
