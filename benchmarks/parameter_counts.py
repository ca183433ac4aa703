"""Parameters of every model that Assay knows by name: published, ours, and the error.

    python benchmarks/parameter_counts.py

Both are counted as the publisher counts them (`parameters_counted` and `active_counts` of the model's file): with the
draft layers or without, with the encoder of images or without, with the embedding and the head or without. Nothing is
measured, and nothing is read but our own data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from assay.models import library, load
from assay.records.model_shape import ModelShape

BILLION = 1e9


def active(shape: ModelShape, counts: str) -> float:
    """Active parameters by a publisher's convention."""
    parts = shape.parameters_by_part()
    embedding, head = parts.get("embedding", 0), parts.get("head", 0)
    left_out = {"everything": 0, "no embedding": embedding, "no embedding, no head": embedding + head}
    return shape.active_parameters - left_out[counts]


def total(shape: ModelShape, counted: str) -> int:
    """Parameters by a publisher's convention."""
    draft = sum(group.count * matrix.parameters for group in shape.draft_layers for matrix in group.matrices)
    encoders = sum(encoder.parameters for encoder in shape.encoders) if "encoder" in counted else 0
    again = 2 * shape.vocab * shape.hidden if "again" in counted else 0
    return shape.parameters + encoders + (draft + again if "draft" in counted else 0)


def row(path: Path) -> str:
    """One line of the table."""
    shape, told = load(path.stem), library.published(path)
    published, ours = told["parameters"], total(shape, told.get("parameters_counted", ""))
    cells = [f"{path.stem:<22}", f"{published / BILLION:>9.3f}", f"{ours / BILLION:>9.3f}"]
    cells.append(f"{ours / published - 1:>+8.2%}")
    if told["active_parameters"]:
        counted = active(shape, told["active_counts"])
        cells += [f"{told['active_parameters'] / BILLION:>7.2f}", f"{counted / BILLION:>7.2f}", told["active_counts"]]
    return "  ".join(cells)


def main() -> None:
    """Print the table; parameters in billions."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(f"{'model':<22}  {'published':>9}  {'ours':>9}  {'error':>8}  {'active':>7}  {'ours':>7}  counted")
    for path in sorted(library.FOLDER.glob("*.json")):
        print(row(path))


if __name__ == "__main__":
    main()
