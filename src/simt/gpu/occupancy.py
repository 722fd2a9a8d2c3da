"""How many CTAs of a kernel fit on an SM."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simt import _engine
from simt.errors import LaunchError

from .arguments import shared_bytes

if TYPE_CHECKING:
    from .module import Kernel


@dataclass(frozen=True)
class Occupancy:
    """CTAs of a kernel that an SM holds at once, and what keeps it from holding more: "warps", "registers",
    "shared memory" or "CTAs". warps: of these CTAs. share: of the warps that an SM can hold."""

    ctas: int
    limited_by: str
    warps: int
    share: float


def occupancy_of(kernel: Kernel, block: tuple[int, int, int], shared: Any) -> Occupancy:
    """See `Kernel.occupancy`."""
    gpu, facts = kernel.module.gpu, kernel.facts
    threads = math.prod(block)
    dynamic = shared_bytes(shared, f"kernel `{kernel.name}`: the dynamic shared memory")
    allowed, sm = gpu.machine_facts, gpu.spec.sm
    what = (
        f"kernel `{kernel.name}`: a block of {threads:,} threads with {facts.shared_bytes + dynamic:,} bytes"
    )
    if threads > allowed["threads_per_cta"]:
        raise LaunchError(f"{what}: this GPU allows {allowed['threads_per_cta']:,} threads")
    if facts.shared_bytes + dynamic > allowed["shared_bytes_per_cta"]:
        raise LaunchError(
            f"{what}: this GPU has {allowed['shared_bytes_per_cta']:,} bytes of shared memory a block"
        )
    ctas, limited_by = _engine.occupancy(
        gpu.native_spec, threads, facts.shared_bytes + dynamic, facts.registers
    )
    if not ctas:
        raise LaunchError(
            f"{what} and {facts.registers} registers a thread needs more {limited_by} than an SM has"
        )
    warps = ctas * -(-threads // sm.warp_size)
    return Occupancy(ctas, limited_by, warps, warps / sm.max_warps)
