"""The tiles of gemm.cuh."""

COLUMNS, DEPTH, THREADS = 64, 16, 256


def tile_rows(rows: int) -> int:
    """The rows of a tile for a matrix of this many."""
    return 32 if rows <= 32 else 64
