"""The file of a catalogue entry that says as little as one may."""

from __future__ import annotations

HEAD = """
id = "mine"
title = "Mine"
tier = 1
numerics = "exact"
predicted = [0.0, 0.1]
mechanism = "m"
risk = "r"
"""
