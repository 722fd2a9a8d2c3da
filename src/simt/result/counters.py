"""The counters of a Result: one table, from which values are computed and docs/counters.md is generated.

A counter has Nsight Compute's name if it means the same thing; all others begin with `simt__`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

Value = int | float | None

READ_KINDS = ("global_read", "local_read", "texture_read")
WRITE_KINDS = ("global_write", "local_write", "l1_writeback")
ALL_KINDS = (
    "global_read",
    "global_write",
    "local_read",
    "local_write",
    "constant_read",
    "texture_read",
    "instruction_read",
    "atomic",
    "l1_writeback",
    "l2_writeback",
    "l2_fill",
)
LOOKUP_OUTCOMES = ("hit", "hit_reserved", "miss", "sector_miss")

# Names usable in formulas in addition to the engine's counters, with their meaning for docs/counters.md.
FORMULA_NAMES = {
    "cycles": "core cycles from the launch to its end, launch latency included",
    "launch_latency": "core cycles between the launch and the start of its first CTA",
    "clock_khz": "core clock",
    "grid_ctas": "CTAs of the grid",
    "block_threads": "threads of a CTA",
    "joules": "energy of the launch, of a run with `power`",
    "registers": "registers per thread",
    "shared_bytes": "shared memory per CTA",
    "occupancy_limit_ctas": "CTAs that fit into an SM at once",
    "issued": "scheduler cycles in which a warp was selected and its instruction issued",
    "scheduler_cycles": "scheduler cycles with a resident warp, issued or stalled",
    "sm_count": "SMs of the GPU",
    "sub_cores": "sub-cores (warp schedulers) per SM",
    "max_warps": "warps that an SM can hold",
    "l2_slices": "L2 slices of the GPU",
    "l2_cycles": "`cycles` in L2 clock cycles",
    "dram_channels": "DRAM channels of the GPU",
    "dram_cycles": "`cycles` in DRAM command clock cycles",
    "l1(kinds, outcomes)": "sector lookups in the L1 data caches of these kinds with these outcomes",
    "l2(kinds, outcomes)": "sector lookups in the L2 of these kinds with these outcomes",
    "reads": "kinds `" + "`, `".join(READ_KINDS) + "`",
    "writes": "kinds `" + "`, `".join(WRITE_KINDS) + "`",
    "any_kind": "every kind of access",
    "lookups": "outcomes `" + "`, `".join(LOOKUP_OUTCOMES) + "`, that is, without retries",
    "warp_stalls": "warp-cycles by the state of the warp",
}


@dataclass(frozen=True)
class Counter:
    """One column of the Result. `formula` is Python over the engine's counters and FORMULA_NAMES."""

    name: str
    unit: str
    meaning: str
    formula: str
    accel_sim: str = ""  # the statistic that Accel-Sim prints for it
    code: CodeType = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", compile(self.formula, self.name, "eval"))

    @property
    def additive(self) -> bool:
        """Whether values of several launches may be added up."""
        return self.name.endswith(".sum")


def _cache(level: str, name: str) -> str:
    return f"{level}_cache_stats_breakdown[{name}]"


_L2_READ = _cache("L2", "GLOBAL_ACC_R")
_L2_WRITE = _cache("L2", "GLOBAL_ACC_W")
_L1 = _cache("Total_core", "GLOBAL_ACC_R")

_STALLS = {
    "selected": ("selected", "issued an instruction"),
    "not_selected": ("not_selected", "was ready, another warp was chosen"),
    "no_instruction": ("no_instruction", "had no fetched instruction"),
    "barrier": ("barrier", "waited at a CTA barrier"),
    "membar": ("membar", "waited at a memory barrier"),
    "long_scoreboard": ("long_scoreboard", "waited for global, local or texture memory"),
    "short_scoreboard": ("short_scoreboard", "waited for shared memory or a special-function result"),
    "wait": ("wait", "waited for the result of a fixed-latency instruction"),
    "math_pipe_throttle": ("math_pipe_throttle", "waited for a busy execution unit"),
    "lg_throttle": ("lg_throttle", "waited for room in the pipeline of global, local and texture memory"),
    "mio_throttle": ("mio_throttle", "waited for room in the pipeline of shared memory"),
    "sleeping": ("sleeping", "slept"),
    "imc_miss": ("imc_miss", "waited for a constant operand"),
    "drain": ("drain", "had exited and waited for its stores"),
    "warpgroup_arrive": ("gmma", "waited in a WARPGROUP.DEPBAR, for products or warps of its warp group"),
}

COUNTERS: tuple[Counter, ...] = (
    # Time
    Counter(
        "gpc__cycles_elapsed.max",
        "cycle",
        "core cycles from launch to end, launch latency included",
        "cycles",
        "gpu_sim_cycle",
    ),
    Counter("gpu__time_duration.sum", "ns", "the same as time", "1e6 * cycles / clock_khz"),
    Counter("simt__launch_latency.sum", "cycle", "core cycles before the first CTA starts", "launch_latency"),
    # Energy
    Counter("simt__energy.sum", "J", "energy, of a run with `power` (docs/power)", "joules"),
    Counter("simt__power.avg", "W", "average power", "1e3 * clock_khz * joules / cycles"),
    # Launch
    Counter("launch__grid_size", "", "CTAs of the grid", "grid_ctas"),
    Counter("launch__block_size", "", "threads per CTA", "block_threads"),
    Counter("launch__registers_per_thread", "register/thread", "registers per thread", "registers"),
    Counter("launch__shared_mem_per_block", "byte/block", "shared memory per CTA", "shared_bytes"),
    Counter(
        "launch__waves_per_multiprocessor",
        "",
        "how often the GPU is filled with CTAs; null where the grid brings less than fits",
        "grid_ctas / (sm_count * occupancy_limit_ctas)",
    ),
    Counter("sm__ctas_launched.sum", "block", "CTAs that ran", "ctas", "gpu_tot_issued_cta"),
    Counter("smsp__warps_launched.sum", "warp", "warps that ran", "warps"),
    # Instructions and issue
    Counter(
        "smsp__inst_executed.sum", "inst", "warp instructions", "warp_instructions", "gpgpu_n_tot_w_icount"
    ),
    Counter(
        "smsp__thread_inst_executed_pred_on.sum",
        "inst",
        "thread instructions: lanes that are active and not predicated off",
        "thread_instructions",
        "gpu_sim_insn",
    ),
    Counter(
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        "",
        "lanes that execute, per warp instruction",
        "thread_instructions / warp_instructions",
    ),
    Counter(
        "smsp__thread_inst_executed_pred_on.sum.per_cycle_elapsed",
        "inst/cycle",
        "thread instructions of the whole GPU per cycle",
        "thread_instructions / cycles",
        "gpu_ipc",
    ),
    Counter(
        "sm__inst_executed.avg.per_cycle_elapsed",
        "inst/cycle",
        "warp instructions per SM and cycle",
        "warp_instructions / (sm_count * cycles)",
    ),
    Counter(
        "sm__inst_executed.avg.per_cycle_active",
        "inst/cycle",
        "warp instructions per SM and cycle with a resident warp",
        "warp_instructions / sm_active_cycles",
    ),
    Counter(
        "smsp__issue_active.sum", "cycle", "scheduler cycles in which an instruction was issued", "issued"
    ),
    Counter(
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
        "%",
        "scheduler cycles with a resident warp in which an instruction was issued",
        "100 * issued / scheduler_cycles",
    ),
    Counter(
        "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
        "%",
        "cycles of all schedulers in which an instruction was issued",
        "100 * issued / (sm_count * sub_cores * cycles)",
    ),
    Counter(
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "cycle",
        "resident warp-cycles per instruction issued",
        "active_warp_cycles / warp_instructions",
    ),
    # Occupancy
    Counter(
        "sm__cycles_active.sum", "cycle", "cycles with a resident warp, summed over SMs", "sm_active_cycles"
    ),
    Counter("sm__cycles_active.avg", "cycle", "the same per SM", "sm_active_cycles / sm_count"),
    Counter(
        "sm__warps_active.sum", "warp", "resident warps, summed over cycles and SMs", "active_warp_cycles"
    ),
    Counter(
        "sm__warps_active.avg.per_cycle_active",
        "warp",
        "resident warps per SM while it has any",
        "active_warp_cycles / sm_active_cycles",
    ),
    Counter(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "%",
        "achieved occupancy",
        "100 * active_warp_cycles / (sm_active_cycles * max_warps)",
        "gpu_occupancy",
    ),
    # States of warps
    *(
        Counter(
            f"smsp__average_warps_issue_stalled_{nsight}_per_issue_active.ratio",
            "",
            f"warps per issued instruction whose state was: {meaning}",
            f"warp_stalls({reason!r}) / issued",
        )
        for reason, (nsight, meaning) in _STALLS.items()
    ),
    Counter(
        "simt__average_warps_issue_stalled_async_copy_per_issue_active.ratio",
        "",
        "warps per issued instruction whose state was: waited for asynchronous copies (Nsight: "
        "long_scoreboard)",
        "warp_stalls('async_copy') / issued",
    ),
    # Register file and shared memory
    Counter(
        "simt__register_bank_conflicts.sum",
        "",
        "operand reads delayed by another access to their register bank",
        "register_bank_conflicts",
        "gpu_reg_bank_conflict_stalls",
    ),
    Counter(
        "simt__uncovered_dependences.sum",
        "inst",
        "warp instructions of machine code that issued before a register was ready",
        "uncovered_dependences",
    ),
    Counter(
        "smsp__inst_executed_op_shared_ld.sum",
        "inst",
        "warp instructions that read shared memory",
        "shared_loads",
    ),
    Counter(
        "smsp__inst_executed_op_shared_st.sum",
        "inst",
        "warp instructions that write shared memory",
        "shared_stores",
    ),
    Counter(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "",
        "passes through shared memory",
        "shared_wavefronts",
    ),
    Counter(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "",
        "passes through shared memory beyond the first of each access",
        "shared_bank_conflicts",
        "gpgpu_n_shmem_bkconflict",
    ),
    Counter(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "",
        "the same, of loads and atomics (Nsight: loads)",
        "shared_bank_conflicts - shared_store_bank_conflicts",
    ),
    Counter(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "",
        "the same, of stores",
        "shared_store_bank_conflicts",
    ),
    # L1
    Counter(
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "request",
        "warp instructions that load global memory",
        "global_load_requests",
    ),
    Counter(
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "request",
        "warp instructions that store to global memory",
        "global_store_requests",
    ),
    Counter(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "sector",
        "sectors requested by global loads, after coalescing",
        "global_load_sectors",
        _L1 + "[TOTAL_ACCESS]",
    ),
    Counter(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "sector",
        "sectors written by global stores, after coalescing",
        "global_store_sectors",
        _cache("Total_core", "GLOBAL_ACC_W") + "[TOTAL_ACCESS]",
    ),
    Counter(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "sector/request",
        "sectors per global load: 4 is coalesced for 32-bit elements, 32 is one sector a lane",
        "global_load_sectors / global_load_requests",
    ),
    Counter(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
        "sector/request",
        "sectors per global store",
        "global_store_sectors / global_store_requests",
    ),
    Counter(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
        "sector",
        "sectors of global loads that the L1 holds or is fetching: Nsight Compute counts both as hits",
        "l1('global_read', 'hit') + l1('global_read', 'hit_reserved')",
        _L1 + "[HIT] + [HIT_RESERVED] + [MSHR_HIT]",
    ),
    Counter(
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        "sector",
        "sectors that local loads look up in the L1",
        "l1('local_read', lookups)",
        _cache("Total_core", "LOCAL_ACC_R") + "[TOTAL_ACCESS]",
    ),
    Counter(
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
        "sector",
        "sectors that local stores look up in the L1",
        "l1('local_write', lookups)",
        _cache("Total_core", "LOCAL_ACC_W") + "[TOTAL_ACCESS]",
    ),
    Counter(
        "l1tex__t_sector_hit_rate.pct",
        "%",
        "sector lookups that hit in the L1. A sector that is being fetched is a hit, as in Nsight Compute",
        "100 * (l1(any_kind, 'hit') + l1(any_kind, 'hit_reserved')) / l1(any_kind, lookups)",
        "",
    ),
    Counter(
        "simt__l1_lookups_hit_reserved.sum",
        "sector",
        "L1 lookups of a sector that was being fetched",
        "l1(any_kind, 'hit_reserved')",
        _L1 + "[HIT_RESERVED] and [MSHR_HIT]",
    ),
    Counter(
        "simt__local_requests.sum", "request", "warp instructions that access local memory", "local_requests"
    ),
    Counter(
        "simt__atomic_requests.sum",
        "request",
        "warp instructions that perform atomics or reductions on global memory",
        "atomic_requests",
    ),
    Counter(
        "simt__l1_bank_conflicts.sum",
        "cycle",
        "cycles in which an access waited for a busy L1 bank",
        "l1_bank_conflicts",
        "gpgpu_n_l1cache_bkconflict",
    ),
    Counter(
        "simt__l1_reservation_fail_line.sum",
        "",
        "L1 retries: every way of the set reserved",
        "l1_reservation_fail_line",
        "LINE_ALLOC_FAIL",
    ),
    Counter(
        "simt__l1_reservation_fail_miss_queue.sum",
        "",
        "L1 retries: miss queue full",
        "l1_reservation_fail_miss_queue",
        "MISS_QUEUE_FULL",
    ),
    Counter(
        "simt__l1_reservation_fail_mshr.sum",
        "",
        "L1 retries: no MSHR left",
        "l1_reservation_fail_mshr",
        "MSHR_ENRTY_FAIL",
    ),
    Counter(
        "simt__l1_reservation_fail_merge.sum",
        "",
        "L1 retries: the MSHR cannot merge more",
        "l1_reservation_fail_merge",
        "MSHR_MERGE_ENRTY_FAIL",
    ),
    # Instruction and constant caches
    Counter(
        "simt__instruction_cache_hits.sum",
        "",
        "fetches served by the SM's instruction caches",
        "instruction_cache_hits",
        "L1I_total_cache_accesses - misses",
    ),
    Counter(
        "simt__instruction_cache_misses.sum",
        "",
        "fetches that went to the L2",
        "instruction_cache_misses",
        "L1I_total_cache_misses",
    ),
    Counter(
        "simt__constant_cache_hits.sum",
        "",
        "constant cache hits; a load looks up each of its addresses, an operand one",
        "constant_cache_hits",
        "L1C_total_cache_accesses - misses",
    ),
    Counter(
        "simt__constant_cache_misses.sum",
        "",
        "constant cache lookups that missed, or whose line was being fetched",
        "constant_cache_misses",
        "L1C_total_cache_misses",
    ),
    Counter(
        "simt__constant_l1_hits.sum",
        "",
        "lines of constants found in the SM's L1 instruction cache",
        "constant_l1_hits",
    ),
    Counter(
        "simt__constant_l1_misses.sum",
        "",
        "lines of constants that went to the L2",
        "constant_l1_misses",
    ),
    # Interconnect
    Counter(
        "simt__network_request_packets.sum",
        "packet",
        "packets from SMs to the L2",
        "network_request_packets",
        "icnt_total_pkts_simt_to_mem",
    ),
    Counter(
        "simt__network_reply_packets.sum",
        "packet",
        "packets from the L2 to SMs",
        "network_reply_packets",
        "icnt_total_pkts_mem_to_simt",
    ),
    Counter(
        "simt__network_request_wait.sum",
        "cycle",
        "interconnect cycles that request packets waited in input buffers",
        "network_request_wait",
    ),
    Counter(
        "simt__network_reply_wait.sum",
        "cycle",
        "interconnect cycles that reply packets waited in input buffers",
        "network_reply_wait",
    ),
    Counter(
        "simt__network_full_stalls.sum",
        "cycle",
        "cycles in which an SM could not send: input buffer full",
        "network_full_stalls",
        "gpu_stall_icnt2sh",
    ),
    Counter(
        "simt__tlb_misses.sum",
        "access",
        "accesses that began a miss of their TLB",
        "tlb_misses",
    ),
    # L2
    Counter(
        "lts__t_sectors_srcunit_tex_op_read.sum",
        "sector",
        "sectors that SMs read from the L2",
        "l2(reads, lookups)",
        _L2_READ + "[TOTAL_ACCESS]",
    ),
    Counter(
        "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
        "sector",
        "sectors that SMs read from the L2 and that it held. A sector that is being fetched is not a hit",
        "l2(reads, 'hit')",
        _L2_READ + "[HIT]",
    ),
    Counter(
        "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
        "sector",
        "sectors that SMs read from the L2 and that it did not hold yet",
        "l2(reads, lookups) - l2(reads, 'hit')",
        _L2_READ + "[MISS] + [SECTOR_MISS] + [HIT_RESERVED]",
    ),
    Counter(
        "lts__t_sectors_srcunit_tex_op_write.sum",
        "sector",
        "sectors that SMs write to the L2",
        "l2(writes, lookups)",
        _L2_WRITE + "[TOTAL_ACCESS]",
    ),
    Counter(
        "lts__t_sectors_srcunit_tex_op_write_lookup_hit.sum",
        "sector",
        "sectors that SMs write to the L2 and that it held",
        "l2(writes, 'hit')",
        _L2_WRITE + "[HIT]",
    ),
    Counter(
        "simt__l2_sectors_atomic.sum",
        "sector",
        "sectors on which the L2 performed atomics and reductions",
        "l2('atomic', lookups)",
    ),
    Counter(
        "lts__t_sectors.sum", "sector", "sector lookups in the L2, of every kind", "l2(any_kind, lookups)"
    ),
    Counter(
        "lts__t_sector_hit_rate.pct",
        "%",
        "lookups in the L2 that hit",
        "100 * l2(any_kind, 'hit') / l2(any_kind, lookups)",
        "1 - L2_total_cache_miss_rate",
    ),
    Counter(
        "lts__t_sector_op_read_hit_rate.pct",
        "%",
        "reads of the L2 that hit",
        "100 * l2(reads, 'hit') / l2(reads, lookups)",
    ),
    Counter(
        "lts__t_sector_op_write_hit_rate.pct",
        "%",
        "writes to the L2 that hit",
        "100 * l2(writes, 'hit') / l2(writes, lookups)",
    ),
    Counter(
        "lts__t_sectors_srcunit_tex_op_read.sum.per_second",
        "sector/s",
        "the rate at which SMs read from the L2",
        "l2(reads, lookups) * 1e3 * clock_khz / cycles",
        "L2_BW / 32 bytes",
    ),
    Counter(
        "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
        "%",
        "lookups in the L2, of one sector per slice and L2 cycle",
        "100 * l2(any_kind, lookups) / (l2_slices * l2_cycles)",
    ),
    Counter(
        "simt__l2_lookups_hit_reserved.sum",
        "sector",
        "L2 lookups of a sector that was being fetched",
        "l2(any_kind, 'hit_reserved')",
        _L2_READ + "[HIT_RESERVED] and [MSHR_HIT]",
    ),
    Counter(
        "simt__l2_reservation_fail.sum",
        "",
        "L2 retries for any reason",
        "l2_reservation_fail",
        _L2_READ + "[RESERVATION_FAIL]",
    ),
    # DRAM
    Counter("dram__sectors_read.sum", "sector", "sectors read from DRAM", "dram_reads", "total dram reads"),
    Counter(
        "dram__sectors_write.sum", "sector", "sectors written to DRAM", "dram_writes", "total dram writes"
    ),
    Counter("dram__bytes_read.sum", "byte", "bytes read from DRAM", "32 * dram_reads"),
    Counter("dram__bytes_write.sum", "byte", "bytes written to DRAM", "32 * dram_writes"),
    Counter(
        "dram__bytes.sum.per_second",
        "byte/s",
        "DRAM traffic, both ways",
        "32 * (dram_reads + dram_writes) * 1e3 * clock_khz / cycles",
    ),
    Counter(
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "cycles in which the DRAM data bus moves data",
        "100 * dram_bus_cycles / (dram_channels * dram_cycles)",
        "bw_util",
    ),
    Counter(
        "simt__dram_efficiency.pct",
        "%",
        "cycles in which the DRAM data bus moves data, of those with a request pending",
        "100 * dram_bus_cycles / dram_pending_cycles",
        "dram_eff",
    ),
    Counter(
        "simt__dram_row_hits.sum",
        "",
        "column commands to a row that was already open",
        "dram_row_hits",
    ),
    Counter("simt__dram_activates.sum", "", "rows opened", "dram_activates", "n_act"),
    Counter("simt__dram_precharges.sum", "", "rows closed", "dram_precharges", "n_pre"),
    Counter(
        "simt__dram_bus_cycles.sum",
        "cycle",
        "DRAM command cycles in which the data bus is in use, summed over channels",
        "dram_bus_cycles",
    ),
    Counter(
        "simt__dram_pending_cycles.sum",
        "cycle",
        "DRAM command cycles with a request pending, summed over channels",
        "dram_pending_cycles",
        "n_activity",
    ),
)


class _CacheTable:
    """`l1(kinds, outcomes)` of a formula."""

    def __init__(self, table: Mapping[str, Mapping[str, int]]) -> None:
        self._table = table

    def __call__(self, kinds: str | tuple[str, ...], outcomes: str | tuple[str, ...]) -> int:
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        outcomes = (outcomes,) if isinstance(outcomes, str) else outcomes
        rows = [row for kind in kinds if (row := self._table.get(kind))]
        return sum([row.get(outcome, 0) for row in rows for outcome in outcomes])


def evaluate(
    values: Mapping[str, Any],
    l1: Mapping[str, Mapping[str, int]],
    l2: Mapping[str, Mapping[str, int]],
    warp_stalls: Mapping[str, int],
) -> dict[str, Value]:
    """Computes every counter.

    `values` holds the engine's counters and the plain names of FORMULA_NAMES. A ratio whose denominator is
    zero, or a counter that needs a name absent from `values`, is None.
    """
    names: dict[str, Any] = {
        **values,
        "l1": _CacheTable(l1),
        "l2": _CacheTable(l2),
        "warp_stalls": lambda reason: warp_stalls.get(reason, 0),
        "reads": READ_KINDS,
        "writes": WRITE_KINDS,
        "any_kind": ALL_KINDS,
        "lookups": LOOKUP_OUTCOMES,
    }
    result: dict[str, Value] = {}
    for counter in COUNTERS:
        try:
            result[counter.name] = eval(counter.code, {"__builtins__": {}}, names)
        except (ZeroDivisionError, NameError):
            result[counter.name] = None
    return result
