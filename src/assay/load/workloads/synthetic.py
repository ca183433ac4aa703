"""Synthetic requests: lengths from distributions, text from the corpus, and groups that share a prefix if asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from assay.load.workloads.lengths import draw
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.sessions import single
from assay.records.bench import Synthetic
from assay.records.load import Session


class SyntheticSource:
    """Endless; session n is made of (seed, n) alone."""

    num_sessions: int | None = None
    instants_s: Sequence[float] | None = None
    file_sha256: str | None = None
    skipped: Mapping[str, int] = {}

    def __init__(self, workload: Synthetic, seed: int, prompts: Prompts) -> None:
        self._workload = workload
        self._seed = seed
        self._prompts = prompts

    def session(self, index: int) -> Session:
        """One request; its prompt opens with the prefix of its group, which is drawn at random."""
        if index < 0:
            raise IndexError(index)
        workload, seed = self._workload, self._seed
        random = Random(f"{seed}/{index}/lengths")
        num_own, num_output = draw(workload.input, random), draw(workload.output, random)
        pieces = []
        if workload.prefix_groups:
            group = random.randrange(workload.prefix_groups)
            pieces.append(self._prompts.piece(f"{seed}/prefix/{group}", workload.prefix_tokens))
        pieces.append(self._prompts.piece(f"{seed}/{index}", num_own))
        return single(
            index,
            self._prompts.join(pieces),
            output_tokens=num_output,
            input_tokens=workload.prefix_tokens + num_own,
            shared_tokens=workload.prefix_tokens,
        )
