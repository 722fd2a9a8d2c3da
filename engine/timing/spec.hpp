#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/instruction.hpp"

/// The GPU specification as the engine uses it: plain values, checked by simt.spec (Python) and frozen before
/// a run. simt.spec's models have the same names; their docstrings and the TOML files say what each value
/// means and its source.
namespace simt {

struct ClockSpec {  // kHz, so that 3500.5 MHz is exact
  uint64_t core_khz = 0, interconnect_khz = 0, l2_khz = 0, dram_khz = 0;
};

struct LaunchSpec {
  uint32_t kernel_latency = 0;    ///< core cycles from launch to the first CTA
  uint32_t cta_latency = 0;       ///< further core cycles per CTA of the grid
  uint32_t dispatch_latency = 0;  ///< core cycles from a CTA's end to the start of the next one in its place
  uint32_t max_concurrent_kernels = 1;  ///< 1: launches run one after the other
};

enum class CacheReplacement : uint8_t { Lru, Fifo, Custom };
enum class CacheWritePolicy : uint8_t {
  ReadOnly,
  WriteBack,
  WriteThrough,
  WriteEvict,
  LocalWriteBackGlobalWriteThrough
};
enum class CacheAllocation : uint8_t { OnMiss, OnFill, Streaming };
enum class CacheWriteAllocation : uint8_t { None, WriteAllocate, FetchOnWrite, WriteValidate };
enum class CacheSetIndex : uint8_t { Linear, Xor, Ipoly, Fermi };

struct CacheSpec {
  uint32_t sets = 0, line_bytes = 128, ways = 0;
  bool sectored = true;
  CacheReplacement replacement = CacheReplacement::Lru;
  CacheWritePolicy write_policy = CacheWritePolicy::ReadOnly;
  CacheAllocation allocation = CacheAllocation::OnMiss;
  CacheWriteAllocation write_allocation = CacheWriteAllocation::None;
  CacheSetIndex set_index = CacheSetIndex::Linear;
  uint32_t mshr_entries = 0;     ///< misses outstanding, one entry a sector (a line if not sectored)
  uint32_t mshr_merge = 0;       ///< requests that share one entry
  uint32_t miss_queue = 0;       ///< requests waiting to leave towards the next level
  uint32_t port_bytes = 32;      ///< data port and fill port width per cycle
  uint32_t dirty_threshold = 0;  ///< percent of lines modified below which modified lines are not evicted
};

struct InstructionCacheSpec {
  bool perfect = true;
  CacheSpec l1{};               ///< shared by the SM's sub-cores
  uint32_t l1_latency = 0;      ///< cycles of a hit beyond the fetch stage
  uint32_t l1_shared_by = 1;    ///< SMs that share one L1
  CacheSpec l0{};               ///< per sub-core; sets = 0: none
  uint32_t prefetch_lines = 0;  ///< stream-buffer depth, 0: none
};

struct FrontEndSpec {
  uint32_t fetch_width = 4;         ///< warps fetched and decoded per cycle and SM
  uint32_t instruction_buffer = 2;  ///< entries per warp
  InstructionCacheSpec instruction_cache{};
};

enum class SchedulerPolicy : uint8_t { Lrr, Gto, Oldest, TwoLevel, Cggty, Custom };

struct SchedulerSpec {
  SchedulerPolicy policy = SchedulerPolicy::Lrr;
  uint32_t active_warps = 0;               ///< two-level: size of the active set per scheduler
  uint32_t issue_width = 1;                ///< instructions of one warp per cycle
  bool dual_issue_different_units = true;  ///< a second instruction must go to another unit
};

enum class OperandModel : uint8_t { OperandCollector, ReadPorts };

struct RegisterFileSpec {
  uint32_t registers = 65536;      ///< 32-bit registers per SM
  uint32_t allocation_unit = 256;  ///< registers are given to a warp in multiples of this; 0: four per thread
  OperandModel model = OperandModel::OperandCollector;
  uint32_t banks = 16;               ///< per SM
  uint32_t collector_units = 8;      ///< operand collector: per SM
  uint32_t port_throughput = 2;      ///< operand collector: steps per cycle
  uint32_t read_ports_per_bank = 1;  ///< read ports
  bool operand_cache = false;        ///< read ports: register-file cache
  uint32_t write_back_width = 8;     ///< result bus slots per cycle and SM
};

struct UnitSpec {
  uint32_t count = 0;                ///< per SM; 0: the unit does not exist
  uint32_t latency = 1;              ///< core cycles
  uint32_t initiation_interval = 1;  ///< core cycles; tensor units: of FP16 m16n8k16 (HMMA.884: of a step)
};

/// What a bypassing or missing feature falls back to is fixed in Sm: Int and Branch to Fp32's unit, Fp64 to
/// Sfu.
struct SmSpec {
  uint32_t count = 0;
  uint32_t sub_cores = 4;
  bool sub_core_model = true;  ///< false: units and collectors are shared by all schedulers (Kepler)
  uint32_t warp_size = 32;
  uint32_t max_warps = 64;
  uint32_t max_ctas = 32;
  uint32_t barriers_per_cta = 16;
  FrontEndSpec front_end{};
  SchedulerSpec scheduler{};
  RegisterFileSpec register_file{};
  std::array<UnitSpec, static_cast<size_t>(Unit::Count)> units{};
};

struct SharedMemorySpec {
  uint32_t bytes = 0;             ///< most that CTAs can use per SM
  uint32_t reserved_per_cta = 0;  ///< bytes taken by the system for each CTA (1024 from sm_80)
  uint32_t allocation_unit = 1;   ///< bytes; a CTA's share is rounded up to this
  uint32_t banks = 32;
  uint32_t latency = 20;  ///< core cycles, conflict-free 32-bit load
  bool wide_accesses_take_wavefronts =
      true;  ///< 64/128-bit accesses in 2/4 passes; false: first word only (Accel-Sim)
};

struct L1Spec {
  CacheSpec cache{};  ///< geometry at `base_bytes`
  uint32_t banks = 4;
  uint32_t latency = 20;                    ///< core cycles from bank access to tag look-up
  uint32_t unified_bytes = 0;               ///< L1 + shared memory
  bool adaptive = false;                    ///< carve-out chosen per kernel from carve_out_options
  std::vector<uint32_t> carve_out_options;  ///< bytes of shared memory, rising
  bool bypass_global = false;               ///< global loads go straight to the L2 (Kepler, Pascal stock)
  uint32_t bypass_sectors_per_cycle = 1;    ///< L1-bypassing sectors per cycle
  bool flush_at_kernel_end = true;
  bool invalidate_at_membar = true;
};

struct LoadStoreSpec {
  uint32_t coalescing_sub_warps = 1;
  bool sectored_coalescing = true;  ///< false: 128-byte segments reduced to 64 and 32 (before Maxwell)
  uint32_t reply_buffer = 2;        ///< replies waiting at the load/store unit
  uint32_t sub_core_queue =
      0;  ///< silicon model: memory instructions queued per sub-core; 0: one shared latch
};

struct ConstantCacheSpec {
  bool perfect = true;
  CacheSpec l1{};             ///< one for loads, and one per sub-core for constant operands
  uint32_t latency = 0;       ///< of a load that hits
  uint32_t miss_latency = 0;  ///< further cycles of what the SM's L1 instruction cache has
};

enum class NetworkArbiter : uint8_t { RoundRobin, Islip };

struct InterconnectSpec {
  NetworkArbiter arbiter = NetworkArbiter::Islip;
  uint32_t input_buffer = 512;  ///< packets per port
  uint32_t output_buffer = 512;
  uint32_t latency = 0;          ///< interconnect cycles of wire each way, beyond one per hop
  uint32_t credit_latency = 32;  ///< core cycles until an SM learns that its input buffer has drained
  uint32_t flit_bytes = 0;       ///< 0: every packet is one flit; else data packets take several
  uint32_t look_ahead = 1;       ///< packets of an input's queue among which outputs choose
  uint32_t sm_port_sectors = 1;  ///< that an SM sends, and takes, in a cycle
};

enum class SliceHash : uint8_t { Linear, Xor, Ipoly, Pae, Random, IpolyModulo, IpolySkewed, Custom };

struct AddressMapSpec {
  uint32_t channels = 0, slices_per_channel = 1;
  SliceHash hash = SliceHash::Linear;
  uint32_t channel_bit =
      8;  ///< lowest address bit of the channel number: interleaving granularity is 1 << this
  // Bit letters of the DRAM address above the interleaving, most significant first, as in gpgpu-sim's
  // -gpgpu_mem_addr_mapping: R row, B bank, C column, S byte in a burst. Positions are bits of the address
  // from which the channel number was removed.
  std::string layout;
};

struct L2Spec {
  CacheSpec slice{};
  uint32_t latency = 160;  ///< l2 cycles from arrival at the slice to the tag look-up (ROP delay)
  uint32_t request_queue = 64, dram_queue = 64, fill_queue = 64, reply_queue = 64;
  bool copies_fill = true;   ///< host-to-device copies leave their data in the L2
  uint32_t partitions = 1;   ///< far and near halves (A100, H100)
  uint32_t far_latency = 0;  ///< further l2 cycles for a sector whose home is in the other partition
};

enum class DramScheduler : uint8_t { Fcfs, FrFcfs };

struct DramSpec {
  bool simple = false;     ///< fixed latency, one request per cycle and channel
  uint32_t latency = 100;  ///< l2 cycles through the controller before scheduling
  DramScheduler scheduler = DramScheduler::FrFcfs;
  uint32_t scheduler_queue = 64, return_queue = 192;
  bool write_queue = false;  ///< writes wait in a queue of their own
  uint32_t write_queue_size = 32, write_high = 28, write_low = 16;
  uint32_t bus_bytes = 16, burst_length = 2, data_command_ratio = 2;
  bool dual_bus = false;  ///< a row and a column command in the same cycle (HBM)
  uint32_t banks = 16, bank_groups = 4;
  bool bank_group_low_bits = true;  ///< group = bank mod groups; false: high bits
  bool bank_xor = false;            ///< bank number hashed with the row's low bits
  // dram command cycles
  uint32_t ccd = 1, rrd = 3, rcd = 12, ras = 28, rp = 12, rc = 40, cl = 12, wl = 2, cdlr = 3, wr = 10,
           ccdl = 2, rtpl = 3;
  uint32_t faw = 0;               ///< first activate to fifth; 0: no limit
  uint32_t refi = 0, rfc = 0;     ///< in which every bank is refreshed once (0: never); what a refresh takes
  bool per_bank_refresh = false;  ///< banks are refreshed in turn, not together
};

/// Addresses of compiled policy functions, 0 where none is given. Signatures: timing/policy.hpp.
struct PolicySpec {
  uintptr_t scheduler = 0;
  uintptr_t l1_replacement = 0;
  uintptr_t l2_replacement = 0;
  uintptr_t slice_hash = 0;
};

struct Spec {
  std::string name;
  uint32_t sm_version = 0;
  ClockSpec clock{};
  LaunchSpec launch{};
  SmSpec sm{};
  SharedMemorySpec shared_memory{};
  L1Spec l1{};
  LoadStoreSpec load_store{};
  ConstantCacheSpec constant_cache{};
  InterconnectSpec interconnect{};
  AddressMapSpec address_map{};
  L2Spec l2{};
  DramSpec dram{};
  PolicySpec policy{};
};

}  // namespace simt
