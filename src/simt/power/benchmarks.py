"""Energy microbenchmarks: programs that do one thing for as long as needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simt.errors import PowerError
from simt.hints import did_you_mean
from simt.validate.device import BenchmarkDevice

SOURCE = "energy.cu"
_LANES = 32
_THREADS = 512  # of a CTA; one per SM
_SHARED_WORDS = 1024
_READS, _LENGTH = 16, 32  # bytes of an access; operations of a chain in a repetition


@dataclass(frozen=True)
class MeasuredMachine:
    """The facts of a GPU that determine a benchmark's size."""

    sms: int
    l2_bytes: int


def _none(machine: MeasuredMachine) -> Sequence[Any]:
    return ()


@dataclass(frozen=True)
class EnergyBenchmark:
    """A kernel of `energy.cu` that takes an array, a number of repetitions, and further arguments.

    name, what: for people. kernel, defines: the function, and macros. threads: of a CTA. sms: share of the
        SMs that work, each with one CTA. array: makes the first argument. arguments: those after `repeats`.
    repeats: of the simulated launches, with as many again for the second. sm_version: lowest that has it.
    """

    name: str
    what: str
    kernel: str
    array: Callable[[BenchmarkDevice, MeasuredMachine], Any]
    defines: Mapping[str, str | int] = field(default_factory=dict)
    arguments: Callable[[MeasuredMachine], Sequence[Any]] = _none
    threads: int = _THREADS
    sms: float = 1.0
    repeats: int = 2
    shared: int = 0
    sm_version: int = 0

    def prepare(self, device: BenchmarkDevice, machine: MeasuredMachine) -> Callable[[int], Any]:
        """Compiles it, makes its data, and returns the function that launches it with a number of
        repetitions."""
        kernel = device.compiled(SOURCE, self.kernel, self.defines)
        array, further = self.array(device, machine), self.arguments(machine)
        grid = max(1, round(self.sms * machine.sms))
        return lambda repeats: kernel[grid, self.threads, self.shared](array, np.int32(repeats), *further)


def _random(dtype: Any, count: int = 16 * _THREADS) -> Callable[[BenchmarkDevice, MeasuredMachine], Any]:
    """Random values: an operand that does not change takes less energy."""

    def make(device: BenchmarkDevice, machine: MeasuredMachine) -> Any:
        random = np.random.default_rng(0)
        if np.issubdtype(dtype, np.floating):
            return device.array(random.uniform(0.5, 1.0, count).astype(dtype))
        return device.array(random.integers(0, 1 << 32, count, np.uint32))

    return make


def _buffer(l2_share: float) -> Callable[[BenchmarkDevice, MeasuredMachine], Any]:
    def make(device: BenchmarkDevice, machine: MeasuredMachine) -> Any:
        random = np.random.default_rng(0)
        return device.array(random.integers(0, 1 << 32, _elements(machine, l2_share) * 4, np.uint32))

    return make


def _elements(machine: MeasuredMachine, l2_share: float) -> int:
    return int(l2_share * machine.l2_bytes) // _READS


def _asm(text: str, kind: str = "r") -> str:
    """A statement: %0 is the value, %1 and %2 are a and b."""
    return f'asm volatile("{text}" : "+{kind}"(x) : "{kind}"(a), "{kind}"(b))'


# name: TYPE, its NumPy type, STEP
_OPERATIONS: dict[str, tuple[str, Any, str]] = {
    "int_add": ("unsigned", np.uint32, _asm("add.u32 %0, %0, %1;")),
    "int_logic": ("unsigned", np.uint32, _asm("lop3.b32 %0, %0, %1, %2, 0x96;")),
    "int_shift": ("unsigned", np.uint32, _asm("shf.l.wrap.b32 %0, %0, %1, %2;")),
    "int_mad": ("unsigned", np.uint32, _asm("mad.lo.u32 %0, %0, %1, %2;")),
    "int_mul_high": ("unsigned", np.uint32, _asm("mul.hi.u32 %0, %0, %1;")),
    "int_compare": ("unsigned", np.uint32, _asm("min.u32 %0, %0, %1;")),
    "int_bits": ("unsigned", np.uint32, _asm("popc.b32 %0, %0;")),
    "move": ("unsigned", np.uint32, _asm("mov.u32 %0, %%clock;")),
    "convert": ("unsigned", np.uint32, _asm("cvt.rn.f32.u32 %0, %0;")),
    "fp32_add": ("float", np.float32, _asm("add.rn.f32 %0, %0, %1;", "f")),
    "fp32_mul": ("float", np.float32, _asm("mul.rn.f32 %0, %0, %1;", "f")),
    "fp32_fma": ("float", np.float32, _asm("fma.rn.f32 %0, %0, %1, %2;", "f")),
    "fp32_add_constant": ("float", np.float32, _asm("add.rn.f32 %0, %0, 0f3F000000;", "f")),
    "fp32_fma_square": ("float", np.float32, _asm("fma.rn.f32 %0, %1, %1, %2;", "f")),
    "fp32_compare": ("float", np.float32, _asm("min.f32 %0, %0, %1;", "f")),
    "fp16_add": ("unsigned", np.uint32, _asm("add.rn.f16x2 %0, %0, %1;")),
    "fp16_mul": ("unsigned", np.uint32, _asm("mul.rn.f16x2 %0, %0, %1;")),
    "fp16_fma": ("unsigned", np.uint32, _asm("fma.rn.f16x2 %0, %0, %1, %2;")),
    "fp64_add": ("double", np.float64, _asm("add.rn.f64 %0, %0, %1;", "d")),
    "fp64_mul": ("double", np.float64, _asm("mul.rn.f64 %0, %0, %1;", "d")),
    "fp64_fma": ("double", np.float64, _asm("fma.rn.f64 %0, %0, %1, %2;", "d")),
    "fp64_compare": (
        "double",
        np.float64,
        'asm volatile("{.reg .pred p; setp.lt.f64 p, %0, %1; @p add.rn.f64 %0, %0, %2;}" '
        ': "+d"(x) : "d"(a), "d"(b))',
    ),
    "sfu": ("float", np.float32, _asm("ex2.approx.ftz.f32 %0, %0;", "f")),
    "shuffle": ("unsigned", np.uint32, _asm("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;")),
    "vote": (
        "unsigned",
        np.uint32,
        'asm volatile("{.reg .pred p; setp.lt.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, 0xffffffff;}" '
        ': "+r"(x) : "r"(a))',
    ),
    "barrier": ("unsigned", np.uint32, _asm("bar.sync 0; add.u32 %0, %0, %1;")),
    "branch": (
        "unsigned",
        np.uint32,
        'asm volatile("{.reg .pred p; setp.ne.u32 p, %0, %1; @p bra L%=; bar.warp.sync 0xffffffff; L%=: '
        'add.u32 %0, %0, %1;}" : "+r"(x) : "r"(a))',
    ),
}
# Operations with fewer lanes, threads or SMs: issue apart from lanes, and the static power of parts.
_PARTLY: dict[str, tuple[str, dict[str, Any]]] = {
    "int_add_8_lanes": ("int_add", {"lanes": 8}),
    "fp32_fma_8_lanes": ("fp32_fma", {"lanes": 8}),
    "fp64_fma_8_lanes": ("fp64_fma", {"lanes": 8}),
    "one_warp": ("int_add", {"threads": 32}),
    "one_warp_per_sub_core": ("int_add", {"threads": 128}),
    "slow_sub_core": ("sfu", {"threads": 32, "lanes": 1}),
    "slow_sub_cores": ("sfu", {"threads": 128, "lanes": 1}),
    "half_of_the_sms": ("sfu", {"sms": 0.5, "lanes": 1}),
    "one_sm": ("sfu", {"sms": 0.0, "lanes": 1}),
}


def _compute(name: str, operation: str, lanes: int = _LANES, **shape: Any) -> EnergyBenchmark:
    type_, dtype, step = _OPERATIONS[operation]
    defines: dict[str, str | int] = {"TYPE": type_, "STEP(x,a,b)": step, "LENGTH": _LENGTH}
    operands = (3, 5) if dtype == np.uint32 else (0.75, 0.25)
    return EnergyBenchmark(
        name,
        f"{operation}, {lanes} lanes",
        "compute",
        _random(dtype),
        defines,
        _fixed(np.int32(lanes), *map(dtype, operands)),
        **shape,
    )


def _fixed(*arguments: Any) -> Callable[[MeasuredMachine], Sequence[Any]]:
    return lambda machine: arguments


def _tensor(name: str, type_: str) -> EnergyBenchmark:
    return EnergyBenchmark(
        name,
        f"products of FP16 matrices, accumulated in {type_}",
        "products",
        _random(np.uint32),
        {"ACCUMULATOR": type_, "LENGTH": _LENGTH},
        threads=256,
        sm_version=70,
    )


def _shared(name: str, lanes: int, stride: int) -> EnergyBenchmark:
    return EnergyBenchmark(
        name,
        f"shared memory, {lanes} lanes, {stride} words apart",
        "shared_reads",
        _random(np.uint32),
        {"LENGTH": _LENGTH},
        _fixed(np.int32(lanes), np.int32(stride)),
        shared=4 * _SHARED_WORDS,
    )


def _reads(name: str, what: str, l2_share: float, step: int = 1) -> EnergyBenchmark:
    """l2_share: bytes of the array over those of the L2; 0: each CTA reads the same few bytes, which the L1
    holds. step: accesses are so many elements apart."""

    def arguments(machine: MeasuredMachine) -> Sequence[Any]:
        elements = _elements(machine, l2_share) if l2_share else _THREADS
        return np.int32(elements), np.int32(step), np.int32(not l2_share)

    array = _buffer(l2_share) if l2_share else _random(np.uint32)
    defines: dict[str, str | int] = {"LOAD": "PAST_L1"} if l2_share else {}
    # Banks are opened in another order each time, which evens out over several readings of the array.
    repeats = 12 if step > 1 else 2 if l2_share < 1 else 1
    return EnergyBenchmark(name, what, "reads", array, defines, arguments, repeats=repeats)


def _writes(name: str, what: str, l2_share: float) -> EnergyBenchmark:
    def arguments(machine: MeasuredMachine) -> Sequence[Any]:
        return (np.int32(_elements(machine, l2_share)),)

    repeats = 2 if l2_share < 1 else 1
    return EnergyBenchmark(name, what, "writes", _buffer(l2_share), {}, arguments, repeats=repeats)


_ALL = (
    *(_compute(name, name) for name in _OPERATIONS),
    *(_compute(name, operation, **shape) for name, (operation, shape) in _PARTLY.items()),
    _tensor("tensor_fp16", "half"),
    _tensor("tensor_fp16_fp32", "float"),
    _shared("shared", _LANES, 1),
    _shared("shared_2_passes", _LANES, 2),
    _shared("shared_8_lanes", 8, 1),
    EnergyBenchmark("constants", "constants", "constants", _random(np.uint32), {"LENGTH": _LENGTH}),
    _reads("l1", "reads that hit in the L1", 0.0),
    _reads("l2", "reads that hit in the L2", 0.25),
    _reads("dram", "reads of device memory", 2.0),
    _reads("dram_rows", "reads of a sector of each KB of device memory", 96.0, 64),
    _writes("l2_writes", "writes that stay in the L2", 0.25),
    _writes("dram_writes", "writes to device memory", 16.0),
)
BENCHMARKS = {each.name: each for each in _ALL}


def choose(names: Sequence[str] | None) -> list[EnergyBenchmark]:
    """Those with these names; all for None. Raises PowerError for an unknown name."""
    for name in names or ():
        if name not in BENCHMARKS:
            hint = did_you_mean(name, list(BENCHMARKS)) or f"; there are {', '.join(BENCHMARKS)}"
            raise PowerError(f"no energy microbenchmark {name!r}{hint}")
    return [each for name, each in BENCHMARKS.items() if not names or name in names]
