"""`docker run [options] IMAGE [command]` and the same of Singularity and Apptainer, taken apart."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    """How the command line of a program that runs containers is read."""

    programs: frozenset[str]
    verbs: frozenset[str]
    bare: frozenset[str]
    """Options without a value."""
    bare_letters: frozenset[str]
    environment: frozenset[str]
    """Options whose value is `NAME=value`."""
    prefixes: tuple[str, ...] = ()
    """Of variables outside that are set inside without it; where there are such, all others are handed on as well."""
    own_program: frozenset[str] = frozenset()
    """Verbs that start what the command names, whatever the image would start."""


_DOCKER = _Tool(
    programs=frozenset({"docker", "podman", "nerdctl"}),
    verbs=frozenset({"run"}),
    bare=frozenset(
        {"--detach", "--interactive", "--tty", "--rm", "--privileged", "--init", "--publish-all", "--read-only"}
        | {"--quiet", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--replace", "--no-hosts"}
        | {"--disable-content-trust"}
    ),
    bare_letters=frozenset("ditPq"),
    environment=frozenset({"-e", "--env"}),
)
"""Source: docs.docker.com, reference of `docker container run`."""
_SINGULARITY = _Tool(
    programs=frozenset({"singularity", "apptainer"}),
    verbs=frozenset({"exec", "run"}),
    bare=frozenset(
        {"--nv", "--nvccli", "--rocm", "--writable", "--writable-tmpfs", "--contain", "--containall", "--cleanenv"}
        | {"--fakeroot", "--no-home", "--ipc", "--pid", "--net", "--uts", "--userns", "--no-privs", "--keep-privs"}
        | {"--compat", "--disable-cache", "--no-https", "--nohttps", "--allow-setuid", "--no-init", "--no-umask"}
        | {"--no-eval", "--no-pid", "--no-tmp-sandbox", "--passphrase", "--docker-login", "--oom-kill-disable"}
        | {"--sharens", "--underlay", "--unsquash", "--no-compat", "--oci", "--no-oci"}
    ),
    bare_letters=frozenset("Ccefinpu"),
    environment=frozenset({"--env"}),
    prefixes=("SINGULARITYENV_", "APPTAINERENV_"),
    own_program=frozenset({"exec"}),
)
"""Source: apptainer.org/docs/user, command line of `apptainer exec` and `apptainer run`."""
_TOOLS = (_DOCKER, _SINGULARITY)
_FILE = ".sif"
_BEFORE_RUN = 4
"""Words within which the verb follows: `docker --context x run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What is started in which image."""

    image: str
    command: list[str]
    """An entrypoint that was given stands first."""
    variables: list[str]
    """`NAME=value`, as handed to `-e`."""
    wrapper: list[str]
    has_entrypoint: bool
    """One was given: the image's own is not used."""


def unpack(words: Sequence[str]) -> Container | None:
    """The container that a command runs; None when it runs none."""
    begun = _begun(words)
    if begun is None:
        return None
    tool, begin = begun
    variables = [_inside(word, tool) for word in words[:begin] if tool.prefixes]
    entrypoint: str | None = "" if words[begin - 1] in tool.own_program else None
    at = begin
    while at < len(words) and words[at].startswith("-"):
        name, joined, value = words[at].partition("=")
        if not joined and not _is_bare(name, tool):
            at += 1
            value = words[at] if at < len(words) else ""
        if name in tool.environment:
            variables.append(value)
        entrypoint = value if name == "--entrypoint" else entrypoint
        at += 1
    if at >= len(words):
        return None
    return Container(
        image=words[at],
        command=[*_split(entrypoint or ""), *words[at + 1 :]],
        variables=variables,
        wrapper=list(words[:begin]),
        has_entrypoint=entrypoint is not None,
    )


def _inside(word: str, tool: _Tool) -> str:
    """An assignment outside as it is inside."""
    prefix = next((each for each in tool.prefixes if word.startswith(each)), "")
    return word[len(prefix) :]


def name_and_tag(image: str) -> tuple[str, str]:
    """An image's name and tag; of a file as `singularity pull` names it, the same.

    >>> name_and_tag("docker://vllm/vllm-openai:v0.11.0"), name_and_tag("/x/vllm-openai_v0.11.0.sif")
    (('docker://vllm/vllm-openai', 'v0.11.0'), ('/x/vllm-openai', 'v0.11.0'))
    """
    plain = image.partition("@")[0]
    if plain.endswith(_FILE):
        name, _, tag = plain.removesuffix(_FILE).rpartition("_")
    else:
        name, _, tag = plain.rpartition(":")
    return (name, tag) if name and "/" not in tag else (plain, "")


def is_one_of(image: str, names: Sequence[str]) -> bool:
    """Whether an image is one of those that are known by their names, wherever it comes from."""
    name, _ = name_and_tag(image)
    if image.endswith(_FILE):
        return PurePath(name).name in {PurePath(each).name for each in names}
    return any(name.endswith(each) for each in names)


def _begun(words: Sequence[str]) -> tuple[_Tool, int] | None:
    """Which program runs a container, and behind which word its options begin."""
    for start, word in enumerate(words):
        tool = next((one for one in _TOOLS if PurePath(word).name in one.programs), None)
        if tool is not None:
            verb = next(
                (at for at, each in enumerate(words[: start + _BEFORE_RUN]) if at > start and each in tool.verbs), 0
            )
            return (tool, verb + 1) if verb else None
    return None


def _is_bare(name: str, tool: _Tool) -> bool:
    return name in tool.bare or (not name.startswith("--") and set(name[1:]) <= tool.bare_letters)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quotation: the text is one word
        return [text]
