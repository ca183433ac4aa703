"""Why a server failed: rules as data over the text of its logs. Reads no files; lines go in, a record comes out."""

from assay.failures.classify import Log, explain

__all__ = ["Log", "explain"]
