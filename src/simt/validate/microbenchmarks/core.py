"""Execution units and issue of an SM."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simt.errors import SimtError
from simt.spec import Spec
from simt.validate.device import Device
from simt.validate.microbenchmark import WITHIN_3_PERCENT, microbenchmark
from simt.validate.microbenchmarks.chases import step_of
from simt.validate.microbenchmarks.l2 import l2_hit

LENGTH = 128  # operations of a chain
WARPS = 32  # of an SM that compete
CHAINS = 8

FMA = "x = __fmaf_rn(x, a, b)"
DFMA = "x = __fma_rn(x, a, b)"
ADD = 'asm volatile("add.s32 %0, %0, %1;" : "+r"(x) : "r"(a))'
MAD = 'asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
LOGIC = 'asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(x) : "r"(a), "r"(b))'
SHIFT = 'asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
HFMA2 = 'asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
RSQRT = 'asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x))'
FMA_OF_BITS = 'asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+r"(x) : "r"(a), "r"(b))'
SHUFFLE = 'asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(x))'


def chain(device: Device, type_: str, step: str, dtype: type) -> float:
    """Cycles from one operation to the next one, which needs its result."""
    kernel = device.kernel("chain.cu", "chain", {"TYPE": type_, "STEP(x,a,b)": step, "LENGTH": LENGTH})
    values, cycles = device.array(np.ones(32, dtype)), device.zeros(2, np.int64)
    kernel(1, 32, values, cycles, dtype(1), dtype(1))
    once, twice = device.numpy(cycles)
    return float(twice - once) / LENGTH


def throughput(
    device: Device, type_: str, step: str, dtype: type, warps: int = 16, odd_step: str | None = None
) -> float:
    """Operations of one SM per cycle, counted per lane.

    warps: four per scheduler keep its units busy. With more, a scheduler that prefers some of them leaves the
        others to finish alone.
    odd_step: the operation of every second chain, instead of `step`.
    """
    times = []
    length = max(4, 512 // warps)
    for double in (0, 1):
        defines: dict[str, str | int] = {"TYPE": type_, "STEP(x,a,b)": step, "LENGTH": length}
        defines |= {"CHAINS": CHAINS, **({"DOUBLE": 1} if double else {})}
        if odd_step is not None:
            defines["ODD_STEP(x,a,b)"] = odd_step
        kernel = device.kernel("throughput.cu", "throughput", defines)
        values = device.array(np.ones(32 * warps, dtype))
        begins, ends = device.zeros(warps, np.int64), device.zeros(warps, np.int64)
        kernel(1, 32 * warps, values, begins, ends, dtype(1), dtype(1))
        times.append(int(device.numpy(ends).max() - device.numpy(begins).min()))
    return warps * 32 * CHAINS * length / (times[1] - times[0])


def _dependent(spec: Spec, unit: str) -> float:
    """Cycles between dependent instructions of a unit, or of its substitute (docs/model/operands.md)."""
    units = spec.sm.units
    if getattr(units, unit).count == 0:
        unit = {"int": "fp32", "fp64": "sfu"}[unit]
    latency = getattr(units, unit).latency
    return float(latency + 5 if spec.sm.register_file.model == "operand_collector" else latency)


def _constant(spec: Spec) -> float | None:
    return None if spec.sm.register_file.model == "operand_collector" else float(spec.constant_cache.latency)


def _lanes(spec: Spec, unit: str) -> float:
    """Lanes that an SM's units of a kind complete per cycle, limited by what its schedulers can issue."""
    units = spec.sm.units
    if getattr(units, unit).count == 0:
        unit = {"int": "fp32", "fp64": "sfu"}[unit]
    u = getattr(units, unit)
    return float(32.0 * min(u.count / u.initiation_interval, spec.sm.sub_cores))


@microbenchmark("core", "sm.units.fp32.latency", "cycle", expected=lambda s: _dependent(s, "fp32"))
def fma_latency(device: Device) -> float:
    """FFMA: cycles until a dependent instruction can issue."""
    return chain(device, "float", FMA, np.float32)


@microbenchmark("core", "sm.units.fp64.latency", "cycle", expected=lambda s: _dependent(s, "fp64"))
def double_fma_latency(device: Device) -> float:
    """DFMA: cycles until a dependent instruction can issue."""
    return chain(device, "double", DFMA, np.float64)


@microbenchmark("core", "sm.units.int.latency", "cycle", expected=lambda s: _dependent(s, "int"))
def add_latency(device: Device) -> float:
    """IADD3: cycles until a dependent instruction can issue."""
    return chain(device, "int", ADD, np.int32)


@microbenchmark("core", "sm.units.int.latency", "cycle", expected=lambda s: _dependent(s, "int"))
def mad_latency(device: Device) -> float:
    """IMAD: cycles until a dependent instruction can issue."""
    return chain(device, "int", MAD, np.int32)


@microbenchmark("core", "sm.units.int.latency", "cycle", expected=lambda s: _dependent(s, "int"))
def logic_latency(device: Device) -> float:
    """LOP3: cycles until a dependent instruction can issue."""
    return chain(device, "int", LOGIC, np.int32)


@microbenchmark("core", "sm.units.int.latency", "cycle", expected=lambda s: _dependent(s, "int"))
def shift_latency(device: Device) -> float:
    """SHF: cycles until a dependent instruction can issue."""
    return chain(device, "int", SHIFT, np.int32)


@microbenchmark("core", "sm.units.fp32.latency", "cycle", expected=lambda s: _dependent(s, "fp32"))
def half_fma_latency(device: Device) -> float:
    """HFMA2: cycles until a dependent instruction can issue."""
    return chain(device, "unsigned", HFMA2, np.uint32)


@microbenchmark("core", "sm.units.sfu.latency", "cycle", expected=lambda s: _dependent(s, "sfu"))
def rsqrt_latency(device: Device) -> float:
    """MUFU: cycles until a dependent instruction can issue."""
    return chain(device, "float", RSQRT, np.float32)


@microbenchmark("core", "cycles of a shuffle", "cycle")
def shuffle_latency(device: Device) -> float:
    """SHFL: cycles until a dependent instruction can issue."""
    return chain(device, "unsigned", SHUFFLE, np.uint32)


@microbenchmark(
    "core",
    "sm.units.fp32.initiation_interval",
    "lane/cycle",
    expected=lambda s: _lanes(s, "fp32"),
    tolerance=WITHIN_3_PERCENT,
)
def fma_throughput(device: Device) -> float:
    """FFMA: lanes that an SM completes per cycle."""
    return throughput(device, "float", FMA, np.float32)


@microbenchmark(
    "core",
    "sm.units.int.initiation_interval",
    "lane/cycle",
    expected=lambda s: _lanes(s, "int"),
    tolerance=WITHIN_3_PERCENT,
)
def add_throughput(device: Device) -> float:
    """IADD3: lanes that an SM completes per cycle."""
    return throughput(device, "int", ADD, np.int32)


@microbenchmark(
    "core",
    "sm.units.int.initiation_interval",
    "lane/cycle",
    expected=lambda s: _lanes(s, "int"),
    tolerance=WITHIN_3_PERCENT,
)
def mad_throughput(device: Device) -> float:
    """IMAD: lanes that an SM completes per cycle."""
    return throughput(device, "int", MAD, np.int32)


def _mixed_lanes(spec: Spec) -> float:
    """Lanes per cycle if FFMA and IADD3 alternate, in separate units or both in those of FP32."""
    fp32, int_ = spec.sm.units.fp32, spec.sm.units.int
    each = fp32.count / fp32.initiation_interval
    pairs = min(each, int_.count / int_.initiation_interval) if int_.count else each / 2
    return 32.0 * min(2 * pairs, spec.sm.sub_cores * spec.sm.scheduler.issue_width)


@microbenchmark(
    "core",
    "whether sm.units.int works beside sm.units.fp32",
    "lane/cycle",
    expected=_mixed_lanes,
    tolerance=WITHIN_3_PERCENT,
)
def fma_add_throughput(device: Device) -> float:
    """FFMA and IADD3 in equal numbers: lanes that an SM completes per cycle."""
    return throughput(device, "unsigned", FMA_OF_BITS, np.uint32, odd_step=ADD)


@microbenchmark("core", "HFMA2 lanes of an SM, as registers can feed them", "lane/cycle")
def half_fma_throughput(device: Device) -> float:
    """HFMA2, two values per lane: lanes that an SM completes per cycle."""
    return throughput(device, "unsigned", HFMA2, np.uint32)


@microbenchmark(
    "core",
    "sm.units.fp64.initiation_interval",
    "lane/cycle",
    expected=lambda s: _lanes(s, "fp64"),
    tolerance=WITHIN_3_PERCENT,
)
def double_fma_throughput(device: Device) -> float:
    """DFMA: lanes that an SM completes per cycle."""
    return throughput(device, "double", DFMA, np.float64)


@microbenchmark(
    "core",
    "sm.units.sfu.initiation_interval",
    "lane/cycle",
    expected=lambda s: _lanes(s, "sfu"),
    tolerance=WITHIN_3_PERCENT,
)
def rsqrt_throughput(device: Device) -> float:
    """MUFU: lanes that an SM completes per cycle."""
    return throughput(device, "float", RSQRT, np.float32)


@microbenchmark("core", "sm.sub_cores", "scheduler", expected=lambda s: float(s.sm.sub_cores))
def schedulers(device: Device) -> float:
    """Schedulers of an SM: the number of warps that can all run at their scheduler's full rate."""
    one = throughput(device, "float", FMA, np.float32, 1)
    return float(round(throughput(device, "float", FMA, np.float32, 16) / one))


ORDER_LENGTH = 64  # rounds of eight operations, order.cu


def _share(device: Device, warp: int) -> float:
    """Operations per cycle of one of a scheduler's eight warps, all with the same work, until it finishes.

    warp: number of the warp, from the oldest.
    """
    kernel = device.kernel("order.cu", "order", {"LENGTH": ORDER_LENGTH})
    values = device.array(np.ones(32 * WARPS, np.float32))
    begins, ends = device.zeros(WARPS, np.int64), device.zeros(WARPS, np.int64)
    kernel(1, 32 * WARPS, values, begins, ends, np.float32(1), np.float32(1))
    return 8.0 * ORDER_LENGTH / float(device.numpy(ends)[WARPS // 8 * warp] - device.numpy(begins).min())


@microbenchmark("core", "sm.scheduler.policy: instructions of the oldest of eight warps", "instruction/cycle")
def oldest_warp_rate(device: Device) -> float:
    """Instructions per cycle of a scheduler's oldest warp, beside seven younger ones with the same work."""
    return _share(device, 0)


@microbenchmark(
    "core", "sm.scheduler.policy: instructions of the youngest of eight warps", "instruction/cycle"
)
def youngest_warp_rate(device: Device) -> float:
    """Instructions per cycle of a scheduler's youngest warp, beside seven older ones with the same work."""
    return _share(device, 7)


@microbenchmark("core", "cycles of a CTA barrier, one warp", "cycle")
def barrier_latency(device: Device) -> float:
    """BAR: cycles of a barrier with no other warp to wait for."""
    return chain(device, "int", "__syncthreads()", np.int32)


def _constant_chain(device: Device, sums: int) -> float:
    """Cycles of a load of constant memory and `sums` additions to its address."""
    kernel = device.kernel("constant.cu", "constant_chain", {"STEPS": 64, "SUMS": sums})
    cycles, end = device.zeros(2, np.int64), device.zeros(1, np.int32)
    kernel(1, 1, cycles, end)
    once, twice = device.numpy(cycles)
    return float(twice - once) / 64


@microbenchmark("core", "constant_cache.latency", "cycle", expected=_constant)
def constant_latency(device: Device) -> float:
    """Cycles from a load of constant memory with its address in a register to its use."""
    once, twice = (_constant_chain(device, sums) for sums in (1, 2))
    return once - (twice - once)


CONSTANT_BYTES = 61440  # constant.cu
CONSTANT_STRIDE = 64  # bytes: the smallest possible line
CONSTANT_SMALL, CONSTANT_LARGE = 512, 16384  # bytes: less and more than the caches nearest to schedulers hold
SET_STRIDE = 4096  # bytes between words of one set, if sets are chosen by an address's low bits


def _constant_walk(device: Device, size: int, stride: int = CONSTANT_STRIDE) -> float:
    """Cycles per load of constant memory in walks over `size` bytes."""
    cycles, end, count = device.zeros(2, np.int64), device.zeros(1, np.int32), size // stride
    kernel = device.kernel("constant.cu", "constant_walk")
    kernel(1, 1, np.int32(count), np.int32(stride), cycles, end)
    once, twice = device.numpy(cycles)
    return float(twice - once) / count


def _constant_step(device: Device, least: int) -> int:
    """The largest walk, in bytes, in which a load takes no longer than in one over `least` bytes.

    Raises SimtError if all of constant memory is equally near.
    """
    limit = 1.05 * _constant_walk(device, least)
    low, high = least // CONSTANT_STRIDE, CONSTANT_BYTES // CONSTANT_STRIDE
    if _constant_walk(device, CONSTANT_BYTES) <= limit:
        raise SimtError(f"loads from all {CONSTANT_BYTES} bytes of constant memory take the same time")
    while high - low > 1:
        middle = (low + high) // 2
        near = _constant_walk(device, middle * CONSTANT_STRIDE) <= limit
        low, high = (middle, high) if near else (low, middle)
    return low * CONSTANT_STRIDE


def _of_constants(value: Callable[[Spec], float | None]) -> Callable[[Spec], float | None]:
    """The expected value if constant caches can miss."""
    return lambda spec: None if spec.constant_cache.perfect else value(spec)


def _constant_ways(spec: Spec) -> float | None:
    cache = spec.constant_cache.l1
    one_set = cache.set_index == "linear" and cache.sets * cache.line_bytes <= SET_STRIDE
    return float(cache.ways) if one_set and cache.ways < CONSTANT_BYTES // SET_STRIDE else None


def _second_constants(spec: Spec) -> float | None:
    size = spec.sm.front_end.instruction_cache.l1.bytes
    return float(size) if size < CONSTANT_BYTES else None


@microbenchmark(
    "core",
    "constant_cache.l1: bytes, of loads",
    "byte",
    expected=_of_constants(lambda s: float(s.constant_cache.l1.bytes)),
    moves=("constant_cache.l1.ways",),
)
def constant_l1_size(device: Device) -> float:
    """Bytes of constant memory that repeated walks find in the first constant cache."""
    return float(_constant_step(device, CONSTANT_SMALL))


@microbenchmark(
    "core",
    "constant_cache.l1.line_bytes",
    "byte",
    expected=_of_constants(lambda s: float(s.constant_cache.l1.line_bytes)),
)
def constant_line(device: Device) -> float:
    """Line size of the first constant cache: the smallest distance of words at which every load misses."""
    strides = (8, 16, 32, 64, 128, 256)
    cycles = {stride: _constant_walk(device, CONSTANT_LARGE, stride) for stride in strides}
    return float(step_of(cycles, 0.97 * max(cycles.values())))


@microbenchmark("core", "constant_cache.l1.ways", "way", expected=_of_constants(_constant_ways))
def constant_ways(device: Device) -> float:
    """Ways of the first constant cache: the most words of one set, 4 KiB apart, that stay in it."""
    limit = 1.05 * _constant_walk(device, SET_STRIDE, SET_STRIDE)
    counts = range(2, CONSTANT_BYTES // SET_STRIDE + 1)
    cycles = {count: _constant_walk(device, count * SET_STRIDE, SET_STRIDE) for count in counts}
    return float(step_of(cycles, limit) - 1)


@microbenchmark(
    "core",
    "constant_cache.miss_latency: of loads",
    "cycle",
    expected=_of_constants(lambda s: float(s.constant_cache.miss_latency)),
    moves=("constant_cache.miss_latency",),
)
def constant_l2_latency(device: Device) -> float:
    """Additional cycles of a load of constant memory whose line is only in the second cache."""
    return _constant_walk(device, CONSTANT_LARGE) - _constant_walk(device, CONSTANT_SMALL)


@microbenchmark(
    "core",
    "sm.front_end.instruction_cache.l1: bytes, for constants",
    "byte",
    expected=_of_constants(_second_constants),
    tolerance=0.05,  # it also holds the walk's own code
    moves=("sm.front_end.instruction_cache.l1.ways",),
)
def constant_l2_size(device: Device) -> float:
    """Bytes of constant memory that repeated walks find in the second constant cache.

    None if it holds all constant memory that a program can have, as on GPUs since Volta; use
    instruction_l1_shared for these.
    """
    return float(_constant_step(device, 2 * _constant_step(device, CONSTANT_SMALL)))


def _l2_for_constants(spec: Spec) -> float | None:
    """Latency of a load that bypasses the L1, without the load/store unit; for an L2 with one part."""
    return l2_hit(spec) - spec.l1.bypass_latency - 10 if spec.l2.partitions == 1 else None


@microbenchmark(
    "core",
    "l2.latency: for constants",
    "cycle",
    expected=_of_constants(_l2_for_constants),
    tolerance=0.01,
    moves=(),
)
def constant_l3_latency(device: Device) -> float:
    """Additional cycles of a load of constant memory from the L2, compared with the second cache."""
    count, stride = 64, 256
    cycles, end = device.zeros(2, np.int64), device.zeros(1, np.int32)
    # A separate module has constant memory that is in no cache yet; one SM loads it into the L2 for another.
    kernel = device.kernel("constant.cu", "constant_first", {"STEPS": 1})
    for ctas in (1, 2):
        kernel(ctas, 1, np.int32(count), np.int32(stride), cycles, end)
    once, twice = device.numpy(cycles)
    return float(twice - once) / count - _constant_walk(device, CONSTANT_LARGE)


def _constant_operands(device: Device, count: int) -> float:
    """Cycles per FFMA of a chain that cycles through `count` constant operands, 64 bytes apart."""
    turns = OPERANDS // count  # so that the loop costs each operation about as much, whatever the count
    kernel = device.kernel(
        "constant.cu", "constant_operands", {"COUNT": count, "TURNS": turns, "APART": CONSTANT_STRIDE // 4}
    )
    cycles, values, rounds = device.zeros(2, np.int64), device.array(np.ones(32, np.float32)), 4
    kernel(1, 1, bytes(960 * 4), np.int32(rounds), cycles, values)
    once, twice = device.numpy(cycles)
    return float(twice - once) / (rounds * turns * count)


OPERANDS = 960 * 4 // CONSTANT_STRIDE  # the most constant operands of a kernel, 64 bytes apart


@microbenchmark(
    "core",
    "constant_cache.l1: bytes, of operands",
    "byte",
    expected=_of_constants(
        lambda s: float(s.constant_cache.l1.bytes) if s.constant_cache.l1.bytes < 960 * 4 else None
    ),
    tolerance=0.05,  # parameters need not start at a line
    moves=("constant_cache.l1.ways",),
)
def constant_operand_size(device: Device) -> float:
    """Bytes of constant operands that stay in the cache from which instructions read them."""
    limit = 1.05 * _constant_operands(device, CONSTANT_SMALL // CONSTANT_STRIDE)
    low, high = CONSTANT_SMALL // CONSTANT_STRIDE, OPERANDS
    if _constant_operands(device, high) <= limit:
        raise SimtError(f"all {high} constant operands take the same time")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _constant_operands(device, middle) <= limit else (low, middle)
    return float(low * CONSTANT_STRIDE)


@microbenchmark(
    "core",
    "constant_cache.miss_latency: of operands",
    "cycle",
    expected=_of_constants(lambda s: float(s.constant_cache.miss_latency)),
    moves=("constant_cache.miss_latency",),
)
def constant_operand_latency(device: Device) -> float:
    """Additional cycles before an instruction issues whose constant operand is only in the second cache."""
    near = _constant_operands(device, CONSTANT_SMALL // CONSTANT_STRIDE)
    return _constant_operands(device, OPERANDS) - near


VALUES, SECTION_STEPS, OPERATIONS = 12, 32, 12  # registers.cu; operations of a step
SCHEDULER_WARPS = 4  # of each of an SM's four schedulers (since Maxwell)


def _banks(spec: Spec) -> float | None:
    """Banks per scheduler. With more than four banks, no three of twelve values share one."""
    r = spec.sm.register_file
    banks = max(1, r.banks // spec.sm.sub_cores)
    return float(banks) if r.model == "read_ports" and r.read_ports_per_bank == 1 and banks <= 4 else None


@microbenchmark("core", "sm.register_file.banks: of each scheduler", "bank", expected=_banks)
def register_banks(device: Device) -> float:
    """Banks of a scheduler's registers: three values in the same bank take three cycles to read.

    The compiler chooses the registers. The benchmark finds those that share a bank with a given one; their
    share of all registers gives the number of banks.
    """
    pairs = [(j, k) for j in range(1, VALUES) for k in range(j + 1, VALUES)]
    sections = " ".join(f"F({j}, {k})" for j, k in pairs)
    kernel = device.kernel("registers.cu", "sections", {"SECTIONS(F)": sections, "STEPS": SECTION_STEPS})
    values, cycles = device.array(np.full(VALUES, 0.5, np.float32)), device.zeros(len(pairs), np.int64)
    found = []
    for _ in range(2):  # the first run loads the instructions
        kernel(1, 32 * 4 * SCHEDULER_WARPS, values, cycles)
        found.append(device.numpy(cycles))
    each = np.minimum(*found) / (SECTION_STEPS * OPERATIONS * SCHEDULER_WARPS)
    same = {value for pair, time in zip(pairs, each, strict=True) if time > 2.6 for value in pair}
    if not same:
        raise SimtError(f"no three of {VALUES} registers are read one after the other")
    return VALUES / (1 + len(same))
