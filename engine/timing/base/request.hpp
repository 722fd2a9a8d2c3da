#pragma once
#include <cstdint>
#include <vector>

#include "isa/eviction.hpp"

namespace simt {

using Cycle = uint64_t;  ///< a count of cycles of the core clock, unless a name says otherwise

/// The unit of all memory transfers is a sector: 32 bytes; four of them share a cache line's tag.
inline constexpr uint32_t sector_bytes = 32;

/// Why memory is accessed. Counters are kept per kind; the order is that of the Result's tables.
enum class AccessKind : uint8_t {
  GlobalRead,
  GlobalWrite,
  LocalRead,
  LocalWrite,
  ConstantRead,
  TextureRead,
  InstructionRead,
  Atomic,  ///< atomics and reductions, performed at the L2
  L1Writeback,
  L2Writeback,
  L2Fill,  ///< read made by the L2 itself to complete a partially written sector
  Count
};

/// A packet from an SM to the L2. It covers one sector, or several sectors of one 128-byte line.
struct MemoryRequest {
  uint64_t address = 0;  ///< start of the first sector (32-byte-aligned)
  uint64_t token = 0;    ///< identifies the request to the SM; returned with the reply
  Cycle cycle = 0;       ///< core cycle in which the SM hands it to the interconnect
  uint32_t byte_mask =
      ~0u;  ///< bytes of the sector that a write covers (applies to every sector of the packet)
  uint16_t sm = 0;
  uint16_t slot = 0;  ///< launch slot that caused it; counters are kept per slot
  AccessKind kind = AccessKind::GlobalRead;
  uint8_t sectors = 1;  ///< consecutive sectors from `address`; the L2 serves each separately
  bool write = false;   ///< plain write; answered by an acknowledgement
  Eviction eviction = Eviction::Default;  ///< in the L2
};

/// The answer to one sector of a request: data, or the acknowledgement of a write.
struct MemoryReply {
  uint64_t address = 0;  ///< sector address
  uint64_t token = 0;
  Cycle cycle = 0;  ///< core cycle in which the SM can first use it
  AccessKind kind = AccessKind::GlobalRead;
  bool write = false;
};

/// What an SM, or another requester, exchanges with the interconnect; each in ascending cycles.
struct alignas(64) MemoryPort {
  std::vector<MemoryReply> replies{};     ///< the SM removes them
  std::vector<Cycle> departures{};        ///< of packets from its input buffer; the SM removes them
  std::vector<MemoryRequest> requests{};  ///< the SM adds them
};

}  // namespace simt
