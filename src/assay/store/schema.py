"""The tables: the journal, and the projections that are rebuilt from it for people who speak SQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, MetaData, String, Table, Text

JOURNAL = MetaData()
"""What the record is."""

PROJECTIONS = MetaData()
"""What can be thrown away and rebuilt at any time."""

EVENTS = Table(
    "events",
    JOURNAL,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("payload", Text, nullable=False),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

RUNS = Table(
    "runs",
    PROJECTIONS,
    Column("run_id", Text, primary_key=True),
    Column("purpose", Text, nullable=False),
    Column("series", Text, nullable=False),
    Column("candidate", Text),
    Column("arm", Text, nullable=False),
    Column("status", Text),  # NULL: intended, never ended
    Column("output_tokens_per_s", Float),
    Column("ttft_p50_s", Float),
    Column("tpot_p50_s", Float),
    Column("start_s", Float),
    Column("duration_s", Float),
    Column("reason", Text),
)

VERDICTS = Table(
    "verdicts",
    PROJECTIONS,
    Column("candidate", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("log_ratio", Float),
    Column("low", Float),
    Column("high", Float),
    Column("n", Integer),
    Column("prediction_held", Boolean),
    Column("reason", Text, nullable=False),
)

WINDOWS = Table(
    "windows",
    PROJECTIONS,
    Column("run_id", Text, primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("start_s", Float, nullable=False),
    Column("duration_s", Float, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("output_tokens_per_s", Float, nullable=False),
)
