"""Device memory."""

from __future__ import annotations

from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency
from simt.validate.microbenchmarks.l2 import cold_bandwidth


@microbenchmark("memory", "load from device memory", "cycle")
def memory_latency(device: Device) -> float:
    """Cycles from a load that misses everywhere to its use."""
    # What made the ring went past the beginning long ago: the L2 has evicted it.
    return chase_latency(device, 3 * device.l2_bytes, 4096 + 256, "cg", warm=4)


def _peak(spec: Spec) -> float:
    """Bytes a core cycle of the data buses."""
    d = spec.dram
    return (
        spec.address_map.channels
        * d.bus_bytes
        * d.data_command_ratio
        * spec.clock.dram_mhz
        / spec.clock.core_mhz
    )


@microbenchmark("memory", "bytes a cycle of device memory", "byte/cycle", expected=_peak, tolerance=0.2)
def memory_bandwidth(device: Device) -> float:
    """Bytes a core cycle that all SMs together read from device memory."""
    return cold_bandwidth(device, 2 * device.l2_bytes)
