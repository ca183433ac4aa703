"""Fakes and conformance suites for people who write adapters."""
