"""Matrices in shared memory as descriptors of wgmma and tcgen05 name them: placed as TMA would place them."""

from __future__ import annotations

import numpy as np

from support.matrices import BITS

WIDTHS = {"none": 1, "32": 2, "64": 4, "128": 8}  # of a swizzled pattern, in 16-byte chunks
MODES = {"none": 0, "128": 1, "64": 2, "32": 3}
ROOM = 196608


def descriptor(start: int, leading: int, stride: int, swizzle: str, base: int = 0) -> int:
    assert start % 16 == leading % 16 == stride % 16 == 0
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | MODES[swizzle] << 62


class Image:
    """Shared memory containing a matrix as TMA would place it."""

    def __init__(self, room: int = ROOM) -> None:
        self.bytes = np.full(room, 0x5A, np.uint8)

    def put(self, codes: np.ndarray, type_: str, start: int, swizzle: str) -> list[int]:
        """Lines of `codes` (rows x elements that follow each other in memory), cut into boxes as wide as the
        pattern; descriptors of the first 32 bytes of the lines, the second, ...: fields LBO and SBO."""
        size = BITS[type_] // 8
        raw = np.ascontiguousarray(codes.astype({1: np.uint8, 2: np.uint16, 4: np.uint32}[size]))
        return self.put_bytes(raw.view(np.uint8), start, swizzle)

    def put_bytes(self, raw: np.ndarray, start: int, swizzle: str) -> list[int]:
        """As `put`, of bytes."""
        lines, length = raw.shape
        width = WIDTHS[swizzle]
        boxes = length // (16 * width)
        for line in range(lines):
            for c in range(length // 16):
                box, column = divmod(c, width)
                # The chunks of a 128-byte line are exchanged with the number of that line in its group of 8.
                row_in_pattern = line * width * 16 // 128
                swizzled = column ^ (row_in_pattern % width)
                at = start + box * lines * width * 16 + line * width * 16 + swizzled * 16
                self.bytes[at : at + 16] = raw[line, c * 16 : c * 16 + 16]
        return [boxes, lines * width * 16]


def k_major(image: Image, codes: np.ndarray, type_: str, start: int, swizzle: str) -> list[int]:
    """Stores rows that are contiguous along k; returns descriptors of each 32 bytes along k."""
    image.put(codes, type_, start, swizzle)
    width = WIDTHS[swizzle] * 16
    box = len(codes) * width
    total = codes.shape[1] * BITS[type_] // 8
    result = []
    for at in range(0, total, 32):
        first = start + at // width * box + at % width
        # Without swizzling, a box is one chunk wide, and the next chunk along k is one box further.
        result.append(descriptor(first, box if swizzle == "none" else 16, 8 * width, swizzle))
    return result


def mn_major(
    image: Image, codes: np.ndarray, type_: str, start: int, swizzle: str, step: int = 16
) -> list[int]:
    """Stores lines with a single k, contiguous along the rows of A or columns of B; returns a descriptor for
    each `step` of k. codes: k x mn.
    """
    image.put(codes, type_, start, swizzle)
    width = WIDTHS[swizzle] * 16
    box, group = len(codes) * width, 8 * width
    result = []
    for k in range(0, len(codes), step):
        leading, stride = (group, box) if swizzle == "none" else (box, group)
        result.append(descriptor(start + k * width, leading, stride, swizzle))
    return result
