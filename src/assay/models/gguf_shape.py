"""GGUF files to model shapes: every tensor exactly, attention from the metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from assay.errors import UsageError
from assay.models.assemble import assemble
from assay.models.config import MOST_LAYERS
from assay.models.gguf_attention import attention
from assay.models.gguf_header import GgufHeader, GgufTensor, read_header
from assay.models.gguf_metadata import Metadata
from assay.models.gguf_pieces import by_layer, is_known, piece
from assay.models.gguf_types import storage
from assay.models.pieces import Layer, Piece
from assay.models.skeleton import Skeleton
from assay.records.model_shape import ModelShape, Storage

SPLIT = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$")
MOST_PARTS = 1000
MOST_NAMED = 4


def read_gguf(path: Path) -> ModelShape:
    """The shape of the model in a GGUF, all parts of a split one.

    Raises:
        UsageError: a file is missing, damaged or cut short, or does not say what cannot be assumed.
    """
    headers = [read_header(part) for part in split_files(path)]
    name, file = str(headers[0].metadata.get("general.name") or path.stem), str(path)
    facts = Metadata(headers[0].metadata, str(headers[0].metadata.get("general.architecture", "unknown")), file)
    return _Reader(facts, headers).shape(name)


def split_files(path: Path) -> list[Path]:
    """The file, or every part of the split GGUF that it is one of, in order.

    Raises:
        UsageError: a part is missing.
    """
    match = SPLIT.match(path.name)
    if match is None:
        return [path]
    count = int(match[3])
    if not 0 < count <= MOST_PARTS:
        raise UsageError(f"{path} would have {count} parts", hint="name the first part of a split GGUF")
    parts = [path.with_name(f"{match[1]}-{number:05}-of-{match[3]}.gguf") for number in range(1, count + 1)]
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        raise UsageError(f"{path} is one of {count} parts; not here: {', '.join(missing[:3])}", hint="fetch every part")
    return parts


class _Reader:
    def __init__(self, facts: Metadata, headers: list[GgufHeader]) -> None:
        self.facts = facts
        self.tensors = by_layer((tensor for header in headers for tensor in header.tensors), facts.file)
        self.storages: dict[tuple[int | None, str], Storage] = {}
        self.num_experts = facts.whole("expert_count") or self._counted_experts()
        self.top_k = self._top_k()

    def shape(self, name: str) -> ModelShape:
        """The record."""
        embedding = self.tensors[None].get("token_embd.weight")
        if embedding is None or len(embedding.dimensions) < 2:  # noqa: PLR2004 - a matrix has two sides
            raise UsageError(
                f"{self.facts.file} has no token_embd.weight: it is no language model",
                hint="a projector (mmproj) or an adapter has none; name the model's own file",
            )
        hidden, vocab = embedding.dimensions[:2]
        outer = tuple(self._pieces(None, self.tensors[None], stateful=False))
        layers = self._layers(hidden)
        draft = self.facts.whole("nextn_predict_layers") or 0
        first_draft = max(len(layers) - draft, 1)
        skeleton = Skeleton(
            architecture=self.facts.architecture,
            hidden=hidden,
            vocab=vocab,
            max_positions=self.facts.whole("context_length") or None,
            num_experts=self.num_experts,
            top_k=self.top_k,
            tied="output.weight" not in self.tensors[None],
            outer=outer,
            layers=layers[:first_draft],
            draft_layers=layers[first_draft:],
        )
        return assemble(
            skeleton,
            lambda layer, piece: self.storages[layer, piece.name],
            name=name,
            source=self.facts.file,
            assumed=self.facts.assumed,
        )

    def _layers(self, hidden: int) -> tuple[Layer, ...]:
        found = []
        for index, tensors in self.tensors.items():
            if index is None:
                continue
            mixer = attention(self.facts, index, tensors, hidden)
            stateful = mixer is not None and mixer.kind == "linear"
            pieces = tuple(self._pieces(index, tensors, stateful=stateful))
            has_experts = any(one.part == "routed_experts" for one in pieces)
            word = "linear" if stateful else "sliding" if mixer and mixer.window else "full"
            found.append(
                Layer(
                    index=index,
                    mixer=word if mixer else "none",
                    ffn="moe" if has_experts else "dense",
                    attention=mixer,
                    pieces=pieces,
                )
            )
        if not 0 < len(found) <= MOST_LAYERS:
            raise UsageError(f"{self.facts.file} has {len(found)} layers", hint="name a language model's file")
        self._say_unknown()
        return tuple(found)

    def _pieces(self, layer: int | None, tensors: Mapping[str, GgufTensor], *, stateful: bool) -> Iterable[Piece]:
        tied = layer is None and "output.weight" not in tensors
        for name, tensor in tensors.items():
            one = piece(
                name,
                tensor,
                stateful=stateful,
                top_k=self.top_k,
                num_experts=self.num_experts,
                file=self.facts.file,
            )
            if tied and name == "token_embd.weight":
                one = Piece(name=name, part="head", rows=one.rows, cols=one.cols)
            self.storages[layer, name] = storage(tensor.kind)
            yield one

    def _counted_experts(self) -> int:
        return max(
            (
                tensor.dimensions[-1]
                for tensors in self.tensors.values()
                for name, tensor in tensors.items()
                if name.endswith("_exps.weight") and len(tensor.dimensions) > 2  # noqa: PLR2004 - [in, out, experts]
            ),
            default=0,
        )

    def _top_k(self) -> int:
        if not self.num_experts:
            return 0
        return min(self.facts.need("expert_used_count"), self.num_experts)

    def _say_unknown(self) -> None:
        strange = sorted(
            {
                name
                for layer, tensors in self.tensors.items()
                if layer is not None
                for name in tensors
                if not is_known(name)
            }
        )
        if strange:
            more = " ..." if len(strange) > MOST_NAMED else ""
            self.facts.assume(f"tensors counted as feed-forward parts: {', '.join(strange[:MOST_NAMED])}{more}")
