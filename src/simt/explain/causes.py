"""Causes of a launch's time: how each is removed from the machine, and what a programmer does about it.

A cause is removed by values of the specification that no GPU has, or, for divergence, by a trace that leaves
out what it costs. The launch is then simulated again: the gain is what came out, not what a rule says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simt.isa import Unit
from simt.result.launch import LaunchResult
from simt.result.stack import issued_by_unit
from simt.spec import Spec

Overrides = dict[str, Any]


@dataclass(frozen=True)
class Cause:
    """name: what is removed. advice: what a programmer can do, completing `NAME costs ...: ADVICE`.

    occurs: whether the launch has it at all, by exact counts. removed: the values that remove it; None: it
    cannot be removed from this GPU. states: of warps that wait because of it, and opcodes: where; for the
    lines that a sentence names. recorded: options of `GPU.trace`, by which a program's trace is without it;
    the values then remove it only from traces. of_ptx: machine code keeps it. ordered: part of it is an order
    that executed programs keep and traces do not, so that its gain is against the program's own time.
    within: a cause that includes this one.
    """

    name: str
    advice: str
    occurs: Callable[[LaunchResult], bool]
    removed: Callable[[Spec], Overrides | None]
    states: tuple[str, ...] = ()
    opcodes: tuple[str, ...] = ()
    recorded: Mapping[str, Any] = field(default_factory=dict)
    of_ptx: bool = False
    ordered: bool = False
    within: str = ""


@dataclass(frozen=True)
class Gain:
    """What removing a cause gives, as simulated.

    cycles: of the launch without it. speedup: cycles with it / without it. lines: where it is met, most
    first.
    """

    cause: Cause
    cycles: int
    speedup: float
    lines: tuple[str, ...]

    @property
    def saved(self) -> float:
        """Part of the launch's time that the cause costs."""
        return 1 - 1 / self.speedup

    @property
    def sentence(self) -> str:
        where = f" at {' and '.join(self.lines)}" if self.lines else ""
        return (
            f"{self.cause.name[0].upper()}{self.cause.name[1:]}{where}: without, the launch takes "
            f"{self.saved:.0%} less time "
            f"({self.speedup:.2f} times as fast). {self.cause.advice}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause.name,
            "cycles": self.cycles,
            "speedup": self.speedup,
            "saved": self.saved,
            "lines": list(self.lines),
            "advice": self.cause.advice,
            "sentence": self.sentence,
        }


MOST_WARPS = 64
"""Warps that a simulated SM can hold."""
_LONG = ("long_scoreboard", "lg_throttle", "async_copy")
_GLOBAL = ("LDG", "LD", "STG", "ST", "LDGSTS", "LDL", "STL", "RED", "ATOMG", "ATOM")
_LOADS = ("LDG", "LD", "LDGSTS", "LDL")
_SHARED = ("LDS", "STS", "ATOMS", "LDSM", "STSM")
_ATOMICS = ("ATOM", "ATOMG", "RED", "ATOMS")


def _always(launch: LaunchResult) -> bool:
    return launch.cycles > 0


def _global(launch: LaunchResult) -> bool:
    e = launch.engine
    sectors = e["global_load_sectors"] + e["global_store_sectors"]
    return sectors > e["global_load_requests"] + e["global_store_requests"]


def _loads(launch: LaunchResult) -> bool:
    return launch.engine["global_load_requests"] + launch.engine["local_requests"] > 0


def _has_barriers(launch: LaunchResult) -> bool:
    return any(opcode.startswith("BAR") for opcode in launch.pc.get("opcode", ()))


def _has_atomics(launch: LaunchResult) -> bool:
    opcodes = launch.pc.get("opcode", ())
    return any(opcode.partition(".")[0] in _ATOMICS for opcode in opcodes)


def _diverges(launch: LaunchResult) -> bool:
    pc = launch.pc
    return bool(pc) and any(t < 32 * n for t, n in zip(pc.get("threads", ()), pc["issued"], strict=False))


def _has_slow_operations(launch: LaunchResult) -> bool:
    opcodes = launch.pc.get("opcode", ())
    return any(opcode.partition(".")[0] == "MUFU" for opcode in opcodes)


def _warps_are_full(launch: LaunchResult) -> bool:
    """Whether an SM holds all the warps it can, while further CTAs wait."""
    machine = launch.machine
    at_once = launch.occupancy_limit_ctas * (machine.sm_count if machine else 0)
    return launch.occupancy_limited_by == "warps" and math.prod(launch.grid) > at_once


def _as_move(opcode: str) -> str:
    """Accesses to shared memory are moves between registers."""
    return "MOV" if opcode.partition(".")[0] in ("LDS", "STS", "LDSM", "STSM") else opcode


def _faster_shared(spec: Spec) -> Overrides:
    """(Of a trace.)"""
    return {
        "shared_memory.conflict_free": True,
        "shared_memory.access_interval": 1,
        "shared_memory.pass_interval": 1,
        "shared_memory.latency": 1,
        "shared_memory.wide_accesses_take_wavefronts": False,
    }


def _launches(spec: Spec) -> Overrides:
    return {"launch.kernel_latency": 0, "launch.overhead": 0, "launch.cta_latency": 0}


def _dispatch(spec: Spec) -> Overrides:
    zero = (
        "dispatch_latency",
        "warp_start_interval",
        "peak_dispatch_rate",
        "dispatch_rate",
        "dispatch_burst",
    )
    return {f"launch.{name}": 0 for name in zero}


def _bandwidth(spec: Spec) -> Overrides | None:
    """Requests are served after the latency that DRAM has when it is idle, eight times as many at a time."""
    if spec.dram.simple:
        return None
    ratio = float(spec.clock.l2_mhz) / float(spec.clock.dram_mhz)
    idle = spec.dram.latency + round((spec.dram.rcd + spec.dram.cl) * ratio)
    return {"dram.simple": True, "dram.latency": idle, "clock.dram_mhz": 8 * float(spec.clock.dram_mhz)}


def _latency(spec: Spec) -> Overrides:
    """The levels answer at once, as many requests at a time as before."""
    return {"l1.latency": 1, "l1.bypass_latency": 0, "interconnect.latency": 0, "l2.latency": 1,
            "l2.far_latency": min(4, spec.l2.far_latency), "dram.latency": 1}  # fmt: skip


def _fetch(spec: Spec) -> Overrides:
    return {
        "sm.front_end.instruction_cache.perfect": True,
        "constant_cache.perfect": True,
        "sm.front_end.branch_latency": 0,
    }


def _quick(spec: Spec) -> Overrides:
    """Results of arithmetic are there in the next cycles; units take as many instructions as before."""
    names = ("int", "fp32", "fp64", "sfu", "tensor", "branch", "uniform")
    found: Overrides = {f"sm.units.{name}.latency": 1 for name in names if getattr(spec.sm.units, name).count}
    if spec.sm.conversion_latency:
        found["sm.conversion_latency"] = 1
    return found


def _coalesced(spec: Spec) -> Overrides:
    """Accesses have only as many sectors as their bytes fill, and find them in open rows of DRAM, as
    neighbouring sectors do."""
    found: Overrides = {"load_store.perfect_coalescing": True}
    if not spec.dram.simple:
        soon = max(spec.dram.wl, spec.dram.cl) + 1
        found |= {"dram.rcd": soon, "dram.ras": soon + 1, "dram.rc": soon + 2}
        found |= {"dram.rp": 1, "dram.rrd": 1, "dram.faw": 0}
    return found


def _occupancy(spec: Spec) -> Overrides:
    """Registers and shared memory for all the CTAs that the SM's warps allow, beside an L1 as large as
    without shared memory."""
    shared = 8 * spec.shared_memory.bytes
    found: Overrides = {
        "sm.register_file.registers": 8 * spec.sm.register_file.registers,
        "shared_memory.bytes": shared,
    }
    if spec.l1.adaptive:
        found["l1.carve_out_options"] = [shared]
        found["l1.unified_bytes"] = shared + spec.l1.unified_bytes - min(spec.l1.carve_out_options)
    return found


def _twice_the_warps(spec: Spec) -> Overrides | None:
    """An SM holds twice the warps, with registers and shared memory for them: at most 64."""
    if 2 * spec.sm.max_warps > MOST_WARPS:
        return None
    found = {"sm.max_warps": 2 * spec.sm.max_warps, "sm.max_ctas": min(MOST_WARPS, 2 * spec.sm.max_ctas)}
    return _occupancy(spec) | found


_PLAIN = {"ATOM": "LD.E", "ATOMG": "LDG.E", "RED": "STG.E", "ATOMS": "LDS"}


def _plain_access(opcode: str) -> str:
    """The opcode of a load or store of an atomic's operands."""
    name, *modifiers = opcode.split(".")
    return _PLAIN[name] + ".64" * ("64" in modifiers) if name in _PLAIN else opcode


def _atomics(spec: Spec) -> Overrides:
    """Atomics are as loads: lanes that change the same word are one access. (Of a trace.)"""
    return {
        "l2.atomic_rate": 0,
        "shared_memory.atomic_interval": 0,
        "shared_memory.conflict_free": True,
        "load_store.perfect_coalescing": True,
    }


def _accesses(spec: Spec) -> Overrides:
    """The L1 takes an instruction each cycle, however many lines it touches."""
    return {"l1.access_interval": 1, "l1.line_interval": 0, "l1.banks": 32}


def _pipe(*units: str) -> Callable[[Spec], Overrides | None]:
    """Units take an instruction each cycle, and their results take no longer than arithmetic's."""

    def removed(spec: Spec) -> Overrides | None:
        quick = spec.sm.units.fp32.latency
        found: Overrides = {}
        for name in units:
            unit = getattr(spec.sm.units, name)
            if unit.count:
                found[f"sm.units.{name}.initiation_interval"] = 1
                found[f"sm.units.{name}.latency"] = min(quick, unit.latency)
        return found or None

    return removed


def _uses(*units: Unit) -> Callable[[LaunchResult], bool]:
    return lambda launch: any(unit in units for unit in issued_by_unit(launch))


def _issue(spec: Spec) -> Overrides | None:
    """An SM has twice the schedulers, each with units of its own as before."""
    if 2 * spec.sm.sub_cores > 8:
        return None
    names = ("int", "fp32", "fp64", "sfu", "tensor", "branch", "texture", "uniform")
    found: Overrides = {f"sm.units.{name}.count": 2 * getattr(spec.sm.units, name).count for name in names}
    found["sm.sub_cores"] = 2 * spec.sm.sub_cores
    found["sm.register_file.banks"] = 2 * spec.sm.register_file.banks
    return found


CAUSES: tuple[Cause, ...] = (
    Cause(
        "uncoalesced accesses",
        "Let the lanes of a warp access neighbouring addresses: change which thread does "
        "what, the layout (structures of arrays), or pass the data through shared memory.",
        _global,
        _coalesced,
        _LONG,
        _GLOBAL,
        within="memory behind the L1",
    ),
    Cause(
        "bank conflicts",
        "Pad the shared array, or change its index, so that the lanes of a warp fall into different banks.",
        lambda x: x.engine["shared_bank_conflicts"] > 0,
        lambda spec: {"shared_memory.conflict_free": True},
        ("mio_throttle", "short_scoreboard"),
        _SHARED,
        within="shared memory",
    ),
    Cause(
        "shared memory",
        "Keep more in registers: let each thread compute several results from what it reads, and read wider.",
        lambda x: x.engine["shared_wavefronts"] > 0,
        _faster_shared,
        ("mio_throttle", "short_scoreboard"),
        _SHARED,
        recorded={"opcode": _as_move},
    ),
    Cause(
        "L1 throughput",
        "Let each thread use what it loads several times (registers), load wider words, or share loads "
        "through shared memory.",
        _loads,
        _accesses,
        ("lg_throttle", "long_scoreboard"),
        _GLOBAL,
        within="uncoalesced accesses",
    ),
    Cause(
        "memory behind the L1",
        "Reuse data in shared memory or registers, or let neighbouring threads share "
        "lines, so that fewer loads leave the SM.",
        _loads,
        lambda spec: {"l1.perfect": True},
        _LONG,
        _LOADS,
    ),
    Cause(
        "device memory",
        "Work on parts that fit the L2, read each byte once, or store fewer bytes (smaller types).",
        lambda x: x.engine["dram_reads"] + x.engine["dram_writes"] > 0,
        lambda spec: {"l2.perfect": True},
        _LONG,
        _GLOBAL,
    ),
    Cause(
        "DRAM bandwidth",
        "Move fewer bytes: smaller types, fused kernels, tiles that are used again.",
        lambda x: x.engine["dram_bus_cycles"] > 0,
        _bandwidth,
        _LONG,
        _GLOBAL,
        within="device memory",
    ),
    Cause(
        "memory latency",
        "Have more loads under way: more warps, several independent loads per thread, loads "
        "issued before they are needed, or asynchronous copies.",
        _loads,
        _latency,
        _LONG,
        _LOADS,
    ),
    Cause(
        "barriers",
        "Let fewer warps wait for each other: fewer barriers, warp shuffles in place of shared "
        "memory, more CTAs per SM, or double buffering.",
        _has_barriers,
        lambda spec: {"sm.free_barriers": True, "sm.barrier_latency": 0, "sm.barrier_interval": 0},
        ("barrier",),
        ("BAR",),
    ),
    Cause(
        "divergence",
        "Let the lanes of a warp take the same path: branch on the warp's number, give idle lanes "
        "work, or sort the work by path.",
        _diverges,
        lambda spec: None,
        recorded={"converged": True},
    ),
    Cause(
        "atomics of a warp to one word",
        "Combine the values of a warp first (__reduce_add_sync, shuffles), so that one lane does the atomic.",
        _has_atomics,
        lambda spec: None,
        (*_LONG, "mio_throttle", "short_scoreboard"),
        _ATOMICS,
        recorded={"combined": True},
        ordered=True,
        within="atomics",
    ),
    Cause(
        "atomics",
        "Combine values within the CTA first, in registers or shared memory: one atomic for each CTA.",
        _has_atomics,
        _atomics,
        (*_LONG, "mio_throttle", "short_scoreboard"),
        _ATOMICS,
        recorded={"opcode": _plain_access},
        ordered=True,
        within="uncoalesced accesses",
    ),
    Cause(
        "occupancy",
        "Use fewer registers or less shared memory per CTA, so that more warps hide latency.",
        lambda x: x.occupancy_limited_by in ("registers", "shared memory"),
        _occupancy,
    ),
    Cause(
        "small CTAs",
        "Launch larger CTAs: an SM holds a limited number of CTAs, and these leave it short of warps.",
        lambda x: x.occupancy_limited_by == "CTAs",
        lambda spec: {"sm.max_ctas": 64} if spec.sm.max_ctas < 64 else None,
    ),
    Cause(
        "few warps",
        "An SM has no room for more warps: let each have more independent work, such as several results, or "
        "loads issued early.",
        _warps_are_full,
        _twice_the_warps,
    ),
    Cause(
        "issue slots",
        "Execute fewer instructions: wider loads and stores, unrolled loops, cheaper index "
        "arithmetic, several results per thread.",
        _always,
        _issue,
    ),
    Cause(
        "arithmetic latency",
        "Have more independent operations: unroll, use several accumulators, or run more warps.",
        _always,
        _quick,
        ("wait", "short_scoreboard"),
    ),
    Cause(
        "FP64 rate",
        "Compute in FP32 where its precision is enough; watch for double constants.",
        _uses(Unit.Fp64),
        _pipe("fp64"),
        ("math_pipe_throttle",),
        ("DFMA", "DADD", "DMUL", "DSETP", "DMNMX"),
    ),
    Cause(
        "divisions and special functions",
        "Use shifts, masks, or a product with the reciprocal in place of divisions and remainders, and fast "
        "forms of roots and exponentials (__fdividef, rsqrtf, -use_fast_math); take them out of loops.",
        _has_slow_operations,
        lambda spec: None,
        ("math_pipe_throttle", "short_scoreboard"),
        ("MUFU", "I2F", "F2I"),
        recorded={"plain": True},
        of_ptx=True,
    ),
    Cause(
        "special-function rate",
        "Use fewer divisions, roots and exponentials, or their fast forms.",
        _uses(Unit.Sfu, Unit.Conversion),
        _pipe("sfu"),
        ("math_pipe_throttle", "short_scoreboard"),
        ("MUFU", "I2F", "F2I", "F2F", "POPC", "FLO"),
        within="divisions and special functions",
    ),
    Cause(
        "arithmetic rate",
        "Do less arithmetic per result, use packed or tensor instructions, or smaller types.",
        _always,
        _pipe("int", "fp32"),
        ("math_pipe_throttle",),
        ("FFMA", "FADD", "FMUL", "IMAD", "IADD3", "LOP3"),
        within="issue slots",
    ),
    Cause(
        "tensor-core rate",
        "Use smaller types or sparsity: the tensor cores are busy.",
        _uses(Unit.Tensor),
        _pipe("tensor"),
        ("math_pipe_throttle", "warpgroup_arrive"),
        ("HMMA", "IMMA", "DMMA", "HGMMA"),
    ),
    Cause(
        "instruction fetch",
        "Make the code smaller: less unrolling, fewer inlined functions, fewer variants "
        "at once; index constant memory by the same value in all lanes.",
        _always,
        _fetch,
        ("no_instruction", "imc_miss"),
    ),
    Cause(
        "start of CTAs",
        "Start fewer, longer CTAs: let each loop over several parts of the work.",
        _always,
        _dispatch,
    ),
    Cause("launch latency", "Make fewer, longer launches: fuse kernels, or use a graph.", _always, _launches),
)
"""The causes that `explain` removes, one at a time."""
