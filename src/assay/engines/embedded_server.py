"""The embedded llama.cpp as a command: `python -m assay.engines.embedded_server <llama-server flags>`.

The wheel `xllamacpp` has llama.cpp's server in-process but no executable. Its library exports llama.cpp's own argument
parser, so flags, `--help` and error texts here are the real ones. That rests on a private symbol and on where the
wrapper keeps its parameters: the version is pinned, checked, and refused when it is another.

Imports nothing of Assay but this package's docstring: it is a child process, and its memory is part of the measurement.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from importlib import metadata
from typing import NoReturn

PINNED = "2026.10.11549"
EXTRA = "assay[embedded]"
PARSE_SYMBOL = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
PARAMS_OFFSET_BYTES = 16
"""Where the wrapper object keeps its `common_params`: after CPython's reference count and type pointer."""
EXAMPLE_SERVER = 12
"""llama.cpp's enum value for the server's set of flags."""


def main() -> None:
    """Parse the flags as llama-server does, serve until a signal."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # The kernel's own handling: a Python handler would wait until llama.cpp has loaded the model.
        signal.signal(number, signal.SIG_DFL)
    params = _parse(sys.argv[1:])
    import xllamacpp  # noqa: PLC0415 - after the version check

    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        _leave(f"embedded server: {error}", 1)
    while server is not None:  # it serves in threads of its own, and says in the log where
        signal.pause()


def _parse(words: list[str]) -> object:
    try:
        version = metadata.version("xllamacpp")
    except metadata.PackageNotFoundError:
        _leave(f"the embedded engine is not installed: pip install '{EXTRA}'", 1)
    if version != PINNED:
        _leave(f"the embedded engine is pinned to xllamacpp {PINNED}, found {version}: pip install '{EXTRA}'", 1)
    import xllamacpp  # noqa: PLC0415 - after the version check

    params = xllamacpp.CommonParams()
    library = ctypes.CDLL(sys.modules["xllamacpp.xllamacpp"].__file__)
    parse = getattr(library, PARSE_SYMBOL, None)
    if parse is None:
        _leave(f"the embedded engine lacks llama.cpp's argument parser: pip install --force-reinstall '{EXTRA}'", 1)
    parse.restype = ctypes.c_bool
    parse.argtypes = [
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
    ]
    encoded = [b"llama-server", *(word.encode() for word in words)]
    argv = (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None)
    if not parse(len(encoded), argv, id(params) + PARAMS_OFFSET_BYTES, EXAMPLE_SERVER, None):
        _leave("embedded server: the flags were refused", 1)
    return params


def _leave(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr, flush=True)  # noqa: T201 - this is a program
    os._exit(code)


if __name__ == "__main__":
    main()
