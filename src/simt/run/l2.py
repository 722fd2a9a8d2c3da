"""What a program does to the L2 other than by accesses of its launches, in the engine's form."""

from __future__ import annotations

from typing import Literal, NamedTuple

Property = Literal["normal", "streaming", "persisting"]
Use = Literal["read", "received", "written"]
PROPERTIES: tuple[Property, ...] = ("normal", "streaming", "persisting")
"""By number of `CUaccessProperty` (CUDA driver API)."""


class MemoryRows(NamedTuple):
    """Device memory that a copy or memset uses: rows of `width` bytes, `pitch` bytes apart, `height` of them
    in each of `depth` slices.

    use: "read", "received" from the host, or "written".
    """

    address: int
    width: int
    pitch: int = 0
    height: int = 1
    slice: int = 0
    depth: int = 1
    use: Use = "received"


class AccessWindow(NamedTuple):
    """A range of device memory whose accesses have properties of their own in the L2.

    hit_ratio: share of its lines, chosen by a hash of the address, with the property `hit`; the others have
    `miss`.
    """

    address: int
    nbytes: int
    hit_ratio: float
    hit: Property
    miss: Property
