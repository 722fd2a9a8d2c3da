#pragma once
#include <array>
#include <cstdint>

#include "isa/control_bits.hpp"
#include "isa/eviction.hpp"

/// The ISA-independent instruction form that every front end produces and the timing engine executes.
namespace simt {

/// Execution unit that an instruction is issued to.
enum class Unit : uint8_t {
  Int,
  Fp32,
  Fp64,
  Sfu,
  Tensor,
  Branch,
  Texture,
  Uniform,
  Memory,
  Tma,
  Conversion,  ///< of numbers, and counting and finding bits: on `Sfu` or `Int`
  Multiply,    ///< of integers, and dot products: on `Fp32` or `Int`
  Compare,     ///< minima, selections and comparisons of FP32 numbers: on `Int` or `Fp32`
  Special,     ///< the first of those that a specification defines
  Count = Special + 8
};
/// Units that a specification can define.
inline constexpr size_t special_units = static_cast<size_t>(Unit::Count) - static_cast<size_t>(Unit::Special);

/// The effect of an instruction beyond occupying its unit.
enum class Operation : uint8_t {
  Arithmetic,
  Branch,
  Load,
  Store,
  Atomic,         ///< read-modify-write that returns a value
  Reduction,      ///< read-modify-write without a result (RED)
  AsyncCopy,      ///< LDGSTS: global to shared without registers
  AsyncCommit,    ///< LDGDEPBAR, cp.async.commit_group: closes a group of asynchronous copies
  AsyncWait,      ///< DEPBAR N: waits until at most `immediate` groups are open
  Barrier,        ///< BAR: waits at CTA barrier `immediate` (0 if the trace does not say) for `immediate2`
                  ///< threads (0: all of the CTA)
  BarrierArrive,  ///< BAR.ARV: arrives without waiting
  MemoryBarrier,  ///< MEMBAR, FENCE
  Sleep,          ///< NANOSLEEP: the warp issues nothing for some nanoseconds
  Exit,
  BulkLoad,        ///< TMA load: tensor or bulk copy into shared memory
  BulkStore,       ///< TMA store or reduction
  MbarrierArrive,  ///< SYNCS arrive and the like
  MbarrierWait,    ///< SYNCS.PHASECHK: waits for the bulk copies tied to an mbarrier
  Nop,
  TensorProduct,  ///< UTCHMMA and the like: a product into tensor memory, which the SM's queue takes
  TensorCopy,     ///< UTCCP: a copy from shared into tensor memory, through the same queue
  TensorCommit,   ///< UTCBAR: an mbarrier completes when what the queue has taken is done
  TensorMove,     ///< LDTM, STTM: between tensor memory and registers
  Count
};

enum class MemorySpace : uint8_t { None, Global, Local, Shared, Constant, Generic, Texture, Count };

enum class RegisterFile : uint8_t { General, Uniform, Predicate, UniformPredicate };

struct Register {
  uint16_t index = 0;  ///< 255 (RZ) is kept as written; the engine ignores it where hardware does
  RegisterFile file = RegisterFile::General;
  uint8_t width = 1;  ///< number of consecutive 32-bit registers, as far as the opcode determines it

  friend bool operator==(const Register&, const Register&) = default;
};

/// The properties that are the same each time a PC executes. Interned once per kernel.
struct StaticInstruction {
  static constexpr int max_registers = 8;
  static constexpr uint32_t no_constant = ~0u;

  uint64_t pc = 0;
  uint32_t opcode = 0;       ///< index into the kernel's opcode strings
  uint32_t source_line = 0;  ///< 0 when unknown
  int64_t immediate = 0;
  int64_t immediate2 = 0;                   ///< version 6 only
  uint32_t constant_operand = no_constant;  ///< byte of an operand in the launch's constant bank
  Unit unit = Unit::Int;
  Operation operation = Operation::Arithmetic;
  MemorySpace space = MemorySpace::None;
  uint8_t access_bytes =
      0;  ///< bytes that each lane accesses; 0 for none, or if no addresses are known (LDC)
  bool commits_group = false;   ///< a warp-group multiplication that closes its group
  bool half_precision = false;  ///< packed FP16: half the initiation interval of its unit
  bool bypass_l1 = false;  ///< STRONG.GPU and wider, and accesses whose cache operator sends them to the L2;
                           ///< for a memory barrier: it orders beyond the CTA
  /// Of accesses to global memory, by modifiers of the opcode.
  Eviction l1_eviction = Eviction::Default, l2_eviction = Eviction::Default;
  uint8_t destination_count = 0;
  uint8_t source_count = 0;
  std::array<Register, max_registers> destinations{};
  std::array<Register, max_registers> sources{};
  /// Place of each source among the instruction's operands, from 0: without destinations and the guard, but
  /// with constants and immediates. Known with control bits only.
  std::array<uint8_t, max_registers> source_slots{};
  ControlBits control{};

  bool accesses_memory() const { return access_bytes != 0; }
  bool has_eviction() const { return l1_eviction != Eviction::Default || l2_eviction != Eviction::Default; }
  bool is_barrier() const { return operation == Operation::Barrier || operation == Operation::BarrierArrive; }
  friend bool operator==(const StaticInstruction&, const StaticInstruction&) = default;
};

/// One execution of an instruction by one warp.
struct DynamicRecord {
  uint32_t static_index = 0;
  uint32_t ticket = 0;  ///< for an executed access that takes effect after its issue; 0: none
  union {
    uint32_t nanoseconds = 0;  ///< of a sleep whose length is in a register
    uint32_t cache_policy;     ///< of a memory access: as in eviction_of(); 0: none
  };
  uint32_t bulk_count = 0;  ///< TMA: number of addresses, which are then not tied to lanes
  uint64_t mask = 0;  ///< lanes that execute (active and not predicated off), up to 64; a barrier that no
                      ///< lane executes blocks no warp
  // Lane addresses: the k-th active lane accesses base + k*stride, or, where `deltas` is set, base plus the
  // running sum of the coded deltas. Decode with lane_addresses().
  uint64_t base = 0;
  int64_t stride = 0;
  const uint8_t* deltas = nullptr;
  uint64_t bulk_bytes = 0;  ///< TMA: number of bytes copied, 0 if unknown
  uint64_t mbarrier = 0;    ///< TMA: address of the mbarrier on which the copy completes, 0 if unknown
};
static_assert(sizeof(DynamicRecord) == 64);  // a cache line of the host: warps hold several

}  // namespace simt
