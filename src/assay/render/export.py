"""The launch command to ship, as shell, Docker Compose, Kubernetes or JSON. Secrets are asked for, never printed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from assay.errors import UsageError
from assay.records.text import shown

PORT = 8080
IMAGE = "ghcr.io/ggml-org/llama.cpp:server"
LOOPBACK_NOTE = (
    "The server listens on the loopback address only, so that nobody else on the network can use it; "
    "put a proxy with authentication in front before you open it."
)
NOT_SHOWN_STABLE = "NOT SHOWN TO BE STABLE"
SIMULATED_NOTE = "SIMULATED: from a rehearsal; it starts a simulated server, and no gain of it was measured."
SECRET_NAME = re.compile(r"(?:^|[-_])(?:token|hft|api[-_]?key|key|secret|passw(?:or)?d|credentials?)$", re.IGNORECASE)
"""The last word of a flag's or a variable's name that makes its value a secret."""
SECRET_SHAPE = re.compile(r"^(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA)\w")
MASKED = "[redacted]"
"""What the record holds in place of a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A launch command in which a secret is the name of the variable to take it from."""

    words: list[str]
    env: dict[str, str]
    secret_words: dict[int, str]
    """Place in `words`, and the variable."""
    secret_env: list[str]


def export(
    kind: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    simulated: bool = False,
    not_shown_stable: str | None = None,
) -> str:
    """Render a launch command.

    Args:
        kind: shell, compose, kubernetes or json.
        argv: the command, a word an element.
        env: extra environment.
        simulated: the command comes from a rehearsal, and says so.
        not_shown_stable: why no soak shows that it is stable, which it says too.

    Raises:
        UsageError: no such kind.
    """
    makers = {"shell": _shell, "compose": _compose, "kubernetes": _kubernetes, "json": _json}
    if kind not in makers:
        raise UsageError(f"no export is called {kind!r}", hint=f"one of: {', '.join(makers)}")
    text = makers[kind](_without_secrets(list(argv), dict(env)))
    notes = {"simulated": SIMULATED_NOTE} if simulated else {}
    if not_shown_stable:
        notes["not_shown_stable"] = f"{NOT_SHOWN_STABLE}: {_one_line(not_shown_stable)}"
    return _labelled(kind, text, notes) if notes else text


def _labelled(kind: str, text: str, notes: dict[str, str]) -> str:
    if kind == "json":
        return json.dumps({**notes, **json.loads(text)}, indent=2) + "\n"
    return "".join(f"# {note}\n" for note in notes.values()) + text


def _one_line(text: str) -> str:
    """It may quote a server: nothing in it ends the comment that it stands in."""
    return shown(" ".join(text.split()))


def _without_secrets(argv: list[str], env: Mapping[str, str]) -> Command:
    words: list[str] = []
    places: dict[int, str] = {}
    for word in argv:
        flag, _, value = word.partition("=")
        before = words[-1] if words else ""
        if word.startswith("-") and value and _is_secret(flag, value):
            words += [flag, ""]
            places[len(words) - 1] = _variable(flag)
        elif not word.startswith("-") and _is_secret(before if before.startswith("-") else "", word):
            words.append("")
            places[len(words) - 1] = _variable(before)
        else:
            words.append(word)
    secret_env = [name for name, value in env.items() if _is_secret(name, value)]
    plain = {name: value for name, value in env.items() if name not in secret_env}
    return Command(words=words, env=plain, secret_words=places, secret_env=secret_env)


def _is_secret(name: str, value: str) -> bool:
    return bool(SECRET_NAME.search(name) or SECRET_SHAPE.match(value)) or value == MASKED


def _variable(flag: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", flag.lstrip("-").upper()) or "SECRET"


def _shell(command: Command) -> str:
    """One flag a line; the first line fails with a message when a secret's variable is not set."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    settings += [f'{name}="${{{name}:?set it first}}"' for name in command.secret_env]
    lines = [settings] if settings else []
    for i, word in enumerate(command.words):
        name = command.secret_words.get(i)
        quoted = shlex.quote(word) if name is None else f'"${{{name}:?set it first}}"'
        if i == 0 or (word.startswith("--") and name is None):
            lines.append([quoted])
        else:
            lines[-1].append(quoted)
    return " \\\n  ".join(" ".join(line) for line in lines) + "\n"


def _flags(words: list[str]) -> list[str]:
    """The flags alone: a container's entry point is the program; it listens on its own address."""
    first = next((i for i, word in enumerate(words) if word.startswith("--")), 1)
    flags = words[first:]
    return ["0.0.0.0" if previous == "--host" else word for previous, word in zip(["", *flags], flags, strict=False)]  # noqa: S104 - inside a container, published on loopback only


def _contained(command: Command, reference: str) -> tuple[list[str], str | None]:
    """The container's arguments, the model's path replaced by the one inside; and the model's path outside."""
    shown = [
        reference.format(command.secret_words[i]) if i in command.secret_words else word
        for i, word in enumerate(command.words)
    ]
    flags = _flags(shown)
    model = flags[flags.index("--model") + 1] if "--model" in flags[:-1] else None
    return [_inside(model) if word == model else word for word in flags], model


def _inside(model: str) -> str:
    return f"/models/{model.rsplit('/', 1)[-1]}"


def _compose(command: Command) -> str:
    literal = replace(command, words=[word.replace("$", "$$") for word in command.words])
    flags, model = _contained(literal, "${{{}:?set it first}}")
    service: dict[str, Any] = {"image": IMAGE, "command": flags, "ports": [f"127.0.0.1:{PORT}:{PORT}"]}
    if model is not None:
        service["volumes"] = [f"{model}:{_inside(model)}:ro"]
    settings = {name: value.replace("$", "$$") for name, value in command.env.items()}
    settings |= {name: f"${{{name}:?set it first}}" for name in command.secret_env}
    if settings:
        service["environment"] = settings
    return _noted(yaml.safe_dump({"services": {"llama": service}}, sort_keys=False, width=1000))


def _kubernetes(command: Command) -> str:
    literal = replace(command, words=[word.replace("$(", "$$(") for word in command.words])
    flags, model = _contained(literal, "$({})")
    secrets = [*command.secret_env, *command.secret_words.values()]
    env: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in command.env.items()]
    env += [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "llama", "key": name}}} for name in dict.fromkeys(secrets)
    ]
    container: dict[str, Any] = {
        "name": "llama",
        "image": IMAGE,
        "args": flags,
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}},
    }
    pod: dict[str, Any] = {"containers": [container]}
    if model is not None:
        container["volumeMounts"] = [{"name": "models", "mountPath": "/models", "readOnly": True}]
        pod["volumes"] = [{"name": "models", "hostPath": {"path": model.rpartition("/")[0] or "/"}}]
    if env:
        container["env"] = env
    return _noted(yaml.safe_dump_all([_deployment(pod), _service()], sort_keys=False, width=1000))


def _deployment(pod: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "llama"}
    template = {"metadata": {"labels": labels.copy()}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llama"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "llama"},
        "spec": {"type": "ClusterIP", "selector": {"app": "llama"}, "ports": [{"port": PORT, "targetPort": PORT}]},
    }


def _noted(text: str) -> str:
    return (
        "# Inside its container the server listens on every address; what is published is up to this file:\n"
        "# open it to others only behind a proxy with authentication.\n" + text
    )


def _json(command: Command) -> str:
    argv = [f"${{{command.secret_words[i]}}}" if i in command.secret_words else w for i, w in enumerate(command.words)]
    env = command.env | {name: f"${{{name}}}" for name in command.secret_env}
    return json.dumps({"argv": argv, "env": env, "note": LOOPBACK_NOTE}, indent=2) + "\n"
