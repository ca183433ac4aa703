"""Why a server failed: rules as data over the text of its logs. Reads no files; lines go in, a record comes out."""

from assay.failures.classify import Log, explain
from assay.failures.lines import plain_line
from assay.failures.stages import after_ready

__all__ = ["Log", "after_ready", "explain", "plain_line"]
