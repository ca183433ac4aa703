"""Ceilings of this machine, by micro-benchmark, kept under its fingerprint."""

from assay.probes.ceilings.standard import STANDARD_STORAGES, ceilings

__all__ = ["STANDARD_STORAGES", "ceilings"]
