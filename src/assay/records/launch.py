"""Where a server is launched: on this machine as it is, or behind a prefix (a container, ssh, srun).

>>> LaunchPrefix(kind="docker", image="lmsysorg/sglang:v0.5.9", gpus="all").place
'lmsysorg/sglang:v0.5.9'
"""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from assay.records.base import Frozen

PrefixKind = Literal["docker", "podman", "ssh", "srun"]
PLACES = {"docker": "image", "podman": "image", "ssh": "host", "srun": None}
"""The field that each kind must have."""
REFUSED = {
    "docker": re.compile(
        r"^(?:-[itq]*[pPd].*|--(?:publish|publish-all|detach|name|rm|network|net|entrypoint|restart|cidfile|gpus)(?:=.*)?)$"
    ),
    "ssh": re.compile(r"^-[46AaCGKkqsTVvXxYy]*[fNgLRDWMnt]"),
    "srun": re.compile(r"^--(?:pty|multi-prog|job-name|ntasks|nodes|output|error|input)(?:=.*)?$|^-[JnNoei]"),
}
"""Options that would undo what Assay sets: loopback only, attached, under its own name. Letters that stand together are
switches up to the first that takes a value: `-p8000:80` and `-4N` are refused, `-oStrictHostKeyChecking=no` is not."""
SSH_OPTIONS = re.compile(
    r"^(?:-[a-z0-9]*o)?[\s\"]*"
    r"(?:ProxyCommand|LocalCommand|PermitLocalCommand|KnownHostsCommand|RemoteCommand|ForkAfterAuthentication|"
    r"LocalForward|RemoteForward|DynamicForward|GatewayPorts|SessionType|StdinNull|RequestTTY)\b",
    re.IGNORECASE,
)
"""What would give words of assay.toml to a shell, listen elsewhere, or take the command away from Assay. ssh reads an
option's name behind others (`-4o...`), behind blanks and in quotation marks as well."""


class LaunchPrefix(Frozen):
    """How the server's command is wrapped. Absent: a plain process on this machine.

    The model's path, the flags and the environment stay what they are; inside a container the model has its own path.
    """

    kind: PrefixKind
    """docker, podman: in a container, which is removed afterwards. ssh: on another machine, its port forwarded to
    loopback here. srun: as a step of the Slurm allocation that Assay itself runs in, on the same node. (A virtual
    environment needs no prefix: `executable` may be its folder.)"""
    image: str | None = Field(default=None, pattern=r"^[a-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    """Container image, with its tag."""
    host: str | None = Field(
        default=None, pattern=r"^(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.:-]{0,254}$"
    )
    """As ssh takes it: a name of ~/.ssh/config, or user@host. Keys only: nothing asks for a password."""
    gpus: str | None = Field(default=None, pattern=r"^(?:all|\d{1,3}(?:,\d{1,3})*)$")
    """Containers: "all", or numbers as "0,1". Absent: none."""
    options: list[str] = Field(default_factory=list, max_length=64)
    """More words for docker run, ssh or srun, one argument each: ["--ipc", "host", "--shm-size", "32g"]."""

    @model_validator(mode="after")
    def _has_its_place_and_no_other(self) -> Self:
        wanted = PLACES[self.kind]
        for name in ("image", "host"):
            value = getattr(self, name)
            if name == wanted and not value:
                raise ValueError(f"kind = {self.kind!r} needs {name}")
            if name != wanted and value:
                raise ValueError(f"{name} does not belong to kind = {self.kind!r}")
        if self.gpus and self.image is None:
            raise ValueError(f"gpus does not belong to kind = {self.kind!r}: the server sees what the machine has")
        return self

    @model_validator(mode="after")
    def _leaves_to_assay_what_is_its_own(self) -> Self:
        refused = REFUSED.get("docker" if self.kind == "podman" else self.kind)
        for word in self.options:
            if "\0" in word or "\n" in word:
                raise ValueError(f"launch option {word!r}: an option is one line of text")
            if (refused and refused.match(word)) or (self.kind == "ssh" and SSH_OPTIONS.match(word)):
                raise ValueError(f"launch option {word}: Assay sets this itself, or it would undo what it sets")
        return self

    @property
    def place(self) -> str:
        """The image or host; the name of the kind where it has neither."""
        return self.image or self.host or self.kind

    @property
    def title(self) -> str:
        """Kind and place: "docker lmsysorg/sglang:v0.5.9", "srun"."""
        return " ".join(dict.fromkeys((self.kind, self.place)))
