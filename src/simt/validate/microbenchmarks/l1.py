"""The L1 data cache and the way to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simt.errors import SimtError
from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark
from simt.validate.microbenchmarks.chases import chase_latency, evict, largest_that_hits, step_of

SMALL = 4096  # bytes that any L1 holds
THREADS = 1024
SET_STRIDE = 1 << 16  # bytes between lines of one set, if sets are chosen by an address's low bits


def _coalesced(spec: Spec) -> float | None:
    return 32.0 if spec.load_store.sectored_coalescing and not spec.l1.bypass_global else None


def _banks(spec: Spec) -> float | None:
    """At most four: lanes 128 bytes apart are in different lines, but all at the start of a line."""
    return None if spec.l1.bypass_global else float(min(4, spec.l1.banks))


def _hit(spec: Spec) -> float | None:
    """With collectors, a load takes four more cycles (docs/model/load-store.md)."""
    if spec.l1.bypass_global:
        return None
    return float(spec.l1.latency + (4 if spec.sm.register_file.model == "operand_collector" else 0))


def _ways(spec: Spec, shared: int = 0, threads: int = THREADS, ctas: int = 1) -> float | None:
    """Ways of the L1 that the carve-out leaves to a kernel (docs/model/dispatch.md).

    shared: bytes of shared memory per CTA. threads: per CTA. ctas: of the grid.
    """
    if spec.l1.bypass_global:
        return None
    if not spec.l1.adaptive:
        return float(spec.l1.cache.ways)
    memory = spec.shared_memory
    each = shared + memory.reserved_per_cta
    each = -(-each // memory.allocation_unit) * memory.allocation_unit
    fit = min(max(1, spec.sm.max_warps * spec.sm.warp_size // threads), spec.sm.max_ctas)
    fit = min(fit, max(1, memory.bytes // each)) if each else fit
    if spec.sm.register_file.model == "operand_collector":
        fit = min(fit, -(-ctas // spec.sm.count))
    carved = min((o for o in spec.l1.carve_out_options if o >= fit * each), default=memory.bytes)
    whole = spec.l1.cache.ways * spec.l1.unified_bytes / spec.l1.cache.bytes
    return float(max(1, int(whole * (1 - carved / spec.l1.unified_bytes) + 0.5)))


def _size(spec: Spec, shared: int = 0) -> float | None:
    ways = _ways(spec, shared)
    return None if ways is None else ways * spec.l1.cache.sets * spec.l1.cache.line_bytes


@microbenchmark("l1", "l1.latency", "cycle", expected=_hit)
def l1_latency(device: Device) -> float:
    """Cycles from a load that hits the L1 to its use."""
    return chase_latency(device, SMALL, 128)


@microbenchmark(
    "l1",
    "l1.cache, bytes without shared memory",
    "byte",
    expected=_size,
    moves=("l1.unified_bytes", "l1.cache.ways"),
)
def l1_size(device: Device) -> float:
    """Largest ring of lines that stays in the L1."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    return float(largest_that_hits(device, SMALL, 1 << 19, 128, "ca", limit, THREADS))


CARVED = 32 * 1024  # bytes of shared memory of a CTA; an SM holds one or two of these CTAs


@microbenchmark(
    "l1",
    "l1.carve_out_options: bytes of the L1 beside CTAs of 32 KiB",
    "byte",
    expected=lambda s: _size(s, CARVED),
)
def l1_size_carved(device: Device) -> float:
    """Largest ring of lines that stays in the L1 of a kernel whose CTAs of 1,024 threads have 32 KiB each."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    return float(largest_that_hits(device, SMALL, 1 << 19, 128, "ca", limit, THREADS, CARVED))


@microbenchmark("l1", "l1.cache.ways: without shared memory", "way", expected=_ways)
def l1_ways(device: Device) -> float:
    """Ways: the largest ring of lines of one set, 64 KiB apart, that stays in the L1."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    most = 512 * SET_STRIDE
    return largest_that_hits(device, SET_STRIDE, most, SET_STRIDE, "ca", limit, THREADS) / SET_STRIDE


@microbenchmark(
    "l1", "bytes of an L1 sector", "byte", expected=lambda s: 32.0 if s.l1.cache.sectored else None
)
def l1_sector(device: Device) -> float:
    """Bytes fetched by a miss: the smallest distance at which a second load misses, too."""
    count = 64 * 1024 // 128
    kernel = device.kernel("fetch.cu", "second_load")
    data = device.zeros(1 << 16, np.uint32)
    slow = {}
    for distance in (4, 8, 16, 32, 64, 96):
        cycles, sink = device.zeros(count, np.int64), device.zeros(1, np.uint32)
        kernel(1, 1, data, np.int32(distance), np.int32(count), np.int32(0), cycles, sink)
        slow[distance] = float(np.median(device.numpy(cycles)))
    return float(step_of(slow, (min(slow.values()) + max(slow.values())) / 2))


@microbenchmark(
    "l1",
    "l1.cache.line_bytes",
    "byte",
    expected=lambda s: None if s.l1.bypass_global else float(s.l1.cache.line_bytes),
    tolerance=WITHIN_3_PERCENT,
)
def l1_line(device: Device) -> float:
    """Line size: the L1's size divided by the pointers that fit, one per line."""
    limit = chase_latency(device, SMALL, 128) * 1.02
    # An odd number of sectors distributes the lines over all sets.
    apart = 17 * 32
    size = largest_that_hits(device, SMALL, 1 << 19, 32, "ca", limit, THREADS)
    most = size // 32 * apart
    lines = largest_that_hits(device, SMALL, most, apart, "ca", limit, THREADS) // apart
    return size / lines


def _within(device: Device, type_: str, bytes_: int) -> float:
    """Bytes per cycle that one SM reads from its L1."""
    threads, repeats = 512, 128  # enough warps that some load while others end an iteration
    size = min(8 * threads * bytes_, 32768)
    kernel = device.kernel("bandwidth.cu", "within", {"TYPE": type_})
    region, cycles = device.zeros(size // 4, np.uint32), device.zeros(2, np.int64)
    sink = device.zeros(threads, np.uint32)
    kernel(1, threads, region, np.int32(size // bytes_), np.int32(repeats), cycles, sink)
    once, twice = device.numpy(cycles)
    return size * repeats / float(twice - once)


def _bandwidth(spec: Spec) -> float | None:
    return None if spec.l1.bypass_global else 32.0 * spec.l1.banks


@microbenchmark("l1", "bytes a cycle of the L1, 32-bit loads", "byte/cycle")
def l1_bandwidth_32(device: Device) -> float:
    """Bytes that an SM reads from its L1 per cycle, 32 bits per lane."""
    return _within(device, "unsigned", 4)


@microbenchmark("l1", "bytes a cycle of the L1, 64-bit loads", "byte/cycle")
def l1_bandwidth_64(device: Device) -> float:
    """Bytes that an SM reads from its L1 per cycle, 64 bits per lane."""
    return _within(device, "uint2", 8)


@microbenchmark(
    "l1", "l1.banks, of 32 bytes a cycle", "byte/cycle", expected=_bandwidth, tolerance=WITHIN_3_PERCENT
)
def l1_bandwidth_128(device: Device) -> float:
    """Bytes that an SM reads from its L1 per cycle, 128 bits per lane."""
    return _within(device, "uint4", 16)


def _strided(device: Device, distance: int) -> float:
    """Cycles of 16 loads by each of an SM's warps, with the lanes' words `distance` bytes apart."""
    kernel, threads = device.kernel("fetch.cu", "strided"), 512
    cycles, sink = device.zeros(2, np.int64), device.zeros(threads, np.uint32)
    data = device.zeros(32 * 128 // 4, np.uint32)
    kernel(1, threads, data, np.int32(distance), np.int32(16), cycles, sink)
    once, twice = device.numpy(cycles)
    return float(twice - once)


@microbenchmark("l1", "load_store.sectored_coalescing", "byte", expected=_coalesced)
def coalescing(device: Device) -> float:
    """Transaction size, 32 bytes at most: the smallest distance of lanes' words that need one each.

    Words further apart collide in the L1's banks, which would be mistaken for larger transactions.
    """
    times = {distance: _strided(device, distance) for distance in (4, 8, 16, 32)}
    return float(step_of(times, 0.97 * max(times.values())))


def _stores_coalesced(spec: Spec) -> float | None:
    """Each stored sector is a transaction."""
    return 32.0 if spec.load_store.sectored_coalescing and _leaves(spec) else None


@microbenchmark("l1", "load_store.sectored_coalescing: of stores", "byte", expected=_stores_coalesced)
def store_coalescing(device: Device) -> float:
    """Transaction size of stores: the smallest distance of words that need one each."""
    kernel, threads, stores = device.kernel("stores.cu", "store_strided"), 512, 16
    times = {}
    for distance in (4, 8, 16, 32, 64):
        data, cycles = device.zeros(threads // 32 * stores * 1024, np.uint32), device.zeros(2, np.int64)
        kernel(1, threads, data, np.int32(distance), np.int32(stores), cycles)
        once, twice = device.numpy(cycles)
        times[distance] = float(twice - once)
    return float(step_of(times, 0.97 * max(times.values())))


@microbenchmark("l1", "l1.banks", "bank", expected=_banks, tolerance=WITHIN_3_PERCENT)
def l1_banks(device: Device) -> float:
    """Banks of the L1: how much longer a load takes if its sectors are all in one of them."""
    return _strided(device, 128) / _strided(device, 32)


class _Behind:
    """Cycles of a load that hits the L1, issued after others that miss it; see misses.cu."""

    def __init__(self, device: Device, lanes: int, apart: int, busy: bool, shared: int = 0) -> None:
        self._device, self._lanes, self._apart, self._shared = device, lanes, apart, shared
        # While memory is kept busy, no data returns, so no entry becomes free.
        self._grid, self._rounds, self._delay = (device.sms, 2, 100) if busy else (1, 0, 0)
        self._kernel = device.kernel("misses.cu", "behind_misses")
        self._threads = min(THREADS, device.threads_per_sm)
        self._held = [evict(device)]  # data that was read once is in the L2, so each probe reads other memory

    def cycles(self, misses: int) -> float:
        data = self._device.zeros((128 * 66 + (misses + 1) * self._apart) // 4, np.uint32)
        flood = self._device.zeros(max(1, 8 * self._grid * self._threads * self._rounds), np.uint32)
        self._held += [data, flood]
        found, sink = self._device.zeros(1, np.int64), self._device.zeros(self._threads, np.uint32)
        self._kernel(
            self._grid,
            self._threads,
            data,
            np.int32(misses),
            np.int32(self._lanes),
            np.int64(self._apart),
            np.int32(self._delay),
            flood,
            np.int32(self._rounds),
            found,
            sink,
            shared=self._shared,
        )
        return float(self._device.numpy(found)[0])

    def most(self, least: int, limit: int) -> float:
        """The largest number of misses that do not delay the hit, within 2 % from 64 on; at least `least`.

        Raises SimtError if it never waits.
        """
        quiet = self.cycles(1)

        def waits(misses: int) -> bool:
            # Without delay, a miss leaves every cycle; part of that time passes in any case (fitted).
            return self.cycles(misses) > max(1.2 * quiet, 0.92 * misses + 0.75 * quiet + 80)

        low, high = 1, least
        while high <= limit and not waits(high):
            low, high = high, 2 * high
        if high > limit:
            raise SimtError(f"the L1 takes {low} misses without waiting; more were not tried")
        while high - low > max(1, high // 64):
            middle = (low + high) // 2
            low, high = (low, middle) if waits(middle) else (middle, high)
        return float(low)


def _through_l1(value: Callable[[Spec], float]) -> Callable[[Spec], float | None]:
    return lambda spec: None if spec.l1.bypass_global else value(spec)


@microbenchmark(
    "l1",
    "l1.cache.mshr_entries",
    "sector",
    expected=_through_l1(lambda s: float(s.l1.cache.mshr_entries)),
    tolerance=WITHIN_3_PERCENT,
)
def l1_mshrs(device: Device) -> float:
    """Sectors that can be missing at once: the number of misses that do not block a later load that hits."""
    return _Behind(device, 32, 128, busy=True).most(32, 2048)


@microbenchmark(
    "l1", "l1.cache.mshr_merge", "request", expected=_through_l1(lambda s: float(s.l1.cache.mshr_merge))
)
def l1_merges(device: Device) -> float:
    """Loads that can wait for one sector before the next one blocks later accesses."""
    return _Behind(device, 1, 0, busy=True).most(4, 128)


def _reserved(spec: Spec) -> float | None:
    """The lines of a set if a miss reserves one; otherwise the MSHRs are the limit."""
    c = spec.l1.cache
    ways = _ways(spec, _most_shared(spec))
    return (
        None if ways is None else min(ways, c.mshr_entries) if c.allocation == "on_miss" else c.mshr_entries
    )


def _most_shared(spec: Spec) -> int:
    return spec.shared_memory.bytes - spec.shared_memory.reserved_per_cta


@microbenchmark("l1", "l1.cache.allocation: lines of a set that misses reserve", "line", expected=_reserved)
def l1_reserved_lines(device: Device) -> float:
    """Misses of one set that do not block later accesses, with the L1 at its smallest.

    It equals the lines of the set if a miss reserves one at once, and the MSHRs if a line is allocated when
    the data arrives.
    """
    return _Behind(device, 32, SET_STRIDE, busy=True, shared=device.shared_bytes_per_cta).most(16, 1024)


def _found_after_store(device: Device, bytes_: int, before: bool) -> float:
    """1 if a load finds in the L1 data that was stored before, else 0."""
    lines = 16
    kernel = device.kernel("stores.cu", "store_then_load")
    data, found = device.zeros(32 * lines, np.uint32), device.zeros(lines, np.int32)
    kernel(1, 32, data, np.int32(lines), np.int32(bytes_), np.int32(before), np.int32(0), np.int32(0), found)
    latency = float(np.median(device.numpy(found)))
    hit, past = chase_latency(device, SMALL, 128), chase_latency(device, SMALL, 128, "cg")
    return float(latency < (hit + past) / 2)


def _keeps(spec: Spec, whole: bool, before: bool) -> float | None:
    """Whether a load finds the stored data: docs/model/caches.md."""
    c = spec.l1.cache
    if spec.l1.bypass_global:
        return None
    if before:
        return float(c.write_policy in ("write_through", "write_back"))
    fetches = c.write_allocation in ("write_allocate", "fetch_on_write")
    return float(fetches or (c.write_allocation == "write_validate" and whole))


@microbenchmark(
    "l1",
    "l1.cache.write_policy: a line stays when it is stored to",
    "of 1",
    expected=lambda s: _keeps(s, True, True),
)
def l1_store_keeps(device: Device) -> float:
    """1 if a load finds a line in the L1 that was stored to while it was there, else 0."""
    return _found_after_store(device, 32, before=True)


@microbenchmark(
    "l1", "l1.cache.write_allocation: of a whole sector", "of 1", expected=lambda s: _keeps(s, True, False)
)
def l1_store_allocates(device: Device) -> float:
    """1 if a load finds a sector in the L1 after a store of the whole sector that missed, else 0."""
    return _found_after_store(device, 32, before=False)


@microbenchmark(
    "l1", "l1.cache.write_allocation: of a word", "of 1", expected=lambda s: _keeps(s, False, False)
)
def l1_store_word_allocates(device: Device) -> float:
    """1 if a load finds a word in the L1 after a store of the word that missed, else 0."""
    return _found_after_store(device, 4, before=False)


def _port(spec: Spec) -> float:
    """Bytes that pass an SM's port per cycle, in each direction; fewer with a slower crossbar clock."""
    return (
        32.0 * spec.interconnect.sm_port_sectors * min(1.0, spec.clock.interconnect_mhz / spec.clock.core_mhz)
    )


def _leaves(spec: Spec) -> float | None:
    """The expected value if every store is sent to the L2."""
    through = spec.l1.cache.write_policy == "write_through" and not spec.l1.bypass_global
    return _port(spec) if through else None


@microbenchmark(
    "l1",
    "l1.cache.write_policy: bytes a cycle stored to one line",
    "byte/cycle",
    expected=_leaves,
    tolerance=WITHIN_3_PERCENT,
)
def l1_store_bandwidth(device: Device) -> float:
    """Bytes per cycle that an SM stores repeatedly to the same lines; a sector, if written through."""
    kernel, threads, stores = device.kernel("stores.cu", "store_stream"), 512, 256
    data, cycles = device.zeros(threads, np.uint32), device.zeros(2, np.int64)
    kernel(1, threads, data, np.int32(stores), cycles)
    once, twice = device.numpy(cycles)
    return 4.0 * threads * stores / float(twice - once)


@microbenchmark(
    "l1",
    "interconnect.sm_port_sectors: bytes a cycle past the L1",
    "byte/cycle",
    expected=_port,
    tolerance=WITHIN_3_PERCENT,
    moves=("interconnect.sm_port_sectors", "clock.interconnect_mhz"),
)
def l1_bypass_bandwidth(device: Device) -> float:
    """Bytes per cycle that one SM reads from the L2, bypassing its L1."""
    threads, size = 1024, 1 << 16
    kernel = device.kernel("bandwidth.cu", "within", {"TYPE": "uint4", "LOAD": "PAST_L1"})
    region, cycles = device.zeros(size // 4, np.uint32), device.zeros(2, np.int64)
    kernel(1, threads, region, np.int32(size // 16), np.int32(16), cycles, device.zeros(threads, np.uint32))
    once, twice = device.numpy(cycles)
    return 16.0 * size / float(twice - once)
