"""The L1 data cache and the way to it."""

from __future__ import annotations

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency, largest_that_hits

SMALL = 4096  # bytes that any L1 holds


def _hit(spec: Spec) -> float | None:
    return None if spec.l1.bypass_global else float(spec.l1.latency)


@microbenchmark("l1", "l1.latency", "cycle", expected=_hit)
def l1_latency(device: Device) -> float:
    """Cycles from a load that hits the L1 to its use."""
    return chase_latency(device, SMALL, 128)


@microbenchmark(
    "l1",
    "size of the L1 without shared memory",
    "byte",
    expected=lambda s: float(s.l1.unified_bytes or s.l1.cache.bytes),
)
def l1_size(device: Device) -> float:
    """Largest ring of lines that stays in the L1."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    return largest_that_hits(device, SMALL, 1 << 20, 128, "ca", limit)
