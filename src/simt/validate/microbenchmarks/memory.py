"""Device memory."""

from __future__ import annotations

import numpy as np

from simt.errors import SimtError
from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark
from simt.validate.microbenchmarks.chases import each_latency, evict, ring_of
from simt.validate.microbenchmarks.l2 import l2_hit

LINE = 128
STREAM, STREAM_CTAS = 8 << 20, 16  # least bytes of a bandwidth measurement, and CTAs per SM


def _reopened(device: Device) -> tuple[float, float]:
    """Additional cycles of a load that opens a row, at least and at most.

    At least: a refresh has closed the bank. At most: another row is open in the bank because of one of the
    lines loaded just before, which happens in one of a hundred tests.
    """
    lines, step = 2400, 35 * LINE
    data, others = (device.zeros(n * step // 4, np.uint32) for n in (lines + 1, 32 * lines + 1))
    found, held = device.zeros(lines, np.int32), evict(device)
    device.kernel("rows.cu", "reopened")(1, 32, data, others, np.int64(step), np.int32(lines), found)
    cycles = np.sort(device.numpy(found).astype(np.int64))
    for array in (data, others, held):
        device.free(array)
    # The number of tests within two cycles of each value has peaks, one for open rows, others for opening.
    values = np.arange(cycles[0], cycles[-1] + 1)
    near = np.searchsorted(cycles, values + 2, "right") - np.searchsorted(cycles, values - 2)
    open_ = int(values[near.argmax()])
    beyond = (values > open_ + 8) & (near >= lines // 200)
    if not beyond.any():
        raise SimtError("all loads take the same time: no rows are seen")
    peaks = np.split(values[beyond], np.nonzero(np.diff(values[beyond]) > 1)[0] + 1)
    tops = [int(peak[near[peak - values[0]].argmax()]) for peak in peaks]
    # Loads that also wait for a refresh are beyond the first peak and more spread out.
    most = max(tops[1:], key=lambda top: near[top - values[0]], default=tops[0])

    def middle(value: int) -> float:
        return float(cycles[abs(cycles - value) <= 4].mean())

    return middle(tops[0]) - middle(open_), middle(most) - middle(open_)


def _ratio(spec: Spec) -> float:
    """Core cycles per cycle of the memory command clock."""
    return spec.clock.core_mhz / spec.clock.dram_mhz


def _row_hit(spec: Spec) -> float:
    """L2 latency, controller, column access, burst, and four cycles of clock crossing."""
    d = spec.dram
    controller = d.latency * spec.clock.core_mhz / spec.clock.l2_mhz
    column = 0 if d.simple else (d.cl + d.burst_length / d.data_command_ratio) * _ratio(spec)
    return l2_hit(spec) + controller + column + 4


def _opening(spec: Spec) -> float:
    return 0.0 if spec.dram.simple else (spec.dram.rcd + spec.dram.rp) * _ratio(spec)


def _column_interval(spec: Spec) -> float | None:
    """At least a burst; if that is shorter, the distance between columns of a bank group."""
    d = spec.dram
    burst = 32 / (d.bus_bytes * d.data_command_ratio)
    return None if d.simple else max(d.ccdl, d.ccd, burst) * _ratio(spec)


def _row_miss(spec: Spec) -> float:
    """Every load opens a row. Refreshes have closed the previous one, and some loads wait for a refresh, for
    half of it on average. With two partitions, every other line comes from the far one."""
    d = spec.dram
    opening = d.rcd + d.rfc**2 / (2 * d.refi) if d.refi else d.rcd + d.rp
    far = 0.5 * spec.l2.far_latency * spec.clock.core_mhz / spec.clock.l2_mhz
    return (
        _row_hit(spec)
        + (0.0 if d.simple else opening * _ratio(spec))
        + (far if spec.l2.partitions > 1 else 0.0)
    )


@microbenchmark(
    "memory",
    "load of a row that is not open",
    "cycle",
    expected=_row_miss,
    tolerance=WITHIN_3_PERCENT,
    moves=("dram.latency",),
)
def memory_latency(device: Device) -> float:
    """Cycles from a load that misses both caches to its use, with rows opened and closed as usual."""
    # The number of lines is coprime to 35, so that there is one ring, and each step goes to another row.
    lines = 2 * device.l2_bytes // LINE | 1
    lines += 2 if lines % 5 == 0 or lines % 7 == 0 else 0
    ring, _ = ring_of(device, LINE * lines, LINE, jump=35)
    held = evict(device)
    latencies = each_latency(device, ring, 256, warm=1024)
    device.free(ring)
    device.free(held)
    return float(latencies.mean())


@microbenchmark(
    "memory",
    "load of an open row: dram.latency and dram.cl",
    "cycle",
    expected=_row_hit,
    tolerance=WITHIN_3_PERCENT,
)
def row_hit_latency(device: Device) -> float:
    """Cycles from a load that misses both caches and finds its row open to its use."""
    ring, _ = ring_of(device, LINE * 544, LINE // 2)
    held = evict(device)
    latencies = each_latency(device, ring, 1024, warm=32)
    device.free(ring)
    device.free(held)
    # Every second load finds the row open despite refreshes, and half of the lines may be far.
    return float(np.percentile(latencies, 10))


@microbenchmark(
    "memory",
    "dram.rcd: what opening a row takes",
    "cycle",
    expected=lambda s: None if s.dram.simple or not s.dram.refi else s.dram.rcd * _ratio(s),
    tolerance=0.05,
)
def row_open_latency(device: Device) -> float:
    """Additional cycles of a load whose bank was closed by a refresh."""
    return _reopened(device)[0]


@microbenchmark(
    "memory",
    "dram.rcd and dram.rp: what opening a row takes, and closing another",
    "cycle",
    expected=lambda s: None if s.dram.simple else _opening(s),
    tolerance=0.05,
)
def row_miss_latency(device: Device) -> float:
    """Additional cycles of a load that finds another row open in its bank."""
    return _reopened(device)[1]


def _row_bytes(spec: Spec) -> float | None:
    """The row of one channel is addressed by the column bits, including those within a burst."""
    layout = spec.address_map.layout
    return None if spec.dram.simple else float(1 << (layout.count("C") + layout.count("S")))


@microbenchmark(
    "memory", "address_map.layout: bytes of a row", "byte", expected=_row_bytes, tolerance=WITHIN_3_PERCENT
)
def row_bytes(device: Device) -> float:
    """Bytes of a row of a channel, rounded to a power of two.

    It follows from how often a load finds its row open after one in 32 of the lines around it was loaded.
    """
    lines, windows = 4096, 512
    data, found = device.zeros(windows * lines * LINE // 4, np.uint32), device.zeros(windows, np.int32)
    held = evict(device)
    device.kernel("rows.cu", "beside_others")(1, 128, data, np.int32(lines), np.int32(windows), found)
    cycles = device.numpy(found)
    for array in (data, held):
        device.free(array)
    # In every fourth window, the row was open before.
    before = np.arange(windows) % 4 == 3
    values, counts = np.unique(cycles[before], return_counts=True)
    is_open = abs(cycles - values[counts.argmax()]) <= 6
    stays, opened = is_open[before].mean(), is_open[~before].mean()
    # Rows are closed at a constant rate; a row opened by one of the loads, after half of the time on average.
    stays = (stays - 1) / np.log(stays) if 0 < stays < 1 else stays
    if not 0 < opened < stays:
        raise SimtError("all loads take the same time: no rows are seen")
    # None of a row's other lines was loaded, each with a probability of 31/32.
    others = np.log(1 - opened / stays) / np.log(31 / 32)
    return float(LINE * 2 ** round(np.log2(1 + others)))


def _most_read(spec: Spec) -> float:
    """The peak without the time of refreshes of all banks together, before which every row is closed."""
    d = spec.dram
    lost = (d.rp + d.rfc + d.rcd) / d.refi if d.refi and not d.per_bank_refresh else 0.0
    return spec.dram_bytes_per_cycle * (1 - lost)


@microbenchmark(
    "memory",
    "bytes a cycle of device memory",
    "byte/cycle",
    expected=_most_read,
    tolerance=WITHIN_3_PERCENT,
)
def memory_bandwidth(device: Device) -> float:
    """Bytes per core cycle that all SMs together read from device memory, by CTAs that each read 128 KiB."""
    kernel, sink = device.kernel("streams.cu", "read_vectors"), device.zeros(1, np.uint32)
    rounds = 4
    of_cta = rounds * 2 * 16 * 1024
    size = max(STREAM, 2 * STREAM_CTAS * device.sms * 1024 * 16) // of_cta * of_cta
    held = evict(device)
    arrays = [device.zeros(bytes_ // 4, np.uint32) for bytes_ in (size, 3 * size)]
    times = [kernel(a.nbytes // of_cta, 1024, a, np.int32(rounds), sink) for a in arrays]
    for array in [*arrays, held]:
        device.free(array)
    return 2 * size / (times[1] - times[0])


@microbenchmark(
    "memory",
    "dram.ccdl: sectors of one row",
    "cycle",
    expected=_column_interval,
    tolerance=0.05,  # across clocks, 9 and 8.5 cycles for three intervals look the same
)
def row_sector_interval(device: Device) -> float:
    """Cycles from one sector of a line in device memory to the next, in the same bank."""
    kernel, lines = device.kernel("fetch.cu", "whole_line"), 2048
    arrays = [device.zeros(lines * LINE // 4, np.uint32) for _ in range(2)]
    held = evict(device)
    means = []
    for array, sectors in zip(arrays, (1, 4), strict=True):
        latencies = device.zeros(lines, np.int32)
        kernel(1, 32, array, np.int32(sectors), np.int32(lines), latencies)
        found = device.numpy(latencies)
        # For near lines in open rows.
        means.append(float(found[found < np.percentile(found, 20) + 12].mean()))
    for array in [*arrays, held]:
        device.free(array)
    return (means[1] - means[0]) / 3


@microbenchmark("memory", "bytes a cycle of device memory, sectors 4 KiB apart", "byte/cycle")
def memory_bandwidth_4k(device: Device) -> float:
    """Bytes per core cycle of uncached sectors 4 KiB apart; fewer if they share channels."""
    count, stride = 8192, 4096
    kernel, sink = device.kernel("bandwidth.cu", "apart"), device.zeros(1, np.uint32)
    # The first launch loads the instructions.
    arrays = [device.zeros(n * stride // 4, np.uint32) for n in (64, count, 3 * count)]
    held = evict(device)
    times = [
        kernel(
            2 * device.sms,
            128,
            a,
            np.int32(a.nbytes // stride),
            np.int64(stride),
            np.int32(1),
            np.int32(0),
            sink,
        )
        for a in arrays
    ]
    for array in [*arrays, held]:
        device.free(array)
    return 32.0 * 2 * count / (times[2] - times[1])


def stream_bandwidth(device: Device, name: str, arrays: int) -> float:
    """Bytes per core cycle of a kernel of streams.cu, in which each thread moves one element.

    Each of two launches of different length follows one that leaves the L2 full of written data, so that both
    have the same amount to write back.
    """
    kernel = device.kernel("streams.cu", name)
    before, *lengths = (n * device.l2_bytes // 8192 * 1024 for n in (2, 3, 9))
    data = [device.zeros(max(lengths), np.float64) for _ in range(arrays)]
    times = []
    for elements in lengths:
        kernel(before // 1024, 1024, *data, np.int64(before))
        times.append(kernel(elements // 1024, 1024, *data, np.int64(elements)))
    for array in data:
        device.free(array)
    return 8 * arrays * (lengths[1] - lengths[0]) / (times[1] - times[0])


@microbenchmark("memory", "bytes a cycle of device memory, read and written", "byte/cycle")
def copy_bandwidth(device: Device) -> float:
    """Bytes per core cycle, read and written, of a copy in device memory."""
    return stream_bandwidth(device, "scale_each", 2)


@microbenchmark("memory", "bytes a cycle of device memory, written", "byte/cycle")
def fill_bandwidth(device: Device) -> float:
    """Bytes per core cycle that all SMs together write to device memory."""
    return stream_bandwidth(device, "fill_each", 1)
