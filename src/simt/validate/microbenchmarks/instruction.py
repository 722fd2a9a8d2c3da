"""The instruction caches of an SM."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simt.errors import SimtError
from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark

BLOCKS = 511  # of a kernel, that are targets
BLOCK, LARGE = 128, 512  # bytes of one
AROUND = 512  # bytes, about: the head of the loop before the first block, and the code around the loop
JUMPS = (37, 41)  # targets from one to the next, further than the prefetched lines
SPREAD = 509  # targets: jumps of any length reach all of them, and an L0 holds fewer


class _Walk:
    """Walks over code. large: in blocks of 512 bytes. pad: instructions by which the code is shifted."""

    def __init__(self, device: Device, large: bool = False, pad: int = 0) -> None:
        padding = " ".join(
            f'asm volatile("{"xor.b32" if i % 2 else "add.u32"} %0, %0, {0x7001 + i};" : "+r"(x));'
            for i in range(pad)
        )
        self._device = device
        self._kernel = device.kernel("jumps.cu", "walk_code", {"LARGE": int(large), "PADDING": padding})

    def _run(self, targets: int, apart: int, jump: int) -> tuple[float, float]:
        jump = jump or next(j for j in JUMPS if targets % j)
        cycles, sink = self._device.zeros(2, np.int64), self._device.zeros(1, np.float32)
        numbers = (targets, apart, jump % targets, 2 * targets, targets)
        self._kernel(1, 1, *(np.uint32(n) for n in numbers), cycles, sink)
        once, twice = self._device.numpy(cycles)
        return float(once) / targets, float(twice) / targets

    def cycles(self, targets: int, jump: int = 0) -> float:
        """Cycles from one of `targets` jump targets to the next. jump: distance in targets; 0: far apart."""
        once, twice = self._run(targets, 1, jump)
        return twice - once

    def most(self, apart: int, least: int, slower: float) -> int:
        """The largest number of targets between which a jump takes at most `slower` times as long as between
        `least` targets. apart: blocks from one target to the next. Raises SimtError if all blocks fit."""

        def slowest(targets: int) -> float:
            # Of two measurements, because targets that do not fit need not miss evenly.
            once, twice = self._run(targets, apart, 0)
            return max(once, twice / 2)

        limit = slower * slowest(least)
        low, high = least, BLOCKS // apart
        if slowest(high) <= limit:
            raise SimtError(f"{high} blocks of code fit; more were not tried")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if slowest(middle) <= limit else (low, middle)
        return low


SMALL = 16  # targets that any cache holds


def _first_bytes(device: Device) -> int:
    """Bytes of the cache nearest to the schedulers."""
    return _Walk(device).most(1, SMALL, 1.1) * BLOCK + AROUND


def _of_l0(value: Callable[[Spec], float]) -> Callable[[Spec], float | None]:
    """The expected value if there is an L0; the collector model fetches several instructions at once."""

    def expected(spec: Spec) -> float | None:
        cache = spec.sm.front_end.instruction_cache
        there = not cache.perfect and cache.l0_lines > 0 and cache.l1_shared_by == 1
        return value(spec) if there and spec.sm.register_file.model == "read_ports" else None

    return expected


def _l0_bytes(spec: Spec) -> float:
    cache = spec.sm.front_end.instruction_cache
    return float(cache.l0_lines * cache.l1.line_bytes)


_CACHE = "sm.front_end.instruction_cache"


@microbenchmark(
    "instruction",
    f"{_CACHE}.l0_lines: bytes",
    "byte",
    expected=_of_l0(_l0_bytes),
    tolerance=WITHIN_3_PERCENT,
    moves=(f"{_CACHE}.l0_lines",),
)
def instruction_l0_size(device: Device) -> float:
    """L0 instruction cache: bytes of code within which jumps are as fast as within little code."""
    return float(_first_bytes(device))


@microbenchmark(
    "instruction",
    f"{_CACHE}.l1.line_bytes",
    "byte",
    expected=_of_l0(lambda s: float(s.sm.front_end.instruction_cache.l1.line_bytes)),
    tolerance=WITHIN_3_PERCENT,
    moves=(),
)
def instruction_line(device: Device) -> float:
    """Line size, 128 bytes at least: the L0's size divided by the jump targets that fit, one per line."""
    pads = range(BLOCK // 16)  # with one of them, targets are at the start of lines
    lines = max(_Walk(device, pad=pad).most(2, SMALL, 1.1) for pad in pads)
    whole = _first_bytes(device)
    return (whole - AROUND) / lines


@microbenchmark(
    "instruction",
    f"{_CACHE}.l1_latency: of a jump into code that is not in the L0",
    "cycle",
    expected=_of_l0(lambda s: float(s.sm.front_end.instruction_cache.l1_latency - _hidden(s))),
    moves=(f"{_CACHE}.l1_latency",),
)
def instruction_l1_latency(device: Device) -> float:
    """Additional cycles of a jump whose target is only in the L1 instruction cache."""
    walk = _Walk(device)
    return walk.cycles(BLOCKS - 1) - walk.cycles(SMALL)


def _hidden(spec: Spec) -> int:
    """If the buffer looks beyond a taken branch, two instructions of the target are in it before its line is
    requested; the next one is an FFMA behind the second one's."""
    return 0 if spec.sm.front_end.branch_latency > 0 else 1 + spec.sm.units.fp32.initiation_interval


@microbenchmark(
    "instruction",
    f"{_CACHE}.prefetch_lines: bytes fetched ahead",
    "byte",
    expected=_of_l0(
        lambda s: float(
            s.sm.front_end.instruction_cache.prefetch_lines * s.sm.front_end.instruction_cache.l1.line_bytes
        )
    ),
    moves=(f"{_CACHE}.prefetch_lines",),
)
def instruction_prefetch(device: Device) -> float:
    """Bytes that forward jumps may skip at no additional cost, in code that is not in the L0."""
    found = []
    for pad in range(BLOCK // 16):  # with one of them, no target crosses a line
        walk = _Walk(device, pad=pad)
        slow = (walk.cycles(SMALL) + walk.cycles(SPREAD)) / 2
        jump = 1
        while jump < JUMPS[0] and walk.cycles(SPREAD, jump) < slow:
            jump += 1
        found.append(jump - 1)
    return float(BLOCK * min(found))


@microbenchmark(
    "instruction",
    f"{_CACHE}.l1: bytes",
    "byte",
    expected=_of_l0(lambda s: float(s.sm.front_end.instruction_cache.l1.bytes)),
    tolerance=WITHIN_3_PERCENT,
    moves=(f"{_CACHE}.l1.sets", f"{_CACHE}.l1.ways"),
)
def instruction_l1_size(device: Device) -> float:
    """Bytes of code within which jumps are as fast as in code that just exceeds the L0."""
    least = 2 * _first_bytes(device) // LARGE
    # Where the code after the walk needs a way of a set that blocks fill, all of that set's blocks miss,
    # which slows the walk by a tenth. Beyond the capacity, every further block does that to four sets.
    return float(_Walk(device, large=True).most(1, least, 1.15) * LARGE)


CONSTANTS = 896  # words of constant memory, 64 bytes apart: 56 KiB


def _with_constants(spec: Spec) -> float | None:
    """The expected value if the cache is smaller than all code and constants that a kernel can have."""
    size = spec.sm.front_end.instruction_cache.l1.bytes
    fits = 64 * CONSTANTS < size < 64 * CONSTANTS + BLOCKS * LARGE
    return None if spec.constant_cache.perfect or not fits else float(size)


@microbenchmark(
    "instruction",
    f"{_CACHE}.l1: bytes, of code and constants together",
    "byte",
    expected=_with_constants,
    tolerance=0.05,
    moves=(f"{_CACHE}.l1.sets", f"{_CACHE}.l1.ways"),
)
def instruction_l1_shared(device: Device) -> float:
    """Bytes of code and constants, walked alternately, that keep constants as near as with little code."""
    kernel = device.kernel("jumps.cu", "walk_code", {"LARGE": 1, "PADDING": "", "CONSTANTS": CONSTANTS})

    def slowest(targets: int) -> float:
        cycles, sink = device.zeros(2, np.int64), device.zeros(1, np.float32)
        jump = next(j for j in JUMPS if targets % j)
        numbers = (targets, 1, jump % targets, targets, targets)
        kernel(1, 1, *(np.uint32(n) for n in numbers), cycles, sink)
        return float(device.numpy(cycles).max())

    limit, low, high = 1.02 * slowest(SMALL), SMALL, BLOCKS
    if slowest(high) <= limit:
        raise SimtError(f"{CONSTANTS * 64} bytes of constants stay beside {high * LARGE} bytes of code")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slowest(middle) <= limit else (low, middle)
    return float(64 * CONSTANTS + LARGE * low)
