"""The parts of a layer before it is known how their weights are stored."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.model_shape import Attention, Matrix, Part, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One weight matrix, or several of one shape; a vector has one column."""

    name: str
    part: Part
    rows: int
    cols: int = 1
    copies: int = 1
    active_copies: float = 1.0
    module: str = ""
    """Where it stands in the layer, as checkpoints spell it (`self_attn.q_proj`): rules of quantization name it so."""

    def stored(self, storage: Storage) -> Matrix:
        """The matrix that it is, once its storage is known."""
        return Matrix(
            name=self.name,
            part=self.part,
            rows=self.rows,
            cols=self.cols,
            copies=self.copies,
            active_copies=self.active_copies,
            storage=storage,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer: its sequence mixer and its pieces."""

    index: int
    mixer: str
    """`full`, `sliding` or `linear`."""
    ffn: str
    """`dense` or `moe`."""
    attention: Attention | None
    pieces: tuple[Piece, ...]


def linear(module: str, part: Part, rows: int, cols: int, *, copies: int = 1, active: float | None = None) -> Piece:
    """A matrix named by the last word of its module."""
    return Piece(
        name=module.rpartition(".")[2],
        part=part,
        rows=rows,
        cols=cols,
        copies=copies,
        active_copies=copies if active is None else active,
        module=module,
    )


def vector(name: str, size: int, copies: int = 1) -> Piece:
    """Norms, biases, sinks, convolution taps: read whole by every token."""
    return Piece(name=name, part="vector", rows=size, copies=copies, active_copies=copies)
