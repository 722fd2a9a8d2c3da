"""Operands of tcgen05.mma: codes, their places in shared memory, and D's in tensor memory."""

from __future__ import annotations

import numpy as np

from support.matrices import BITS, decode, random_codes
from support.shared_matrices import Image, k_major
from support.tensor_memory import SMALL, number

A_AT, B_AT, ROOM = 0, 32768, 65536
VERSION = 1 << 46  # of a descriptor


def words(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, np.uint64).astype(np.uint32)


def lanes_of(m: int, n: int, group: int = 1, ws: bool = False) -> np.ndarray:
    """(CTA, lane, column) of D's elements: PTX ISA, "Data Path Layout Organization"."""
    place = np.zeros((m, n, 3), int)
    for row in range(m):
        for column in range(n):
            cta, r = divmod(row, m // group)
            if ws and m < 128:
                parts = 128 // m
                place[row, column] = 0, r + column // (n // parts) * m, column % (n // parts)
            elif group == 2 and m == 128:
                place[row, column] = cta, r + column // (n // 2) * 64, column % (n // 2)
            elif group == 1 and m == 64:
                place[row, column] = 0, r // 16 * 32 + r % 16, column
            else:
                place[row, column] = cta, r, column
    return place


def containers(codes: np.ndarray, type_: str) -> np.ndarray:
    """Bytes of rows as shared memory has them: 16 elements of 4 or 6 bits lie in the first of 16 bytes."""
    if type_ not in SMALL:
        size = BITS[type_] // 8
        return np.ascontiguousarray(codes.astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])).view(
            np.uint8
        )
    bits = 4 if type_ == "e2m1" else 6
    each = (codes.reshape(-1, 16)[:, :, None] >> np.arange(bits) & 1).astype(np.uint8).reshape(-1, 16 * bits)
    padded = np.zeros((len(each), 128), np.uint8)
    padded[:, : 16 * bits] = each
    return np.packbits(padded, axis=1, bitorder="little").reshape(len(codes), -1)


def some_codes(rng: np.random.Generator, type_: str, shape: tuple[int, ...], scale: int = 3) -> np.ndarray:
    if type_ in SMALL:
        return rng.integers(0, 16 if type_ == "e2m1" else 64, shape).astype(np.uint32)
    return random_codes(rng, type_, shape, scale)


def numbers(codes: np.ndarray, type_: str) -> np.ndarray:
    if type_ not in SMALL:
        return decode(codes, type_)
    return np.vectorize(lambda c: number(int(c), type_)[0], otypes=[np.float64])(codes)


def k_rows(image: Image, codes: np.ndarray, type_: str, start: int, swizzle: str = "none") -> int:
    """Rows along k, and their descriptor."""
    if type_ not in SMALL:
        return k_major(image, codes, type_, start, swizzle)[0] | VERSION
    raw = containers(codes, type_)
    image.put_bytes(raw, start, "none")
    return start >> 4 | len(raw) << 16 | 128 >> 4 << 32 | VERSION
