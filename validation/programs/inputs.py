"""Writes input files in the formats that Rodinia's and Parboil's programs read.

They take the place of files that no public repository has, for programs whose work depends on the size of
their input and not on its values; recipes of others say so (`unclear`). Equal arguments write equal files.

    inputs.py keys FILE COUNT            b+tree: the numbers 0 to COUNT - 1, as in Rodinia's mil.txt
    inputs.py lines FILE COUNT           hotspot: a value in each line
    inputs.py bytes FILE COUNT           dwt2d: an image, whose header the program takes for pixels
    inputs.py graph FILE NODES EDGES     bfs: EDGES from each node to nodes at random
    inputs.py floats FILE COUNT          stencil: 32-bit values
    inputs.py matrix FILE ROWS COLUMNS   sgemm: a matrix, column after column
    inputs.py mri FILE SAMPLES PIXELS    mri-q: a trajectory, pixels, and the signal
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

RANDOM = np.random.default_rng(19)


def floats(count: int) -> bytes:
    return RANDOM.random(count, dtype=np.float32).astype("<f4").tobytes()


def lines(values: np.ndarray) -> bytes:
    return "".join(f"{value}\n" for value in values.tolist()).encode()


def keys(count: int) -> bytes:
    return f"{count}\n".encode() + lines(np.arange(count))


def decimals(count: int) -> bytes:
    return lines(np.round(RANDOM.random(count), 6))


def image(count: int) -> bytes:
    return RANDOM.integers(256, size=count, dtype=np.uint8).tobytes()


def graph(nodes: int, edges: int) -> bytes:
    """For each node its first edge and their number; the first node; for each edge its end and a weight."""
    begins = "".join(f"{edges * node} {edges}\n" for node in range(nodes))
    ends = "".join(f"{end} 1\n" for end in RANDOM.integers(nodes, size=nodes * edges).tolist())
    return f"{nodes}\n{begins}\n0\n\n{nodes * edges}\n{ends}".encode()


def matrix(rows: int, columns: int) -> bytes:
    return f"{rows} {columns}\n".encode() + decimals(rows * columns)


def mri(samples: int, pixels: int) -> bytes:
    numbers = np.array([samples, pixels], dtype="<i4").tobytes()
    return numbers + floats(3 * samples) + floats(3 * pixels) + floats(2 * samples)


KINDS: dict[str, Callable[..., bytes]] = {
    "keys": keys,
    "lines": decimals,
    "bytes": image,
    "graph": graph,
    "floats": floats,
    "matrix": matrix,
    "mri": mri,
}

if __name__ == "__main__":
    kind, file, *sizes = sys.argv[1:]
    Path(file).write_bytes(KINDS[kind](*map(int, sizes)))
