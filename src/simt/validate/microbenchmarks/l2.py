"""The L2 and the way to it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simt.errors import SimtError
from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency, evict, step_of, walk_latency

SMALL = 1 << 16


def l2_hit(spec: Spec) -> float:
    """Core cycles of a load that bypasses the L1 and hits the L2.

    The sum of the way past the L1, the latency before the lookup, the wires, issue, the address queue, the
    way to the registers, the lookup itself, and four hand-overs: into and out of the crossbar, in both
    directions. A hand-over takes a crossbar cycle if the crossbar is not slower than the core. With a slower
    crossbar, consecutive loads run in step with its clock and wait for only one edge.
    """
    c = spec.clock
    of_interconnect, of_l2 = c.core_mhz / c.interconnect_mhz, c.core_mhz / c.l2_mhz
    here = 7 if spec.sm.register_file.model == "operand_collector" else 8
    crossing = 4 * min(1.0, of_interconnect) + max(0.0, of_interconnect - 1)
    wires = 2 * spec.interconnect.latency * of_interconnect
    return here + spec.l1.bypass_latency + (spec.l2.latency + 1) * of_l2 + wires + crossing


def whole_bandwidth(device: Device, size: int, repeats: int) -> float:
    """Bytes per core cycle that all SMs together read, in repeated walks over an array of `size` bytes."""
    elements = size // 16
    data, sink = device.zeros(4 * elements, np.uint32), device.zeros(1, np.uint32)
    kernel = device.kernel("bandwidth.cu", "whole")
    grid = 2 * device.sms
    walks = (1, repeats, 5 * repeats)  # the first run loads the array into the L2
    times = [kernel(grid, 1024, data, np.int64(elements), np.int32(n), sink) for n in walks]
    device.free(data)
    return 4 * size * repeats / (times[2] - times[1])


@microbenchmark("l2", "l2.slice.line_bytes, in sectors of", "byte", expected=lambda s: 32.0)
def l2_sector(device: Device) -> float:
    """Bytes fetched by a miss: the smallest distance at which a second load misses, too."""
    count, distances = 128, (4, 8, 16, 32, 64, 96)
    kernel = device.kernel("fetch.cu", "second_load")
    held = evict(device)
    # Each distance has memory of its own.
    arrays = [device.zeros(count * 32 + 32, np.uint32) for _ in distances]
    times = {}
    for distance, data in zip(distances, arrays, strict=True):
        cycles, sink = device.zeros(count, np.int64), device.zeros(1, np.uint32)
        kernel(1, 1, data, np.int32(distance), np.int32(count), np.int32(1), cycles, sink)
        times[distance] = float(np.median(device.numpy(cycles)))
    device.free(held)
    return float(step_of(times, (min(times.values()) + max(times.values())) / 2))


@microbenchmark(
    "l2",
    "l2.latency: load past the L1",
    "cycle",
    expected=l2_hit,
    tolerance=0.01,
    moves=("l2.latency",),
)
def l2_latency(device: Device) -> float:
    """Cycles from a load that hits the L2 to its use."""
    return chase_latency(device, SMALL, 128, "cg")


def _apart(device: Device, stride: int) -> float:
    """Bytes per core cycle that all SMs together read from the L2, from sectors this many bytes apart."""
    count, repeats = 256, 2
    kernel, sink = device.kernel("bandwidth.cu", "apart"), device.zeros(1, np.uint32)
    data = device.zeros(count * stride // 4, np.uint32)
    common = (data, np.int32(count), np.int64(stride))
    walks = (1, repeats, 5 * repeats)  # the first run loads the sectors into the L2
    times = [kernel(device.sms, count, *common, np.int32(n), np.int32(1), sink) for n in walks]
    device.free(data)
    return 32.0 * count * device.sms * 4 * repeats / (times[2] - times[1])


@microbenchmark("l2", "bytes a cycle of the L2, sectors 1 KiB apart: address_map.hash", "byte/cycle")
def l2_bandwidth_1k(device: Device) -> float:
    """Bytes per core cycle from the L2 of sectors 1 KiB apart; fewer if they share some of the slices."""
    return _apart(device, 1 << 10)


@microbenchmark("l2", "bytes a cycle of the L2, sectors 8 KiB apart: address_map.hash", "byte/cycle")
def l2_bandwidth_8k(device: Device) -> float:
    """Bytes per core cycle from the L2 of sectors 8 KiB apart; fewer if they share some of the slices."""
    return _apart(device, 1 << 13)


@microbenchmark("l2", "bytes a cycle of the L2, sectors 64 KiB apart: address_map.hash", "byte/cycle")
def l2_bandwidth_64k(device: Device) -> float:
    """Bytes per core cycle from the L2 of sectors 64 KiB apart; fewer if they share some of the slices."""
    return _apart(device, 1 << 16)


BUSY_LOADS = 32  # slices.cu: loads of the busy sector itself
# Lines of 128 bytes, in rounds over 128, 160, 192 or 320 of which each of as many slices has its share.
SLICE_LINES = 1920
ROUNDS = SLICE_LINES * 128


def _beside(device: Device, count: int, step: int) -> npt.NDArray[np.int64]:
    """Numbers of the loads, `step` bytes apart, that are delayed while other SMs load the first one's sector.

    The first address is where a round over the slices starts, as far as this follows from an address.
    """
    kernel = device.kernel("slices.cu", "beside")
    data = device.zeros((ROUNDS + count * step) // 4, np.uint32)
    stop, latencies = device.zeros(64, np.uint32), device.zeros(count + BUSY_LOADS, np.int32)
    scalars = (np.int64(-data.address % ROUNDS), np.int32(count), np.int32(step))
    kernel(device.sms, 512, data, *scalars, stop, latencies, shared=latencies.nbytes)
    found = device.numpy(latencies)
    low, free, high = np.percentile(found[:count], [25, 50, 75])
    busy = np.median(found[count:])
    # Queues grow where the others' loads wait; this SM's loads may bypass that place.
    late = np.nonzero(found[:count] > free + max((busy - free) / 10, 4 * (high - low)))[0]
    if busy < 1.02 * free or len(late) < 2:
        raise SimtError("no load is late beside others to the same slice")
    return np.asarray(late, np.int64)


MOST_LINES = 200_000  # lines, whose eviction takes a minute to simulate
SLICE_SMS = 64  # loads that fill the queue of a slice


@microbenchmark(
    "l2",
    "address_map: slices of the L2 that an SM reads from",
    "slice",
    expected=lambda s: s.address_map.slices / s.l2.partitions if s.sm.count >= SLICE_SMS else None,
    tolerance=WITHIN_3_PERCENT,
)
def l2_slices(device: Device) -> float:
    """Slices: lines, divided by those that are delayed while the first one's slice is kept busy."""
    return SLICE_LINES / len(_beside(device, SLICE_LINES, 128))


def _interleave(spec: Spec) -> float:
    """Bytes below the channel bits, or below the bit that selects the slice if that is lower."""
    a = spec.address_map
    lowest = a.layout[::-1].index("B") if a.slices_per_channel > 1 else a.channel_bit
    return float(1 << min(a.channel_bit, lowest))


@microbenchmark(
    "l2",
    "address_map.channel_bit: bytes in a row in one slice",
    "byte",
    expected=_interleave,
    moves=("address_map.channel_bit",),
)
def l2_interleave(device: Device) -> float:
    """Consecutive bytes in one slice: those delayed while the first is kept busy."""
    late = _beside(device, 256, 32)
    return 32.0 * float(np.argmin(np.append(np.diff(late) == 1, False)) + 1)


@microbenchmark(
    "l2",
    "l2.slice.ways",
    "way",
    # One part's copies of lines of the other part have separate entries.
    expected=lambda s: (
        float(s.l2.slice.ways)
        if s.l2.partitions == 1 and s.l2.slice.replacement in ("lru", "fifo")
        else None  # where another line than the oldest may go
    ),
    moves=(),
)
def l2_ways(device: Device) -> float:
    """Ways: the smallest number of other lines that evict a line because its set is full.

    The set of lines that evict it is reduced in ever smaller parts, as long as the rest still evicts it.
    """
    kernel, latency = device.kernel("slices.cu", "displaced"), device.zeros(1, np.int32)
    lines = 3 * device.l2_bytes // 128
    if device.simulated and lines > MOST_LINES:
        raise SimtError("the L2 has too many lines to try them in the simulator")
    data = device.zeros(32 * lines, np.uint32)
    limit = 1.25 * chase_latency(device, SMALL, 128, "cg")

    def displaces(numbers: npt.NDArray[np.int64]) -> bool:
        bits = np.zeros(-(-(int(numbers[-1]) + 1) // 32) * 32, np.uint8)
        bits[numbers] = 1
        mask = device.array(np.packbits(bits, bitorder="little").view(np.uint32))
        kernel(1, 1024, data, mask, np.int32(mask.size), latency, shared=mask.nbytes)
        device.free(mask)
        return bool(device.numpy(latency)[0] > limit)

    left = np.arange(1, lines)
    if not displaces(left):
        raise SimtError(f"{lines} lines do not displace one")
    low, high = 0, len(left)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if displaces(left[:middle]) else (middle, high)
    left = left[:high]
    part = high // 16
    while part:
        at = 0
        while at < len(left):
            fewer = np.delete(left, slice(at, at + part))
            if displaces(fewer):
                left = fewer
            else:
                at += part
        part //= 2
    device.free(data)
    return float(len(left))


@microbenchmark(
    "l2",
    "interconnect.look_ahead: bytes a cycle of the L2",
    "byte/cycle",
    moves=("interconnect.look_ahead",),
)
def l2_bandwidth(device: Device) -> float:
    """Bytes per core cycle that all SMs together read from the L2."""
    return whole_bandwidth(device, min(device.l2_bytes // 4, 2 << 20), 2)


def _far(device: Device) -> tuple[float, float]:
    """Cycles of a load that hits the near part of the L2, and additional cycles of one from the far part."""
    held = evict(device)  # the copy leaves its end in the L2, not yet requested by any SM
    latencies = walk_latency(device, held, device.l2_bytes * 5 // 2 - 2048 * 128, 128, 2048)
    device.free(held)
    near = float(np.percentile(latencies, 10))
    far = latencies[latencies > near + 40]
    return near, float(np.median(far)) - near if len(far) > len(latencies) // 8 else 0.0


@microbenchmark(
    "l2",
    "l2.far_latency: first load of what lies in another partition",
    "cycle",
    expected=lambda s: float(
        s.l2.far_latency * s.clock.core_mhz / s.clock.l2_mhz if s.l2.partitions > 1 else 0
    ),
    tolerance=0.01,
    moves=("l2.far_latency",),
)
def l2_far_latency(device: Device) -> float:
    """Additional cycles of far lines in the L2, compared with the nearest; 0 if all are equally near."""
    return _far(device)[1]


@microbenchmark(
    "l2",
    "l2.slice: bytes of all slices",
    "byte",
    expected=lambda s: float(s.l2.slice.bytes * s.address_map.slices),
    tolerance=WITHIN_3_PERCENT,
)
def l2_size(device: Device) -> float:
    """Bytes of a large copy from the host that a walk from its end finds in the L2."""
    lines = device.l2_bytes * 5 // 2 // 128
    apart = max(1, lines // 6144) | 1  # of the tried lines; odd, to distribute them over all sets
    held = evict(device)
    latencies = walk_latency(device, held, 128 * (lines - 1), -128 * apart, (lines - 1) // apart)
    device.free(held)
    # The latest copy is in the L2: one part near, the others, equally large, perhaps as far as memory.
    near = float(np.percentile(latencies[: len(latencies) // 10], 10))
    hits = latencies < near + 25
    parts = max(1, round(1 / float(hits[: len(hits) // 10].mean())))
    return float(128 * apart * parts * hits.sum())


def _after_store(device: Device, bytes_: int, distance: int) -> float:
    """1 if, after a store of this many bytes to lines that are not in the L2, a load finds the data
    `distance` bytes after its start in the L2; else 0."""
    lines = 192  # more than one part has in a row
    kernel = device.kernel("stores.cu", "store_then_load")
    hit = chase_latency(device, SMALL, 128, "cg")
    held = evict(device)
    data, found = device.zeros(32 * lines + 32, np.uint32), device.zeros(lines, np.int32)
    flags = (np.int32(lines), np.int32(bytes_), np.int32(0), np.int32(1), np.int32(distance))
    kernel(1, 32, data, *flags, found)
    device.free(held)
    # If the L2 has two parts, the nearer one counts.
    return float(np.percentile(device.numpy(found), 25) < 1.25 * hit)


def _keeps(spec: Spec, whole: bool) -> float:
    """Without allocation, nothing is kept; a validated sector holds the stored data."""
    c = spec.l2.slice
    if c.write_allocation == "none" or c.write_policy == "write_evict":
        return 0.0
    return float(whole or c.write_allocation in ("write_allocate", "fetch_on_write"))


@microbenchmark(
    "l2",
    "l2.slice.write_allocation: of a whole sector",
    "of 1",
    expected=lambda s: _keeps(s, True),
    moves=("l2.slice.write_allocation",),
)
def l2_store_allocates(device: Device) -> float:
    """1 if a load finds a sector in the L2 after a store to it that missed, else 0."""
    return _after_store(device, 32, 0)


@microbenchmark(
    "l2",
    "l2.slice.write_allocation: rest of a sector of which a word was stored",
    "of 1",
    expected=lambda s: _keeps(s, False),
    moves=("l2.slice.write_allocation",),
)
def l2_store_fetches(device: Device) -> float:
    """1 if the rest of a sector is in the L2 after a store of its first word, else 0."""
    return _after_store(device, 4, 16)


@microbenchmark(
    "l2",
    "l2.copies_fill",
    "of 1",
    expected=lambda s: float(s.l2.copies_fill),
)
def l2_copies_fill(device: Device) -> float:
    """1 if the L2 holds the latest copy from the host, else 0."""
    hit = chase_latency(device, SMALL, 128, "cg")
    held = evict(device)
    latencies = walk_latency(device, held, device.l2_bytes * 5 // 2 - 256 * 128, 128, 256)
    device.free(held)
    return float(np.percentile(latencies, 10) < 1.25 * hit)


@microbenchmark(
    "l2",
    "bytes a cycle of one slice",
    "byte/cycle",
    # Each part of the L2 reads it from its own slice.
    expected=lambda s: (
        s.l2.partitions
        * min(s.l2.port_bytes * s.clock.l2_mhz, 32 * s.clock.interconnect_mhz)
        / s.clock.core_mhz
    ),
    tolerance=WITHIN_3_PERCENT,
)
def l2_slice_bandwidth(device: Device) -> float:
    """Bytes per core cycle that all SMs together read of one sector."""
    kernel = device.kernel("fetch.cu", "same_sector")
    data, sink = device.zeros(8, np.uint32), device.zeros(1, np.uint32)
    times = [kernel(device.sms, 128, data, np.int32(n), sink) for n in (8, 8, 24)]
    return 32.0 * device.sms * 4 * 16 / (times[2] - times[1])


@microbenchmark(
    "l2",
    "l2.slice.write_policy: a modified sector is not written at each store",
    "of 1",
    expected=lambda s: float(s.l2.slice.write_policy == "write_back"),
)
def l2_write_back(device: Device) -> float:
    """1 if stores of all SMs to one sector are faster than a memory channel, else 0: 0.4 of loads."""
    kernel, data = device.kernel("stores.cu", "store_sector"), device.zeros(8, np.uint32)
    times = [kernel(device.sms, 128, data, np.int32(n)) for n in (16, 16, 64)]
    stored = 32.0 * device.sms * 4 * 48 / (times[2] - times[1])
    return float(stored > 0.4 * l2_slice_bandwidth(device))
