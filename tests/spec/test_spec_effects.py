"""Every field has an effect: another value changes what is simulated, or is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simt import _engine
from simt.errors import SpecError
from simt.gpu import GPU
from simt.spec import Spec, load_spec
from simt.spec.files import ANY_NAME, _fields, choices, range_of
from simt.spec.section import Megahertz, Quantity
from simt.trace import Copy, open_trace
from simt.trace.writer import LOCAL_BASE, SHARED_BASE, Warp
from support.tiny import GLOBAL, MOST_CYCLES, finished, write_kernel

GPUS = {"qv100": {"sm.count": 3}, "h100": {"sm.count": 4}, "titan-accelsim": {"sm.count": 2}}
NAMES = ("name", "description")
SEEN_BY_PROGRAMS = ("sm_version", "dram.capacity_gib")
OF_BULK_COPIES = (
    "load_store.bulk_line_interval",
    "load_store.bulk_copy_interval",
    "load_store.tensor_map_latency",
)
"""Traces do not say which lines bulk copies access: tests/engine/test_bulk_copies.py."""


def arithmetic(warp: Warp, seed: int) -> None:
    """Every unit, separately and combined, with results needed immediately and later."""
    opcodes = "IADD3 IMAD FFMA DFMA MUFU.RCP HMMA.16816.F32 TEX UIADD3 BRA HFMA2 HMMA.16816.F16"
    for i, opcode in enumerate(opcodes.split()):
        for k in range(4):
            warp.op(opcode, 8 + (i + k) % 12, (8 + k, 9 + (seed + k) % 8, 16 + k))
        warp.op(opcode, 8, (8, 9))
        warp.op(opcode, 8, (8, 10))
        warp.op("FADD", 9 + i, (12, 16, 20))


def tensor_memory(warp: Warp) -> None:
    """Products into tensor memory by one and by two CTAs, and loads from there, each awaited."""
    # Columns, CTAs, whether D is in two groups of lanes and operands are swizzled, and their bytes.
    for product in (256, 128 | 2 << 12 | 1 << 15, 64 | 1 << 12 | 1 << 39 | 6144 << 40):
        warp.memory("UTCHMMA", [product] * 32, 16, None, ())
        warp.memory("UTCBAR", [64] * 32, 8, None, ())
        warp.memory("SYNCS.PHASECHK.TRANS64.TRYWAIT", [64] * 32, 8, None, (3,))
        warp.op("LDTM.x16", 8, ())
        warp.op("FADD", 9, (8, 8))


def memory(warp: Warp, seed: int) -> None:
    """Every kind of access: near and far, by lines, words and bytes; read, written, and read again."""

    def lanes(base: int, stride: int) -> list[int]:
        return [base + stride * lane for lane in range(32)]

    base = GLOBAL + 8192 * seed
    for i in range(6):
        warp.memory("LDG.E.SYS", lanes(base + 1024 * i, 4), 4, 8 + i, (2,))
        warp.memory("LDG.E.SYS", lanes(GLOBAL + 4096 * i, 132), 4, 9, (2,))
        warp.memory("STG.E.SYS", lanes(base + 512 * i, 4), 4, None, (2, 8))
        warp.memory("STG.E.U8", lanes(base + 640 * i + 7, 40), 1, None, (2, 8))
        warp.memory("STS.128", lanes(0, 16), 16, None, (3, 8))
        warp.memory("LDS.64", lanes(128 * i, 8), 8, 14, (3,))
        warp.memory("LDS.128", lanes(0, 0), 16, 12, (3,))
        warp.memory("LDS", lanes(0, 64), 4, 12, (3,))
        warp.memory("LD.E", lanes(SHARED_BASE, 4), 4, 12, (2,))
        warp.memory("LDG.E.SYS", lanes(base, 0), 4, 10, (2,))
        warp.memory("LDC", lanes(GLOBAL + 192 * i, 0), 4, 13, (3,))
        warp.memory("LDC", lanes(GLOBAL + 192 * (i + 5 * seed), 192), 4, 8, (8,))
        warp.memory("STL", lanes(LOCAL_BASE + 4 * i, 0), 4, None, (2, 8))
        warp.memory("LDL", lanes(LOCAL_BASE + 4 * i, 0), 4, 15, (2,))
        # Kepler's L1 allocates no line for a store: only this one, of what was loaded, modifies a line.
        warp.memory("STL", lanes(LOCAL_BASE + 4 * i, 0), 4, None, (2, 15))
        warp.memory("ATOMG.E.ADD", lanes(GLOBAL + 64 * i, 4), 4, 16, (2,))
        warp.memory("RED.E.ADD", lanes(GLOBAL + 4 * i, 0), 4, None, (2, 8))
        warp.memory("LDG.E.STRONG.GPU", lanes(base + 256 * i, 8), 4, 17, (2,))
        warp.memory("LDG.E.EF", lanes(base + 2048 * i, 64), 4, 18, (2,))
        warp.op("FFMA", 20, (8, 9, 12))
        if i == 3:
            warp.op("MEMBAR.SC.GPU")
            warp.op("BAR.SYNC")


def scattered(warp: Warp, seed: int) -> None:
    """More lines than caches and queues hold at once, in conflicting DRAM rows."""
    for i in range(5):
        at = GLOBAL + (((seed * 5 + i) * 7919 % 512) << 13)
        warp.memory("LDG.E.SYS", [at + 4224 * lane for lane in range(32)], 4, 8 + i % 4, (2,))
        warp.memory("STG.E.SYS", [at + 2176 * lane for lane in range(32)], 4, None, (2, 8))


def jumping(warp: Warp, seed: int) -> None:
    """Code and constants in three lines of one set of their caches, the first of which is used in every
    iteration; then what else has a latency of its own.
    """
    for i in range(4):
        for line in (0, 1 + i % 2):
            warp.pc = line << 16
            for _ in range(4):
                warp.op("FFMA", 8, (9, 10))
            warp.memory("LDC", [GLOBAL + (line << 16)] * 32, 4, 13, (13,))
            warp.op("BRA")
    warp.op("I2F.U32", 8, (8,))
    warp.op("FFMA", 8, (8, 10))
    warp.memory("ATOMS.ADD", [0] * 32, 4, 9, (8, 9))
    warp.op("FFMA", 8, (9, 10))
    for i in range(7):
        warp.op("HGMMA.64x64x16.F32", 24 + 32 * i, (24 + 32 * i,))
    warp.op("FFMA", 8, (9, 10))
    warp.memory("LDG.E.SYS", [OTHER.base] * 32, 4, 9, (2,))
    warp.op("FFMA", 8, (9, 10))
    tensor_memory(warp)


_SPACE = _engine.functional.AddressSpace(1 << 45, 1 << 30, 2)
OWN, OTHER = (_engine.functional.DeviceMemory(1 << 20, _SPACE, number) for number in range(2))
"""The memories of two devices that share an address space."""

Kernel = tuple[Callable[[Warp, int], None], int, int, dict[str, int]]
"""What a warp does, CTAs, warps of each, and the launch's properties."""

SMALL: list[Kernel] = [
    (arithmetic, 2, 3, {}),
    (memory, 2, 2, {"shared_bytes": 20001}),
    (scattered, 2, 1, {"stream": 1}),
    (jumping, 1, 1, {"stream": 2, "shared_bytes": 128, "sm": 90}),
]
# Small and large CTAs, in two streams.
LARGE: list[Kernel] = [
    (arithmetic, 6, 6, {}),
    (memory, 4, 4, {"shared_bytes": 20000}),
    (scattered, 4, 6, {}),
    (arithmetic, 70, 1, {"stream": 1}),
    (memory, 10, 2, {"shared_bytes": 9000, "registers": 60, "stream": 2}),
]


def write(folder: Path, kernels: list[Kernel]) -> Path:
    """A trace of the kernels, preceded by a copy."""
    folder.mkdir(parents=True)
    (folder / "kernelslist.g").write_text(f"MemcpyHtoD,{GLOBAL:#x},16384\n")
    for number, (build, ctas, warps, shape) in enumerate(kernels, 1):
        made = [[Warp() for _ in range(warps)] for _ in range(ctas)]
        for c, cta in enumerate(made):
            for w, warp in enumerate(cta):
                build(warp, c * warps + w)
        write_kernel(folder, made, number, **shape)
    return folder


@functools.cache
def workloads(folder: Path) -> tuple[Path, Path]:
    return write(folder / "small", SMALL), write(folder / "large", LARGE)


COLLECTOR = {"sm.register_file.model": "operand_collector", "constant_cache.perfect": True}
READ_PORTS = {"sm.register_file.model": "read_ports", "sm.sub_core_model": True}
FETCHING = {
    "sm.front_end.instruction_cache.perfect": False,
    "sm.front_end.instruction_cache.l1.sets": 2,
    "sm.front_end.instruction_cache.l1.ways": 2,
}
CONSTANTS = {
    **READ_PORTS,
    **FETCHING,
    "constant_cache.perfect": False,
    "constant_cache.latency": 26,
    "constant_cache.miss_latency": 79,
    "constant_cache.l1.sets": 2,
    "constant_cache.l1.ways": 2,
}
SMALL_L1 = {"l1.adaptive": False, "l1.cache.sets": 2, "l1.cache.ways": 4}
SMALL_L2 = {"l2.slice.sets": 2, "l2.slice.ways": 4}
SLOW_DRAM = {"address_map.channels": 2, "address_map.hash": "linear", **SMALL_L2}
TWO_CTAS = {
    "sm.count": 1,
    "shared_memory.bytes": 40002,
    "shared_memory.allocation_unit": 1,
    "shared_memory.reserved_per_cta": 0,
}
CACHED = {"l1.adaptive": False, "l1.bypass_global": False, "l1.cache.allocation": "on_miss"}
CARVED = {
    "l1.adaptive": True,
    "l1.bypass_global": False,
    "l1.unified_bytes": 65536,
    "l1.carve_out_options": (16384, 49152),
}
TENSOR_MEMORY = {
    "sm.tensor_memory_columns": 2,
    "sm.tensor_memory_product_latency": 400,
    "sm.tensor_memory_pair_latency": 400,
    "sm.tensor_memory_split_latency": 400,
    "sm.tensor_memory_swizzled_bandwidth": 64,
    "sm.tensor_memory_bandwidth": 64,
}
CONTEXTS: dict[str, list[dict[str, Any]]] = {
    "launch.dispatch_latency": [{"sm.max_ctas": 4}],
    "launch.dispatch_rate": [{"launch.dispatch_burst": 0}],
    "launch.dispatch_burst": [{"launch.dispatch_rate": 100}],
    "launch.from_first_sm": [{**FETCHING, "sm.count": 3, "launch.max_concurrent_kernels": 1}],
    "sm.front_end.instruction_cache.prefetch_latency": [
        {
            **FETCHING,
            "sm.front_end.instruction_cache.l0_lines": 2,
            "sm.front_end.instruction_cache.prefetch_lines": 2,
        }
    ],
    "sm.front_end.fetch_width": [COLLECTOR],
    "sm.front_end.instruction_cache.l1_miss_queue": [CONSTANTS],
    "sm.front_end.instruction_cache.l1.replacement": [
        {**FETCHING, "sm.front_end.instruction_cache.l0_lines": 1}
    ],
    "sm.front_end.instruction_cache": [FETCHING, {**FETCHING, "sm.front_end.instruction_cache.l0_lines": 2}],
    "sm.scheduler.active_warps": [{"sm.scheduler.policy": "two_level", "sm.scheduler.active_warps": 3}],
    "sm.scheduler.dual_issue_different_units": [{"sm.scheduler.issue_width": 2}],
    "sm.multiplications_on_fp32": [{"sm.units.int.count": 4}],
    "sm.units.int": [{"sm.units.int.count": 4}],
    "sm.units.branch": [{"sm.units.branch.count": 4}],
    "sm.register_file": [COLLECTOR, READ_PORTS, {"sm.register_file.registers": 16384}],
    "shared_memory.allocation_unit": [TWO_CTAS],
    "shared_memory.reserved_per_cta": [TWO_CTAS],
    "shared_memory.operand_bandwidth": [READ_PORTS],
    "sm.warp_group_queue": [READ_PORTS],
    "sm.half_rate_fp32_accumulation": [{**READ_PORTS, "sm.units.tensor.initiation_interval": 60}],
    "sm.tensor_memory_columns": [TENSOR_MEMORY],
    "sm.tensor_memory_product_latency": [TENSOR_MEMORY],
    "sm.tensor_memory_pair_latency": [TENSOR_MEMORY],
    "sm.tensor_memory_split_latency": [TENSOR_MEMORY],
    "sm.tensor_memory_swizzled_bandwidth": [TENSOR_MEMORY],
    "sm.tensor_memory_bandwidth": [TENSOR_MEMORY],
    "sm.tensor_memory_latency": [TENSOR_MEMORY],
    "sm.sub_core_model": [COLLECTOR],
    "constant_cache": [CONSTANTS],
    "l1.cache.dirty_hash": [
        {"l1.adaptive": False, "l1.cache.sets": sets, "l1.cache.ways": 8, "l1.cache.dirty_limit": limit}
        for sets, limit in ((1, 20), (4, 50))
    ],
    "l2.slice.dirty_hash": [{"l2.slice.dirty_limit": 20, "l2.slice.sets": sets} for sets in (1, 4)],
    "tlb": [{"tlb.entries": 2, "tlb.miss_latency": 300, "sm.count": 2}],
    "l1.cache.miss_queue": [{**CACHED, "interconnect.input_buffer": 1}],
    "l1.unified_bytes": [CARVED],
    "l1.carve_out_options": [CARVED],
    "l1": [SMALL_L1, {**CACHED, "launch.max_concurrent_kernels": 1}],
    "l2.partial_write_interval": [{"load_store.sectored_coalescing": True}],
    "l2.slice.mshr_entries": [{**SLOW_DRAM, "l2.slice.mshr_entries": 16}],
    "l2": [SMALL_L2, {"l2.partitions": 2, "l2.far_latency": 90}],
    "l1.bypass_latency": [{"l1.bypass_global": True}],
    "load_store.sub_core_queue": [READ_PORTS],
    "interconnect": [{"l1.bypass_global": True, **SMALL_L2}],
    "dram.return_queue": [{**SLOW_DRAM, "dram.scheduler_queue": 32, "dram.return_queue": 2}],
    "dram": [
        SLOW_DRAM,
        {
            **SLOW_DRAM,
            "dram.write_queue": True,
            "dram.write_queue_size": 8,
            "dram.write_high": 6,
            "dram.write_low": 2,
        },
        {**SLOW_DRAM, "dram.refi": 2000, "dram.rfc": 200},
        {**SLOW_DRAM, "dram.scheduler": "fcfs"},
    ],
}


def candidates(path: str, spec: Spec) -> Iterator[Any]:
    """Other values for a field, likely ones first."""
    field, value = _fields()[path], dict(spec.leaves())[path]
    if options := choices(path):
        yield from (option for option in options if option != value)
    elif path == "address_map.layout":
        yield value.replace("CB", "BC", 1)
        yield value.replace("RB", "BR", 1)
    elif path == "l1.carve_out_options":
        yield [value[-1]] if value else [0]
    elif isinstance(rule := range_of(field), Megahertz):
        yield value * 2
    else:
        assert isinstance(rule, Quantity), f"{path}: say here which other values it has"
        for other in (value * 2, value // 2, 1, 2, value + 1, value - 1, rule.least, 40, 4, 0):
            if other != value:
                yield other


@functools.cache
def simulated(folder: Path, gpu: str, overrides: tuple[tuple[str, Any], ...]) -> Any:
    """Everything a run reports."""
    engine = _engine.Gpu(load_spec(gpu, dict(overrides)).native(), 1, 0, 0)
    engine.set_peers(OWN)
    for command in open_trace(folder).commands:
        if isinstance(command, Copy):
            engine.copy_from_host(command.address, command.bytes)
        else:
            engine.launch(command.source(), command.id)
    for number, link in enumerate(("host_to_device", "peer_to_device")):
        engine.transfer((1 << 62) + number, link=link, traffic=4096)
    assert engine.run(MOST_CYCLES)
    return finished(engine), engine.finished_transfers()


def contexts(path: str) -> Iterator[dict[str, Any]]:
    """The context in which the field has an effect, if it is special, then the GPU as it is."""
    for prefix, found in CONTEXTS.items():
        if path == prefix or path.startswith(prefix + "."):
            yield from found
    yield {}


def acts(folder: Path, gpu: str, path: str) -> bool:
    """Whether another value is refused, or changes what is simulated, in one of the field's contexts."""
    accepted = False
    for context in contexts(path):
        base = {**GPUS[gpu], **context}
        try:
            spec = load_spec(gpu, base)
        except SpecError:
            continue
        for value in candidates(path, spec):
            value = tuple(value) if isinstance(value, list) else value
            try:
                load_spec(gpu, {**base, path: value})
            except SpecError:
                continue
            accepted = True
            expected = simulated(folder, gpu, tuple(base.items()))
            try:
                found = simulated(folder, gpu, tuple({**base, path: value}.items()))
            except ValueError:  # no SM can hold one of its CTAs
                return True
            if found != expected:
                return True
    return not accepted


FIELDS = [path for path in _fields() if path not in NAMES + SEEN_BY_PROGRAMS + OF_BULK_COPIES]
# Special units have names: tests/spec/test_special_units.py.
SECTIONS = list(dict.fromkeys(path.rpartition(".")[0] for path in FIELDS if f".{ANY_NAME}." not in path))


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("gpu", GPUS)
def test_every_field_acts_or_refuses(
    gpu: str, section: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folders = workloads(tmp_path_factory.getbasetemp() / "effects")
    fields = [path for path in FIELDS if path.rpartition(".")[0] == section]
    assert [path for path in fields if not any(acts(folder, gpu, path) for folder in folders)] == []


def test_the_ways_of_an_adaptive_l1_are_refused() -> None:
    """They follow from unified_bytes, so another number would have no effect."""
    with pytest.raises(SpecError, match=r"l1.cache.ways: has no effect with l1.adaptive"):
        load_spec("h100", {"l1.cache.ways": 8})
    assert load_spec("h100", {"l1.cache.ways": 8, "l1.adaptive": False}).l1.cache.ways == 8


def test_programs_see_what_timing_does_not() -> None:
    for path, value in (("sm_version", 75), ("dram.capacity_gib", 7)):
        gpu, other = (GPU(load_spec("qv100", change), functional=True) for change in ({}, {path: value}))
        seen = [(g.machine_facts["sm_version"], g.memory.capacity) for g in (gpu, other)]
        assert seen[0] != seen[1]
