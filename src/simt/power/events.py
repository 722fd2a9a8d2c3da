"""Events of a launch: how often each thing happened that an Energies file has a value for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simt.power.energies import LANES, SECTIONS, Energies
from simt.result.counters import READ_KINDS, WRITE_KINDS
from simt.result.launch import LaunchResult, Machine

Floats = NDArray[np.float64]
_L2_READS = (*READ_KINDS, "constant_read", "instruction_read")
_L2_WRITES = (*WRITE_KINDS, "l2_writeback")
_KEYS = tuple(f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys)
_LOOKUPS = ("hit", "hit_reserved", "miss", "sector_miss")


@dataclass(frozen=True)
class Instructions:
    """The instructions of a launch; every array has an element per row of its `pc` table.

    keys: of their energies. issued: by warps. threads: lanes that executed. multiply_adds: of all executions.
    reads, writes: registers of all executions, in lanes.
    """

    keys: list[str]
    issued: Floats
    threads: Floats
    multiply_adds: Floats
    reads: Floats
    writes: Floats

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """The rows of each key."""
        found: dict[str, list[int]] = {}
        for row, key in enumerate(self.keys):
            found.setdefault(key, []).append(row)
        return found

    def by_key(self, values: Floats) -> dict[str, float]:
        """Sums of `values`, which has an element per row, over the rows of each key."""
        sums = np.bincount(self._numbers, weights=values, minlength=len(self.rows))
        return dict(zip(self.rows, sums.tolist(), strict=True))

    @cached_property
    def _numbers(self) -> NDArray[np.intp]:
        """Of each row's key in `rows`."""
        number = {key: i for i, key in enumerate(self.rows)}
        return np.array([number[key] for key in self.keys], np.intp)


@dataclass(frozen=True)
class Events:
    """counts: by key of an Energies file; those of `power.` are SM-seconds, or seconds.

    With the energies' values v, a launch takes sum(counts[key] * v[key]) joules. Counts of `front_end.issue`
    and of `registers` are therefore those beyond what the instructions' own energies include.

    missing: keys whose count is unknown because a controller could not project it; they count as 0.
    """

    counts: Mapping[str, float]
    instructions: Instructions
    seconds: float
    missing: tuple[str, ...] = ()


def events(launch: LaunchResult, energies: Energies, share: float = 1.0) -> Events:
    """Counts the events of a launch.

    energies: tells which registers an instruction's energy includes. share: the launch's part of the constant
    power while it runs, below 1 if others ran at the same time.
    """
    machine = launch.machine
    assert machine is not None
    found = instructions(launch, energies)
    counts = dict.fromkeys(_KEYS, 0.0)
    multiply_adds = found.by_key(found.multiply_adds)
    issued, lanes = found.by_key(found.issued), found.by_key(found.threads)
    reads, writes = found.by_key(found.reads), found.by_key(found.writes)
    for key, threads in lanes.items():
        if key.startswith("tensor."):
            counts[key] = multiply_adds[key]
            continue
        counts[key] = threads
        measured = energies.values[key]
        counts["front_end.issue"] += issued[key] - threads / LANES
        counts["registers.read"] += reads[key] - threads * measured.reads
        counts["registers.write"] += writes[key] - threads * measured.writes
    counts |= {f"memory.{key}": n for key, n in _memory(launch, machine).items()}
    counts |= {f"power.{key}": n for key, n in _times(launch, machine, share).items()}
    missing = tuple(key for key, n in counts.items() if not math.isfinite(n))
    counts |= dict.fromkeys(missing, 0.0)
    return Events(counts, found, launch.seconds, missing)


def instructions(launch: LaunchResult, energies: Energies) -> Instructions:
    """The instructions of a launch. A Result of an earlier version lacks threads or registers: then all lanes
    execute, with the registers of the instruction that was measured."""
    pc = launch.pc
    opcodes = pc.get("opcode", [])
    classes = [energies.of_opcode(opcode) for opcode in opcodes]
    issued = np.array(pc.get("issued", []), float)
    threads = np.array(pc["threads"], float) if "threads" in pc else issued * LANES
    keys = [key for key, _ in classes]
    each = [energies.values[key] for key in keys]
    reads = pc.get("reads") or [x.reads for x in each]
    writes = pc.get("writes") or [x.writes for x in each]
    return Instructions(
        keys,
        issued,
        threads,
        issued * np.array([n for _, n in classes]),
        threads * np.array(reads, float),
        threads * np.array(writes, float),
    )


def _memory(launch: LaunchResult, machine: Machine) -> dict[str, float]:
    engine, l1, l2 = launch.engine, launch.l1, launch.l2

    def lookups(table: Mapping[str, Mapping[str, float]], kinds: tuple[str, ...]) -> float:
        rows = [table[kind] for kind in kinds if kind in table]
        return sum(row.get(outcome, 0) for row in rows for outcome in _LOOKUPS)

    atomics = lookups(l2, ("atomic",))
    reads, writes = lookups(l2, _L2_READS) + atomics, lookups(l2, _L2_WRITES) + atomics
    across = reads + lookups(l2, WRITE_KINDS)
    refreshes = 0.0
    if machine.dram_refresh_cycles:
        cycles = launch.seconds * 1000 * machine.dram_khz
        refreshes = machine.dram_channels * cycles / machine.dram_refresh_cycles
    return {
        "shared_pass": engine["shared_wavefronts"],
        "l1_sector_read": lookups(l1, READ_KINDS),
        "l1_sector_write": lookups(l1, WRITE_KINDS),
        "constant_access": engine["constant_cache_hits"] + engine["constant_cache_misses"],
        "l2_sector_read": reads,
        "l2_sector_write": writes,
        "network_sector": across,
        "dram_sector_read": engine["dram_reads"],
        "dram_sector_write": engine["dram_writes"],
        "dram_activate": engine["dram_activates"],
        "dram_refresh": refreshes,
    }


def _times(launch: LaunchResult, machine: Machine, share: float) -> dict[str, float]:
    """SM-seconds and seconds in which the parts of the GPU are on."""
    cycle = 1 / (1000 * launch.clock_khz)
    active = launch.engine["sm_active_cycles"] * cycle
    time = launch.seconds * share
    return {
        "board": time,
        "chip_idle": time,
        "sm_active": active,
        "sm_idle": max(0.0, machine.sm_count * time - active),
        "sub_core_active": sum(map(sum, launch.stalls.values())) * cycle,
    }
