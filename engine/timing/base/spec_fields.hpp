#pragma once
#include <cstdint>

/// The fields of a GPU specification: type, name, unit, range and meaning. Generated from these lists: the
/// structs of `timing/base/spec.hpp`, the binding that fills them, the models in `simt/spec/sections.py`, and
/// `docs/specification.md` (`make generate` writes the last two).
///
/// A range is what the engine can represent and simulate. A field that is added later has a value for files
/// that do not name it (`unless_given`). Constraints between fields are checked in `simt/spec/checks.py`.
namespace simt {

/// The values a number may have: `least` to `most`; or the powers of two among them, and 0 if `least` is 0.
struct Range {
  uint64_t least = 0, most = 0;
  bool power_of_two = false;
  bool may_be_absent = false;
  uint64_t absent = 0;  ///< the value where a specification does not give it

  /// For what a GPU need not have: files that do not name the field mean `value`, and their hash stays.
  constexpr Range unless_given(uint64_t value) const {
    Range result = *this;
    result.may_be_absent = true;
    result.absent = value;
    return result;
  }
  constexpr bool has(uint64_t value) const {
    return value >= least && value <= most && (!power_of_two || (value & (value - 1)) == 0);
  }
};

namespace limits {
// Far beyond any GPU, yet small enough that a typing error does not exhaust the host's memory.
inline constexpr uint64_t number = 1 << 26, entries = 1 << 20;
inline constexpr uint64_t mask = 64;      // one bit each: an SM's warps and CTAs, register and DRAM banks
inline constexpr uint64_t latency = 480;  // the completion wheel's horizon, minus delays of operand reads
inline constexpr uint64_t interval =
    4096;  // initiation intervals; 16 bits, including a tensor instruction's share
inline constexpr uint64_t line_bytes = 4096;  // sectors of a packet have 8 bits
}  // namespace limits

namespace ranges {
inline constexpr Range none{};
inline constexpr Range number{0, limits::number}, positive{1, limits::number};
inline constexpr Range entries{0, limits::entries}, some_entries{1, limits::entries};
inline constexpr Range dram_cycles{0, 4096};
inline constexpr Range line_bytes{32, limits::line_bytes, true};
inline constexpr Range sets{0, limits::number, true};
}  // namespace ranges

}  // namespace simt

// clang-format off

// Named values of enumerations: enumerator, name, meaning.

#define SIMT_CACHE_ALLOCATIONS(NAME) \
  NAME(OnMiss, "on_miss", "A read miss allocates its line immediately.") \
  NAME(OnFill, "on_fill", "A read miss allocates its line when the data arrives.") \
  NAME(Streaming, "streaming", "On fill, with up to as many outstanding misses as the cache has sectors.")

#define SIMT_CACHE_WRITE_ALLOCATIONS(NAME) \
  NAME(None, "none", "A write miss goes to the next level and allocates no line.") \
  NAME(WriteAllocate, "write_allocate", "A write miss goes to the next level, and its sector is read.") \
  NAME(FetchOnWrite, "fetch_on_write", "A write miss that covers part of a sector reads the rest.") \
  NAME(WriteValidate, "write_validate", "A write miss allocates its sector without reading it.")

#define SIMT_OPERAND_MODELS(NAME) \
  NAME(OperandCollector, "operand_collector", "Operands are collected from banks out of order.") \
  NAME(ReadPorts, "read_ports", "Operands are read in order through the banks' ports.")

#define SIMT_NETWORK_ARBITERS(NAME) \
  NAME(RoundRobin, "round_robin", "Inputs take turns; each sends at most one packet per cycle.") \
  NAME(Islip, "islip", "Outputs take turns; each chooses the next input that has a packet for it.")

#define SIMT_ENUMS(ENUM) \
  ENUM(CacheAllocation, SIMT_CACHE_ALLOCATIONS) \
  ENUM(CacheWriteAllocation, SIMT_CACHE_WRITE_ALLOCATIONS) \
  ENUM(OperandModel, SIMT_OPERAND_MODELS) \
  ENUM(NetworkArbiter, SIMT_NETWORK_ARBITERS)

// Fields: type, name, unit, range, meaning. Choice<...>: a policy registered under a name.

#define SIMT_CLOCK_FIELDS(FIELD) \
  FIELD(Frequency, core_mhz, "MHz", (Range{1, 100'000}), "SM clock.") \
  FIELD(Frequency, interconnect_mhz, "MHz", (Range{1, 100'000}), "Crossbar clock.") \
  FIELD(Frequency, l2_mhz, "MHz", (Range{1, 100'000}), "L2 clock.") \
  FIELD(Frequency, dram_mhz, "MHz", (Range{1, 100'000}), "DRAM command clock.")

#define SIMT_LAUNCH_FIELDS(FIELD) \
  FIELD(uint32_t, kernel_latency, "core cycles", ranges::number, \
        "From a launch to its first CTA, as far as it scales with the core clock.") \
  FIELD(uint32_t, overhead, "ns", (ranges::number.unless_given(0)), \
        "From a launch to its first CTA, as far as it does not: added to kernel_latency.") \
  FIELD(uint32_t, cta_latency, "core cycles", ranges::number, \
        "Additional delay of the first CTA, per CTA of the grid.") \
  FIELD(uint32_t, dispatch_latency, "core cycles", ranges::number, \
        "From a CTA's last result to the dispatch of the next CTA in its place, which starts a cycle later.") \
  FIELD(uint32_t, warp_start_interval, "core cycles", (ranges::number.unless_given(0)), \
        "From the start of a CTA's warp to that of its next one; 0: all start together.") \
  FIELD(uint32_t, peak_dispatch_rate, "CTAs / 1,000 core cycles", (ranges::number.unless_given(0)), \
        "CTAs that the GPU starts at most; 0: one per SM and cycle.") \
  FIELD(uint32_t, dispatch_rate, "CTAs / 1,000 core cycles", (ranges::number.unless_given(0)), \
        "CTAs that the GPU starts at most in the long run; 0: no such limit.") \
  FIELD(uint32_t, dispatch_burst, "CTAs", (ranges::number.unless_given(0)), \
        "CTAs that an idle GPU can start beyond dispatch_rate.") \
  FIELD(bool, from_first_sm, "", (ranges::none.unless_given(0)), \
        "A launch's CTAs are placed from the first SM on; false: from the one after the SM served last.") \
  FIELD(uint32_t, max_concurrent_kernels, "launches", (Range{1, 128}), \
        "Launches of different streams that can run concurrently; 1: one after another.") \
  FIELD(bool, cold_caches, "", (ranges::none.unless_given(0)), \
        "A launch that runs alone begins with empty caches, as profilers see to; its code is in the L2.")

#define SIMT_HOST_LINK_FIELDS(FIELD) \
  FIELD(uint32_t, bandwidth, "MB/s", ranges::positive, \
        "Achieved by copies between host and device, in each direction (10^6 bytes per second).") \
  FIELD(uint32_t, latency, "ns", ranges::number, "Fixed cost of every copy and memset, including those on the device.")

#define SIMT_PEER_LINK_FIELDS(FIELD) \
  FIELD(uint32_t, bandwidth, "MB/s", (ranges::number.unless_given(0)), \
        "Achieved between devices, in each direction; 0: none, the way is that of host_link, shared with it.") \
  FIELD(uint32_t, latency, "ns", (ranges::number.unless_given(0)), "Fixed cost of every copy between devices.") \
  FIELD(uint32_t, access_latency, "ns", (ranges::number.unless_given(0)), \
        "Of a kernel's access to another device's memory, from the L2 and back.")

#define SIMT_CACHE_GEOMETRY(FIELD) \
  FIELD(uint32_t, sets, "", ranges::sets, "Sets; 0: no such cache.") \
  FIELD(uint32_t, line_bytes, "bytes", ranges::line_bytes, "Line size; 128 if sectored.") \
  FIELD(uint32_t, ways, "lines", ranges::number, "Associativity.")

#define SIMT_CACHE_LOOK_UP(FIELD) \
  FIELD(Choice<ReplacementPolicy>, replacement, "", ranges::none, "Which line of a set is replaced.") \
  FIELD(CacheAllocation, allocation, "", ranges::none, "When a read miss allocates its line.") \
  FIELD(Choice<SetIndex>, set_index, "", ranges::none, "Hash from address to set.") \
  FIELD(uint32_t, mshr_entries, "", ranges::entries, \
        "Outstanding misses: one entry per sector, or per line if not sectored.") \
  FIELD(uint32_t, mshr_merge, "requests", ranges::entries, "Requests that share one MSHR entry.")

#define SIMT_CACHE_FIELDS(FIELD) \
  SIMT_CACHE_GEOMETRY(FIELD) \
  FIELD(bool, sectored, "", ranges::none, "Lines are filled and written in sectors of 32 bytes.") \
  SIMT_CACHE_LOOK_UP(FIELD) \
  FIELD(uint32_t, miss_queue, "requests", (Range{2, limits::entries}), \
        "Requests waiting to be sent to the next level; a miss takes up to two entries.") \
  FIELD(Choice<WritePolicy>, write_policy, "", ranges::none, \
        "What a write does to this level and the next.") \
  FIELD(CacheWriteAllocation, write_allocation, "", ranges::none, "What a write miss does.") \
  FIELD(uint32_t, dirty_threshold, "percent", (Range{0, 100}), \
        "Share of modified lines below which modified lines are not evicted.") \
  FIELD(uint32_t, dirty_limit, "percent", (Range{1, 100}.unless_given(100)), \
        "Share of a set's lines that may be modified; beyond, the oldest of them is written back and stays.") \
  FIELD(bool, dirty_hash, "", (ranges::none.unless_given(0)), \
        "Beyond dirty_limit, a hash of the address chooses the line that is written back, not its age.")

#define SIMT_READ_ONLY_CACHE_FIELDS(FIELD) \
  SIMT_CACHE_GEOMETRY(FIELD) \
  SIMT_CACHE_LOOK_UP(FIELD)

#define SIMT_INSTRUCTION_CACHE_FIELDS(FIELD) \
  FIELD(bool, perfect, "", ranges::none, "Every fetch hits; the rest is then unused.") \
  FIELD(bool, code_in_l2, "", (ranges::none.unless_given(0)), \
        "Each kernel's code has addresses of its own, and is in the L2 when first launched.") \
  FIELD(ReadOnlyCacheSpec, l1, "", ranges::none, "Cache that an SM's sub-cores share.") \
  FIELD(uint32_t, l1_latency, "core cycles", ranges::number, "An L1 hit's latency beyond the fetch stage.") \
  FIELD(uint32_t, l1_miss_queue, "requests", (Range{2, limits::entries}), \
        "Misses waiting to be sent to the L2, if the L1 is not shared.") \
  FIELD(uint32_t, l1_shared_by, "SMs", (Range{1, 64}), "SMs that share one L1.") \
  FIELD(uint32_t, l0_lines, "lines", ranges::entries, \
        "Lines of each sub-core's own cache, fully associative; 0: none.") \
  FIELD(uint32_t, prefetch_lines, "lines", ranges::entries, \
        "Depth of the stream buffer behind each sub-core's cache; 0: none.") \
  FIELD(uint32_t, prefetch_latency, "core cycles", (ranges::number.unless_given(0)), \
        "Until a line that the L1 lacks is in the stream buffer; 0: prefetched lines take no time.")

#define SIMT_FRONT_END_FIELDS(FIELD) \
  FIELD(uint32_t, fetch_width, "warps", (Range{1, 64}), \
        "operand_collector: warps fetched and decoded per cycle and SM.") \
  FIELD(uint32_t, instruction_buffer, "instructions", (Range{1, 3}), "Decoded instructions held per warp.") \
  FIELD(uint32_t, branch_latency, "core cycles", (Range{0, limits::latency}.unless_given(0)), \
        "From the issue of a taken branch until its target can issue, at least (instructions of 16 bytes).") \
  FIELD(InstructionCacheSpec, instruction_cache, "", ranges::none, "Instruction caches.")

#define SIMT_SCHEDULER_FIELDS(FIELD) \
  FIELD(Choice<SchedulerPolicy>, policy, "", ranges::none, "Which ready warp issues.") \
  FIELD(uint32_t, active_warps, "warps", (Range{0, limits::mask}), \
        "two_level: size of each scheduler's active set.") \
  FIELD(uint32_t, issue_width, "instructions", (Range{1, 8}), "Instructions of one warp issued per cycle.") \
  FIELD(bool, dual_issue_different_units, "", ranges::none, \
        "A second instruction in the same cycle must go to another unit.")

#define SIMT_REGISTER_FILE_FIELDS(FIELD) \
  FIELD(uint32_t, registers, "registers", ranges::positive, "32-bit registers per SM.") \
  FIELD(uint32_t, allocation_unit, "registers", (Range{0, 65536}), \
        "Registers are allocated to warps in multiples of this; 0: four per thread.") \
  FIELD(OperandModel, model, "", ranges::none, "How operands are read.") \
  FIELD(uint32_t, banks, "", (Range{1, limits::mask}), "Register banks per SM.") \
  FIELD(uint32_t, collector_units, "", (Range{1, 32}), "operand_collector: collector units per SM.") \
  FIELD(uint32_t, port_throughput, "steps", (Range{1, 64}), "operand_collector: steps per cycle.") \
  FIELD(uint32_t, read_ports_per_bank, "", (Range{1, 64}), "read_ports: reads of one bank per cycle.") \
  FIELD(bool, operand_cache, "", ranges::none, \
        "read_ports: each bank keeps the operands read last (register-file cache).") \
  FIELD(uint32_t, write_back_width, "results", (Range{1, 1024}), \
        "operand_collector: results that the SM's units can write per cycle.")

#define SIMT_UNIT_FIELDS(FIELD) \
  FIELD(uint32_t, count, "", (Range{0, 64}), "Units per SM; 0: none, another unit does their work.") \
  FIELD(uint32_t, latency, "core cycles", (Range{1, limits::latency}), "From execution to result.") \
  FIELD(uint32_t, initiation_interval, "core cycles", (Range{1, limits::interval}), \
        "Until a unit takes its next instruction; tensor: FP16 m16n8k16 (HMMA.884: a step).")

#define SIMT_SPECIAL_UNIT_FIELDS(FIELD) \
  FIELD(std::vector<std::string>, opcodes, "", ranges::none, \
        "What it executes: `MUFU` is all of them, `MUFU.RCP` one; PTX instructions of one's own, too.") \
  SIMT_UNIT_FIELDS(FIELD)

// The units with a UnitSpec: enumerator of simt::Unit, name, meaning.
#define SIMT_EXECUTION_UNITS(UNIT) \
  UNIT(Int, "int", "Integer, and everything without a separate unit.") \
  UNIT(Fp32, "fp32", "Single precision; also does the work of `int` and `branch` if they do not exist.") \
  UNIT(Fp64, "fp64", "Double precision; without it `sfu` does its work.") \
  UNIT(Sfu, "sfu", "Special functions.") \
  UNIT(Tensor, "tensor", "Matrix multiply-accumulate; without it `sfu` does its work.") \
  UNIT(Branch, "branch", "Control flow.") \
  UNIT(Texture, "texture", "Texture instructions with unknown addresses; without it `sfu` does their work.") \
  UNIT(Uniform, "uniform", "Uniform datapath.")

#define SIMT_SM_FIELDS(FIELD) \
  FIELD(uint32_t, count, "SMs", (Range{1, 65535}), "SMs of the GPU.") \
  FIELD(uint32_t, sub_cores, "", (Range{1, 8}), "Warp schedulers per SM.") \
  FIELD(bool, sub_core_model, "", ranges::none, \
        "Each scheduler has its own units, banks and collectors; false: all are shared (Kepler).") \
  FIELD(uint32_t, warp_size, "lanes", (Range{32, 64, true}), "Lanes of a warp.") \
  FIELD(uint32_t, max_warps, "warps", (Range{1, limits::mask}), "Resident warps per SM.") \
  FIELD(uint32_t, max_ctas, "CTAs", (Range{1, limits::mask}), "Resident CTAs per SM.") \
  FIELD(FrontEndSpec, front_end, "", ranges::none, "Fetch and decode.") \
  FIELD(SchedulerSpec, scheduler, "", ranges::none, "Warp schedulers.") \
  FIELD(RegisterFileSpec, register_file, "", ranges::none, "Register file.") \
  FIELD(UnitsSpec, units, "", ranges::none, "Execution units.") \
  FIELD(SpecialUnitsSpec, special_units, "", ranges::none, \
        "Execution units of one's own, by name: `[sm.special_units.ray]`; up to 8.") \
  FIELD(uint32_t, conversion_latency, "core cycles", (Range{0, limits::latency}.unless_given(0)), \
        "Of conversions of numbers and of POPC, FLO, BREV, on `units.sfu`; 0: `units.int` does them.") \
  FIELD(bool, multiplications_on_fp32, "", (ranges::none.unless_given(0)), \
        "Integer multiplications run on `units.fp32`, FP32 comparisons on `units.int`; false: by type.") \
  FIELD(uint32_t, half_precision_interval, "core cycles", (Range{0, limits::interval}.unless_given(0)), \
        "Of HFMA2 and other FP16 arithmetic on `units.fp32`; 0: half of that unit's.") \
  FIELD(bool, half_rate_fp32_accumulation, "", (ranges::none.unless_given(0)), \
        "Tensor products with FP16 accumulators, of integers or FP4: twice the rate of the others (GeForce).") \
  FIELD(uint32_t, warp_group_queue, "", (Range{1, 64}.unless_given(1)), \
        "Multiplications by warp groups that a sub-core's tensor core holds, with the one under way.") \
  FIELD(uint32_t, tensor_memory_columns, "columns per core cycle", (Range{0, 64}.unless_given(0)), \
        "Of D that products into tensor memory finish, in all its lanes; 0: such products take no time.") \
  FIELD(uint32_t, tensor_memory_product_latency, "core cycles", (Range{0, 4096}.unless_given(0)), \
        "Of a product into tensor memory, besides its columns and A from shared memory.") \
  FIELD(uint32_t, tensor_memory_pair_latency, "core cycles", (Range{0, 4096}.unless_given(0)), \
        "More for a product of two CTAs.") \
  FIELD(uint32_t, tensor_memory_split_latency, "core cycles", (Range{0, 4096}.unless_given(0)), \
        "More if two groups of lanes hold the columns of its D.") \
  FIELD(uint32_t, tensor_memory_swizzled_bandwidth, "bytes per core cycle", (Range{0, 4096}.unless_given(0)), \
        "Of swizzled operands from shared memory; 0: shared_memory.operand_bandwidth.") \
  FIELD(uint32_t, tensor_memory_bandwidth, "bytes per core cycle", (Range{0, 4096}.unless_given(0)), \
        "Between registers and tensor memory, for each sub-core; 0: as another tensor instruction.") \
  FIELD(uint32_t, tensor_memory_latency, "core cycles", (Range{0, limits::latency}.unless_given(0)), \
        "Of a load from tensor memory, besides what its bandwidth takes.") \
  FIELD(uint32_t, barrier_interval, "core cycles", (Range{0, limits::latency}.unless_given(0)), \
        "From one arrival at a CTA barrier that the SM counts to the next; 0: all at once.") \
  FIELD(uint32_t, barrier_latency, "core cycles", (Range{0, limits::latency}.unless_given(0)), \
        "From the last arrival's count until the waiting warps can issue.") \
  FIELD(bool, free_barriers, "", (ranges::none.unless_given(0)), \
        "Warps of a trace do not wait at CTA barriers, which no GPU does: what waiting there costs.")

#define SIMT_SHARED_MEMORY_FIELDS(FIELD) \
  FIELD(uint32_t, bytes, "bytes", ranges::positive, "Maximum usable by CTAs per SM.") \
  FIELD(uint32_t, reserved_per_cta, "bytes", ranges::number, "Reserved by the system for each CTA.") \
  FIELD(uint32_t, allocation_unit, "bytes", (Range{1, limits::number, true}), \
        "A CTA's share is rounded up to a multiple of this.") \
  FIELD(uint32_t, banks, "", (Range{1, 64, true}), "Banks, 4 bytes wide.") \
  FIELD(uint32_t, latency, "core cycles", ranges::positive, \
        "Conflict-free 32-bit load: in the pipeline (operand_collector), or issue to use (read_ports).") \
  FIELD(uint32_t, access_interval, "core cycles", (Range{1, 64}.unless_given(1)), \
        "From one access that the load/store unit accepts to the next instruction, at least.") \
  FIELD(uint32_t, pass_interval, "core cycles", (Range{1, 64}.unless_given(1)), \
        "For each pass that bank conflicts or wide accesses take.") \
  FIELD(uint32_t, atomic_interval, "core cycles", (Range{0, 64}.unless_given(0)), \
        "For each lane of the bank with most lanes of an atomic; 0: atomics take passes as loads do.") \
  FIELD(uint32_t, generic_passes, "", (Range{0, 64}.unless_given(0)), \
        "More passes of an access by a generic address; they are no wavefronts.") \
  FIELD(uint32_t, operand_bandwidth, "bytes per core cycle", (Range{0, 65536}.unless_given(0)), \
        "Operands of warp-group multiplications, less what accesses and bulk copies take; 0: unlimited.") \
  FIELD(bool, wide_accesses_take_wavefronts, "", ranges::none, \
        "64-bit and 128-bit accesses take 2 and 4 passes; false: only the first word counts (Accel-Sim).") \
  FIELD(bool, conflict_free, "", (ranges::none.unless_given(0)), \
        "Accesses take as many passes as their words need, whatever the banks: what bank conflicts cost.")

#define SIMT_L1_FIELDS(FIELD) \
  FIELD(CacheSpec, cache, "", ranges::none, \
        "Geometry and policies; if adaptive, the ways are scaled to the rest of unified_bytes.") \
  FIELD(uint32_t, banks, "", (Range{1, 64, true}), "Banks, one sector wide.") \
  FIELD(uint32_t, latency, "core cycles", ranges::positive, \
        "Hit: from bank access to tag look-up (operand_collector), or issue to use (read_ports).") \
  FIELD(uint32_t, unified_bytes, "bytes", ranges::number, \
        "Total of L1 and shared memory, if adaptive; otherwise unused.") \
  FIELD(bool, adaptive, "", ranges::none, "Shared memory is carved out of unified_bytes for each kernel.") \
  FIELD(std::vector<uint32_t>, carve_out_options, "bytes", ranges::number, \
        "Possible sizes of shared memory, if adaptive, in ascending order.") \
  FIELD(bool, bypass_global, "", ranges::none, "Global loads go straight to the L2.") \
  FIELD(uint32_t, bypass_sectors_per_cycle, "sectors", ranges::some_entries, \
        "Sectors that bypass the L1 per core cycle.") \
  FIELD(uint32_t, access_interval, "core cycles", (Range{1, 64}.unless_given(1)), \
        "From one access that the load/store unit accepts to the next instruction, at least.") \
  FIELD(uint32_t, line_interval, "core cycles", (Range{0, 64}.unless_given(0)), \
        "For each line of a load that hits but its first, in each of two steps.") \
  FIELD(uint32_t, bypass_latency, "core cycles", (ranges::number.unless_given(0)), \
        "Of loads that bypass the L1, until they leave for the interconnect.") \
  FIELD(bool, flush_at_kernel_end, "", ranges::none, "The L1 is invalidated at the end of each kernel.") \
  FIELD(bool, invalidate_at_membar, "", ranges::none, "A memory barrier of GPU scope invalidates the L1.") \
  FIELD(bool, misses_in_order, "", (ranges::none.unless_given(0)), \
        "Loads that miss write their registers in the order of their first misses; hits do not wait.") \
  FIELD(bool, perfect, "", (ranges::none.unless_given(0)), \
        "Every load and asynchronous copy hits, but for bulk copies: what memory behind the L1 costs.")

#define SIMT_LOAD_STORE_FIELDS(FIELD) \
  FIELD(uint32_t, coalescing_sub_warps, "", (Range{1, 32, true}), \
        "Parts of a warp whose accesses are coalesced separately.") \
  FIELD(bool, sectored_coalescing, "", ranges::none, \
        "Accesses are coalesced to sectors; false: to segments of 128 bytes reduced to 64 and 32 (Kepler).") \
  FIELD(uint32_t, sub_core_queue, "instructions", ranges::entries, \
        "read_ports: memory instructions queued per sub-core; 0: one latch that the sub-cores share.") \
  FIELD(uint32_t, bulk_line_interval, "half core cycles", (Range{0, 64}.unless_given(0)), \
        "For each line of 128 bytes, or part of one, that a bulk copy reads or writes.") \
  FIELD(uint32_t, bulk_copy_interval, "core cycles", (Range{0, limits::latency}.unless_given(0)), \
        "Between the beginnings of bulk copies, of which the next is prepared while one is under way.") \
  FIELD(uint32_t, tensor_map_latency, "core cycles", (ranges::number.unless_given(0)), \
        "Of the first bulk copy through a tensor map on an SM in a launch, until the map has been read.") \
  FIELD(bool, perfect_coalescing, "", (ranges::none.unless_given(0)), \
        "An access has only as many sectors as its bytes fill: what accesses side by side would save.")

#define SIMT_CONSTANT_CACHE_FIELDS(FIELD) \
  FIELD(bool, perfect, "", ranges::none, "Every constant access hits; l1 and miss_latency are then unused.") \
  FIELD(ReadOnlyCacheSpec, l1, "", ranges::none, \
        "One for loads, and one per sub-core for operands, backed by the L1 instruction cache.") \
  FIELD(uint32_t, latency, "core cycles", (Range{0, limits::latency}), \
        "A load that hits; 0: the integer unit's latency.") \
  FIELD(uint32_t, access_interval, "core cycles", (Range{1, 64}.unless_given(1)), \
        "From one address that loads of an SM look up to the next.") \
  FIELD(uint32_t, miss_latency, "core cycles", ranges::number, \
        "Additional cycles of a load or operand whose line is in the L1 instruction cache.")

#define SIMT_INTERCONNECT_FIELDS(FIELD) \
  FIELD(NetworkArbiter, arbiter, "", ranges::none, "How an output chooses among inputs.") \
  FIELD(uint32_t, input_buffer, "packets", ranges::some_entries, "Buffer of each input port.") \
  FIELD(uint32_t, output_buffer, "packets", ranges::some_entries, "Buffer of each output port.") \
  FIELD(uint32_t, latency, "interconnect cycles", ranges::number, "Wire each way, beyond one cycle per hop.") \
  FIELD(uint32_t, credit_latency, "core cycles", ranges::positive, \
        "Until an SM learns that its input buffer has drained.") \
  FIELD(uint32_t, flit_bytes, "bytes", ranges::number, \
        "Flit size: larger packets take several; 0: every packet is one flit.") \
  FIELD(uint32_t, look_ahead, "packets", (Range{1, 64}), \
        "Packets in an input's queue that outputs choose from; 1: only the head, which may block others.") \
  FIELD(uint32_t, sm_port_sectors, "sectors", (Range{1, 4}), "Sectors that an SM receives, and sends, per cycle.")

#define SIMT_TLB_FIELDS(FIELD) \
  FIELD(uint32_t, entries, "", (ranges::entries.unless_given(0)), \
        "Translations that one TLB holds; 0: addresses need none.") \
  FIELD(uint32_t, entry_mib, "MiB", (Range{1, limits::entries, true}.unless_given(2)), \
        "Memory that a translation is of.") \
  FIELD(uint32_t, count, "", (Range{1, 1024}.unless_given(1)), "TLBs, which the SMs use in turn.") \
  FIELD(uint32_t, miss_latency, "core cycles", (ranges::positive.unless_given(1)), \
        "Of an access whose translation is missing; others that need it wait for it, too.")

#define SIMT_ADDRESS_MAP_FIELDS(FIELD) \
  FIELD(uint32_t, channels, "", (Range{1, 1024}), "Memory channels.") \
  FIELD(uint32_t, slices_per_channel, "", (Range{1, 32, true}), "L2 slices per channel.") \
  FIELD(Choice<SliceHash>, hash, "", ranges::none, "Hash from address to slice.") \
  FIELD(uint32_t, channel_bit, "", (Range{5, 20}), \
        "Lowest address bit of the channel number: channels interleave every 1 << channel_bit bytes.") \
  FIELD(std::string, layout, "", ranges::none, \
        "Address bits without the channel number, highest first: R row, B bank, C column, S byte of an atom.")

#define SIMT_L2_FIELDS(FIELD) \
  FIELD(CacheSpec, slice, "", ranges::none, "Geometry and policies of one slice.") \
  FIELD(uint32_t, latency, "L2 cycles", ranges::positive, "From arrival at the slice to the tag look-up.") \
  FIELD(uint32_t, port_bytes, "bytes", ranges::positive, \
        "Width of a slice's data port, which reads out modified lines, per cycle.") \
  FIELD(uint32_t, write_interval, "L2 cycles", (Range{1, 64}.unless_given(1)), \
        "For which a write occupies a slice's data port; reads take one.") \
  FIELD(uint32_t, partial_write_interval, "L2 cycles", (Range{1, 64}.unless_given(1)), \
        "The same for a write to a part of a sector that the slice has.") \
  FIELD(uint32_t, atomic_rate, "words / 1,000 L2 cycles", (ranges::number.unless_given(0)), \
        "32-bit words that a slice's atomic unit changes, one request per cycle at most; 0: no such limit.") \
  FIELD(uint32_t, request_queue, "requests", (Range{4, limits::entries}), \
        "Between interconnect and tags; a packet may bring four.") \
  FIELD(uint32_t, dram_queue, "requests", ranges::some_entries, "Between slice and DRAM channel.") \
  FIELD(uint32_t, fill_queue, "replies", ranges::some_entries, "Between DRAM channel and slice.") \
  FIELD(uint32_t, reply_queue, "replies", ranges::some_entries, "Between slice and interconnect.") \
  FIELD(bool, copies_fill, "", ranges::none, \
        "Copies to and within the device, and memsets, leave their data in the L2; false: they go past it.") \
  FIELD(uint32_t, persisting_kib, "KiB", (ranges::number.unless_given(0)), \
        "Most that lines which are evicted last can hold; 0: eviction priorities have no effect.") \
  FIELD(uint32_t, partitions, "", (Range{1, 16}), "Partitions of the L2, with a longer latency between them.") \
  FIELD(uint32_t, far_latency, "L2 cycles", ranges::number, \
        "Additional latency of a sector whose home is in another partition.") \
  FIELD(bool, perfect, "", (ranges::none.unless_given(0)), \
        "Every look-up hits: what device memory costs.")

#define SIMT_DRAM_FIELDS(FIELD) \
  FIELD(uint32_t, capacity_gib, "GiB", (Range{1, 1024}), "Device memory; visible to programs, no effect on timing.") \
  FIELD(bool, simple, "", ranges::none, "Fixed latency, one request per cycle and channel.") \
  FIELD(uint32_t, latency, "L2 cycles", ranges::number, "Through the controller before scheduling.") \
  FIELD(Choice<DramSchedulerPolicy>, scheduler, "", ranges::none, "Which request a channel serves next.") \
  FIELD(uint32_t, scheduler_queue, "requests", ranges::some_entries, "Requests that the scheduler sees.") \
  FIELD(uint32_t, return_queue, "replies", ranges::some_entries, "Replies waiting for the L2.") \
  FIELD(bool, write_queue, "", ranges::none, "Writes wait in a separate queue.") \
  FIELD(uint32_t, write_queue_size, "requests", ranges::some_entries, "Entries of the write queue.") \
  FIELD(uint32_t, write_high, "requests", ranges::some_entries, \
        "Pending writes at which the channel switches to writes.") \
  FIELD(uint32_t, write_low, "requests", ranges::entries, "Pending writes at which it switches back to reads.") \
  FIELD(uint32_t, bus_bytes, "bytes", (Range{1, 32, true}), "Width of a channel's data bus.") \
  FIELD(uint32_t, burst_length, "transfers", (Range{1, 32, true}), \
        "Transfers per access; bus_bytes * burst_length is an atom of 32 bytes.") \
  FIELD(uint32_t, data_command_ratio, "transfers", (Range{1, 32, true}), "Transfers per command cycle.") \
  FIELD(bool, dual_bus, "", ranges::none, "A row and a column command in the same cycle (HBM).") \
  FIELD(uint32_t, banks, "", (Range{1, limits::mask, true}), "Banks per channel.") \
  FIELD(uint32_t, bank_groups, "", (Range{1, limits::mask, true}), "Bank groups per channel.") \
  FIELD(bool, bank_group_low_bits, "", ranges::none, \
        "A bank's group is its number modulo the groups; false: its high bits.") \
  FIELD(bool, bank_xor, "", ranges::none, "The bank number is hashed with the row's low bits.") \
  FIELD(uint32_t, ccd, "DRAM cycles", ranges::dram_cycles, "Column command to column command (tCCD).") \
  FIELD(uint32_t, rrd, "DRAM cycles", ranges::dram_cycles, "Activate to activate of another bank (tRRD).") \
  FIELD(uint32_t, rcd, "DRAM cycles", ranges::dram_cycles, "Activate to read (tRCD).") \
  FIELD(uint32_t, ras, "DRAM cycles", ranges::dram_cycles, "Activate to precharge (tRAS).") \
  FIELD(uint32_t, rp, "DRAM cycles", ranges::dram_cycles, "Precharge to activate (tRP).") \
  FIELD(uint32_t, rc, "DRAM cycles", ranges::dram_cycles, "Activate to activate of the same bank (tRC).") \
  FIELD(uint32_t, cl, "DRAM cycles", ranges::dram_cycles, "Read to first data (CL).") \
  FIELD(uint32_t, wl, "DRAM cycles", ranges::dram_cycles, "Write to first data (WL).") \
  FIELD(uint32_t, cdlr, "DRAM cycles", ranges::dram_cycles, "End of write data to read (tCDLR).") \
  FIELD(uint32_t, wr, "DRAM cycles", ranges::dram_cycles, "End of write data to precharge (tWR).") \
  FIELD(uint32_t, ccdl, "DRAM cycles", ranges::dram_cycles, \
        "Column command to column command of the same bank group (tCCDL).") \
  FIELD(uint32_t, rtpl, "DRAM cycles", ranges::dram_cycles, \
        "Read to precharge of the same bank group (tRTPL).") \
  FIELD(uint32_t, faw, "DRAM cycles", ranges::dram_cycles, \
        "Activate to the fourth activate after it (tFAW); 0: no limit.") \
  FIELD(uint32_t, refi, "DRAM cycles", ranges::number, \
        "Time in which every bank is refreshed once (tREFI); 0: no refresh.") \
  FIELD(uint32_t, rfc, "DRAM cycles", ranges::dram_cycles, \
        "Refresh to activate (tRFC, of one bank if per_bank_refresh).") \
  FIELD(bool, per_bank_refresh, "", ranges::none, \
        "Banks are refreshed in turn, refi / banks apart, while others work; false: all together.")

#define SIMT_SPEC_FIELDS(FIELD) \
  FIELD(std::string, name, "", ranges::none, "Name under which it was loaded.") \
  FIELD(std::string, description, "", ranges::none, "One-line description.") \
  FIELD(uint32_t, sm_version, "", (Range{20, 999}), "Compute capability: 70 for 7.0.") \
  FIELD(ClockSpec, clock, "", ranges::none, "Clocks.") \
  FIELD(LaunchSpec, launch, "", ranges::none, "Launches.") \
  FIELD(HostLinkSpec, host_link, "", ranges::none, "Link to the host.") \
  FIELD(PeerLinkSpec, peer_link, "", ranges::none, "Link to other devices.") \
  FIELD(SmSpec, sm, "", ranges::none, "SMs.") \
  FIELD(SharedMemorySpec, shared_memory, "", ranges::none, "Shared memory.") \
  FIELD(L1Spec, l1, "", ranges::none, "L1 data caches.") \
  FIELD(LoadStoreSpec, load_store, "", ranges::none, "Load/store units.") \
  FIELD(ConstantCacheSpec, constant_cache, "", ranges::none, "Constant caches.") \
  FIELD(InterconnectSpec, interconnect, "", ranges::none, "Interconnect.") \
  FIELD(TlbSpec, tlb, "", ranges::none, "TLBs.") \
  FIELD(AddressMapSpec, address_map, "", ranges::none, "Address map.") \
  FIELD(L2Spec, l2, "", ranges::none, "L2.") \
  FIELD(DramSpec, dram, "", ranges::none, "DRAM.")

// Sections: name, fields, meaning. Each follows the sections it contains. UnitsSpec, with one UnitSpec for
// each of SIMT_EXECUTION_UNITS, belongs between SIMT_INNER_SECTIONS and SIMT_OUTER_SECTIONS.

#define SIMT_INNER_SECTIONS(SECTION) \
  SECTION(Clock, SIMT_CLOCK_FIELDS, "Frequencies of the clock domains, exact to 1 kHz.") \
  SECTION(Launch, SIMT_LAUNCH_FIELDS, "What a kernel launch and a CTA's start cost.") \
  SECTION(HostLink, SIMT_HOST_LINK_FIELDS, "Copies between host and device, and within the device.") \
  SECTION(PeerLink, SIMT_PEER_LINK_FIELDS, "Copies between devices, and what kernels access in the memory of other devices.") \
  SECTION(Cache, SIMT_CACHE_FIELDS, "Geometry and policies of a data cache.") \
  SECTION(ReadOnlyCache, SIMT_READ_ONLY_CACHE_FIELDS, \
          "Geometry and policies of a cache of instructions or constants, filled by whole lines.") \
  SECTION(InstructionCache, SIMT_INSTRUCTION_CACHE_FIELDS, "Instruction caches of an SM.") \
  SECTION(FrontEnd, SIMT_FRONT_END_FIELDS, "Fetch and decode.") \
  SECTION(Scheduler, SIMT_SCHEDULER_FIELDS, "Warp scheduler of each sub-core.") \
  SECTION(RegisterFile, SIMT_REGISTER_FILE_FIELDS, "Registers and how operands are read.") \
  SECTION(Unit, SIMT_UNIT_FIELDS, "One kind of execution unit.") \
  SECTION(SpecialUnit, SIMT_SPECIAL_UNIT_FIELDS, "An execution unit of one's own.")

#define SIMT_OUTER_SECTIONS(SECTION) \
  SECTION(Sm, SIMT_SM_FIELDS, "Streaming multiprocessors.") \
  SECTION(SharedMemory, SIMT_SHARED_MEMORY_FIELDS, "Shared memory of an SM.") \
  SECTION(L1, SIMT_L1_FIELDS, "L1 data cache of an SM.") \
  SECTION(LoadStore, SIMT_LOAD_STORE_FIELDS, "Load/store unit of an SM.") \
  SECTION(ConstantCache, SIMT_CONSTANT_CACHE_FIELDS, "Constant caches of an SM.") \
  SECTION(Interconnect, SIMT_INTERCONNECT_FIELDS, "Crossbar between SMs and L2 slices.") \
  SECTION(Tlb, SIMT_TLB_FIELDS, "Translation of the addresses of data, between the SMs and the interconnect.") \
  SECTION(AddressMap, SIMT_ADDRESS_MAP_FIELDS, \
          "Where an address lives: channel, slice, DRAM bank, row and column.") \
  SECTION(L2, SIMT_L2_FIELDS, "L2 slices.") \
  SECTION(Dram, SIMT_DRAM_FIELDS, "DRAM channels; timings have the names of data sheets.")

// clang-format on
